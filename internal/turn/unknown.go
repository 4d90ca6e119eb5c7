package turn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// missing explains a capability that is not admitted, as far as this caller may know of it; nil where it may not, or
// where nothing ever had that id.
func (r resolver) missing(id capability.ID) *vakerr.Error {
	if !r.a.Shows(id) {
		return nil
	}
	if s, found := r.a.excluded(id); found {
		switch s.State {
		case policy.Revoked:
			return revokedError(id, s.Reason)
		case policy.Blocked:
			code := vakerr.PermissionDenied
			if s.Asks {
				code = vakerr.ApprovalRequired
			}
			return vakerr.New(code, "%s is blocked: %s", id, s.Reason).WithRemedy("%s", s.Remedy)
		case policy.Open, policy.Gated, policy.Hidden:
		}
		return nil
	}
	if r.removed == nil {
		return nil
	}
	if _, admitted := r.a.Get(id); admitted {
		return nil
	}
	if epoch, gone := r.removed(id); gone {
		return vakerr.New(vakerr.CapabilityRemoved, "%s was removed in epoch %d", id, epoch).
			WithRemedy("do without it, or ask an operator to declare it again")
	}
	return nil
}

// noTool is the error for a name that no tool has: the kind it does have, or the nearest names.
func (r resolver) noTool(name string) *vakerr.Error {
	if err := r.wrongKind(name); err != nil {
		return err
	}
	e := vakerr.New(vakerr.UnknownTool, "there is no tool %s", shown(name))
	candidates := slices.Concat(r.a.ToolNames(), r.a.bareNames())
	for _, x := range r.a.Exposed() {
		candidates = append(candidates, x.Name)
	}
	if near := nearest(name, candidates); len(near) > 0 {
		return e.WithRemedy("the nearest names are: %s", strings.Join(near, ", "))
	}
	return e.WithRemedy("use a tool from the list, or search for one")
}

func (r resolver) wrongKind(name string) *vakerr.Error {
	if _, ok := r.a.Skill(name); ok {
		return vakerr.New(vakerr.WrongKind, "%s is a skill, not a tool", shown(name)).
			WithRemedy(`load it with skill({"name":%q})`, name)
	}
	if _, ok := r.a.Server(name); ok {
		return vakerr.New(vakerr.WrongKind, "%s is an MCP server, not a tool", shown(name)).
			WithRemedy(`list its tools with mcp({"action":"list","server":%q})`, name)
	}
	if _, ok := r.a.Command(name); ok {
		return vakerr.New(vakerr.WrongKind, "%s is a command, not a tool", shown(name)).
			WithRemedy("commands are typed by the user: /%s", name)
	}
	if _, ok := r.a.Get(capability.ID{Kind: capability.KindHook, Name: name}); ok {
		return vakerr.New(vakerr.WrongKind, "%s is a hook, not a tool", shown(name)).
			WithRemedy("hooks run by themselves at their event")
	}
	for _, k := range []capability.Kind{capability.KindSkill, capability.KindMCP} {
		if err := r.missing(capability.ID{Kind: k, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

func (r resolver) noServer(name string) *vakerr.Error {
	if err := r.missing(capability.ID{Kind: capability.KindMCP, Name: name}); err != nil {
		return err
	}
	return vakerr.New(vakerr.UnknownServer, "there is no server %s", shown(name)).
		WithRemedy("the servers are: %s", phrase.List(r.a.ServerNames(), maxListed))
}

func (r resolver) noServerTool(server, tool string) *vakerr.Error {
	var all []string
	for _, t := range r.a.ServerTools(server) {
		all = append(all, t.Name)
	}
	e := vakerr.New(vakerr.UnknownTool, "server %q has no tool %s", server, shown(tool))
	if near := nearest(tool, all); len(all) > maxListed && len(near) > 0 {
		return e.WithRemedy("the nearest of its %d tools are: %s", len(all), strings.Join(near, ", "))
	}
	return e.WithRemedy("its tools are: %s", phrase.List(all, maxListed))
}

// maxListed bounds how many names an error lists.
const maxListed = 20

// nearest returns up to three candidates that a person could have meant by name, the nearest first.
func nearest(name string, candidates []string) []string {
	type scored struct {
		name     string
		distance int
	}
	name = strings.ToLower(name[:min(len(name), maxNameShown)])
	if name == "" {
		return nil
	}
	limit := max(2, len(name)/3)
	var near []scored
	for _, c := range candidates {
		d := phrase.Distance(name, strings.ToLower(c), limit)
		if len(name) >= 4 && strings.Contains(strings.ToLower(c), name) {
			d = min(d, limit)
		}
		if d <= limit {
			near = append(near, scored{c, d})
		}
	}
	slices.SortFunc(near, func(x, y scored) int {
		return cmp.Or(cmp.Compare(x.distance, y.distance), cmp.Compare(x.name, y.name))
	})
	near = slices.CompactFunc(near, func(x, y scored) bool { return x.name == y.name })
	var best []string
	for _, s := range near[:min(3, len(near))] {
		best = append(best, s.name)
	}
	return best
}
