package turn

import (
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// ServerTools lists the tools of an admitted server that this caller may call, by the last observed catalog: what the
// server's own lists, the channel and the narrowing show, and no rule denies. Nil before the server was first used.
func (a *Admitted) ServerTools(server string) []*capability.ObservedTool {
	return a.serverTools[server]
}

// ServerTool returns that tool, or nil.
func (a *Admitted) ServerTool(server, tool string) *capability.ObservedTool {
	for _, t := range a.serverTools[server] {
		if t.Name == tool {
			return t
		}
	}
	return nil
}

// AllowsServerTool reports whether tool of an admitted server may be called by this caller at all. It needs no catalog,
// so it also guards the first call of a server.
func (a *Admitted) AllowsServerTool(server, tool string) bool {
	c, ok := a.Server(server)
	return ok && policy.EnablesTool(c.Config.(*capability.Server), tool) &&
		a.input.Channel.AllowsServerTool(server, tool) && a.input.Narrow.keepsServerTool(server, tool)
}

func (a *Admitted) admitServerTools() {
	a.serverTools = make(map[string][]*capability.ObservedTool, len(a.Servers))
	for _, c := range a.Servers {
		server := c.Config.(*capability.Server)
		if server.Observation == nil {
			continue
		}
		for i := range server.Observation.Catalog {
			if t := &server.Observation.Catalog[i]; a.callable(c.ID.Name, t) {
				a.serverTools[c.ID.Name] = append(a.serverTools[c.ID.Name], t)
			}
		}
	}
}

func (a *Admitted) callable(server string, t *capability.ObservedTool) bool {
	return t.Hold == nil && a.AllowsServerTool(server, t.Name) && a.input.Engine.Decide(ServerRequest(server, t.Name, t)).Effect != policy.Deny
}

// ServerRequest is what the permission engine is asked about a call of a server's tool. t is the observed tool, or nil
// where it is not known: then nothing is assumed in its favour.
func ServerRequest(server, tool string, t *capability.ObservedTool) policy.Request {
	r := policy.Request{Tool: policy.BrokerTool, Server: server, ServerTool: tool}
	if t != nil {
		r.ReadOnly, r.Destructive = t.ReadOnly, t.Destructive
	}
	return r
}

// indexServerTools fills ToolIndex. A tool of the host shadows a server's even where the host's is hidden: the bare
// name then must not mean something else for this caller than for the next.
func (a *Admitted) indexServerTools() {
	a.ToolIndex = map[string]string{}
	ambiguous := map[string]bool{}
	for _, server := range a.ServerNames() {
		for _, t := range a.serverTools[server] {
			_, taken := a.ToolIndex[t.Name]
			_, shadows := a.Set.Get(capability.ID{Kind: capability.KindTool, Name: t.Name})
			if taken || shadows {
				ambiguous[t.Name] = true
			}
			a.ToolIndex[t.Name] = server
		}
	}
	for name := range ambiguous {
		delete(a.ToolIndex, name)
	}
}

// bareNames lists the keys of ToolIndex in order.
func (a *Admitted) bareNames() []string {
	all := make([]string, 0, len(a.ToolIndex))
	for name := range a.ToolIndex {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
