package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	listedDescription = 90       // characters of a tool's description that a list shows
	maxList           = 32 << 10 // bytes of a list; one tool is shown whatever it takes
)

// listed is a tool as list shows it.
type listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// list is the answer to the action list of one server.
type list struct {
	Server string   `json:"server"`
	Tools  []listed `json:"tools"`

	// What else the server is known to have, by name or URI, for the action request.
	Prompts   []string `json:"prompts,omitempty"`
	Resources []string `json:"resources,omitempty"` // templates among them

	Note string `json:"note,omitempty"` // what is left out, and how to see it
}

func (b *broker) list(ctx context.Context, c op.Call, server, pattern string) (op.Result, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return op.Result{}, vakerr.New(vakerr.InvalidArguments, "tool is no name and no glob of names").
			WithRemedy("write a name, or a part of one with * for anything")
	}
	catalog, err := b.catalog(ctx, c, server)
	if err != nil {
		return op.Result{}, err
	}
	answer := list{Server: server, Tools: make([]listed, 0, len(catalog))}
	for _, t := range catalog {
		if t.Hold == nil && matches(pattern, t) {
			answer.Tools = append(answer.Tools, listed{t.Name, trim(t.Description, listedDescription), t.InputSchema})
		}
	}
	answer.bound(pattern)
	if pattern == "" {
		answer.features(c.Bound)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return op.Result{}, vakerr.New(vakerr.ServerProtocol, "the catalog of %s cannot be shown", server).
			WithRemedy("report it to the author of the server").WithCause(err)
	}
	return op.Text(string(text)), nil
}

// maxFeatures bounds how many prompts, and how many resources, a list names.
const maxFeatures = 30

// features names what the turn knows of the server beside tools and may use.
func (l *list) features(b op.Bound) {
	server, ok := b.Server(l.Server)
	if !ok || server.Config.(*capability.Server).Observation == nil {
		return
	}
	known := server.Config.(*capability.Server).Observation.Features
	if b.AllowsServerTool(l.Server, "prompts/get") {
		l.Prompts = keys(known.Prompts)
	}
	if b.AllowsServerTool(l.Server, "resources/read") {
		l.Resources = append(keys(known.Resources), keys(known.Templates)...)
	}
}

func keys(features []capability.ObservedFeature) []string {
	var all []string
	for _, f := range features[:min(len(features), maxFeatures)] {
		all = append(all, trim(f.Key, listedDescription))
	}
	return all
}

func matches(pattern string, t *capability.ObservedTool) bool {
	if pattern == "" || pattern == t.Name {
		return true
	}
	ok, _ := path.Match(pattern, t.Name) // the pattern was tried
	return ok
}

// bound leaves out what is too much: the schemas first, then the descriptions, then the tools at the end.
func (l *list) bound(pattern string) {
	all := len(l.Tools)
	if all == 0 && pattern != "" {
		l.Note = "No tool of this server has such a name."
		return
	}
	if l.size() <= maxList || all <= 1 {
		return
	}
	const more = ` are left out. For them, list with tool as well: a name, or a glob of names such as "create_*".`
	for i := range l.Tools {
		l.Tools[i].InputSchema = nil
	}
	l.Note = "The input schemas" + more
	if l.size() <= maxList {
		return
	}
	for i := range l.Tools {
		l.Tools[i].Description = ""
	}
	l.Note = "Descriptions and input schemas" + more
	for size := l.size(); size > maxList; size = l.size() {
		l.Tools = l.Tools[:len(l.Tools)*maxList/(size+size/16)]
		l.Note = fmt.Sprintf("%d of %d tools are shown. The others, descriptions and input schemas%s Or describe the task to find_tools.", len(l.Tools), all, more)
	}
}

// size is about what the list takes, in bytes.
func (l *list) size() int {
	n := len(l.Note)
	for _, t := range l.Tools {
		n += len(`{"name":""},`) + len(t.Name)
		if t.Description != "" {
			n += len(`,"description":""`) + len(t.Description)
		}
		if t.InputSchema != nil {
			n += len(`,"inputSchema":`) + len(t.InputSchema)
		}
	}
	return n
}
