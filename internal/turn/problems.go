package turn

import (
	"fmt"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/schema"
)

// maxCatalogProblems bounds what is said of one server, or of collisions.
const maxCatalogProblems = 20

// CatalogProblems is what is wrong with the tools that a server was last seen to have: what the pool left out, and schemas
// by which nothing can be checked. It compiles every schema, which takes a tenth of a millisecond a tool.
func CatalogProblems(server *capability.Capability) []capability.Problem {
	config, ok := server.Config.(*capability.Server)
	if !ok || config.Observation == nil {
		return nil
	}
	all := problemList{path: server.Source, code: "server_catalog"}
	for _, note := range config.Observation.Notes {
		all.add("report it to the author of the server; its other tools are used", "%s: %s", server.ID, note)
	}
	for _, t := range config.Observation.Catalog {
		if note := schema.Compile(t.InputSchema).Note(); note != "" {
			all.add("report it to the author of the server; the tool is used all the same", "%s: %s: %s", server.ID, phrase.Cut(t.Name, maxNameShown), note)
		}
	}
	return all.bounded()
}

// CollisionProblems names the tools of servers that are offered under no exposed name, because it would not be theirs
// alone.
func CollisionProblems(set *capability.Set) []capability.Problem {
	a := &Admitted{Set: set, serverTools: map[string][]*capability.ObservedTool{}}
	sources := map[string]string{}
	for c := range set.OfKind(capability.KindMCP) {
		server := c.Config.(*capability.Server)
		if server.Observation == nil {
			continue
		}
		a.Servers = append(a.Servers, c)
		sources[c.ID.Name] = c.Source
		for i := range server.Observation.Catalog {
			a.serverTools[c.ID.Name] = append(a.serverTools[c.ID.Name], &server.Observation.Catalog[i])
		}
	}
	all := problemList{code: "exposed_name"}
	for _, x := range newExposedNames(a).refused {
		all.path = sources[x.Server]
		all.add("call it as mcp with server and tool; to have it listed, give its server another name",
			"mcp:%s: the tool %s is listed under no name, for %s would be the name of another tool, too",
			x.Server, phrase.Cut(x.Tool.Name, maxNameShown), x.Name)
	}
	return all.bounded()
}

// problemList collects warnings, of which so many are kept.
type problemList struct {
	path, code string
	list       []capability.Problem
	more       int
}

func (l *problemList) add(hint, format string, args ...any) {
	if len(l.list) >= maxCatalogProblems {
		l.more++
		return
	}
	l.list = append(l.list, capability.Problem{
		Severity: capability.SeverityWarning, Code: l.code, Path: l.path, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

func (l *problemList) bounded() []capability.Problem {
	if l.more > 0 {
		last := &l.list[len(l.list)-1]
		last.Message += fmt.Sprintf(" (and %d more like it)", l.more)
	}
	return l.list
}
