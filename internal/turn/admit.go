package turn

import (
	"path"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// AdmitInput is everything admission depends on. There is no reading among it: a prediction of what a turn needs never
// removes a capability.
type AdmitInput struct {
	View     *View
	Channel  *policy.Channel // nil shows everything
	Engine   *policy.Engine  // never nil
	Attended bool            // somebody can answer an approval
	MCPFront bool            // the caller is an MCP client: tools that are host-only are hidden
	Narrow   *Narrowing      // nil: not narrowed
}

// Narrowing is what a worker is confined to. It can only take away. Two of the same fields narrow alike.
type Narrowing struct {
	// Channel is what stays visible of what the caller's own channel shows; nil keeps all. Hooks always stay: a worker
	// must not get rid of a guard.
	Channel *policy.Channel
	// ReadOnly leaves out tools that do not declare to be read-only, and judges calls in the mode read-only.
	ReadOnly bool
}

// Admitted is what one caller may see and call in one epoch: the ceiling of its turn. The pointers lead into the set
// and are not to be changed.
type Admitted struct {
	Epoch  capability.Epoch
	Digest string // of the whole set, what is hidden included
	Set    *capability.Set

	// What was admitted, each in order of names.
	Tools, Skills, Servers, Hooks, Commands []*capability.Capability

	// Standings of what was admitted but not open (gated), and of everything that was not admitted, in order of ids.
	Gated, Excluded []policy.Standing

	// Refusals are the admitted hooks that cannot run and were declared fail-closed. While there is one, every tool
	// call is refused with its reason.
	Refusals []*capability.Capability

	// ToolIndex maps a bare name of a server's tool to its server. Names that two servers have, or that a tool of this
	// host has, are left out.
	ToolIndex map[string]string

	input       AdmitInput
	byID        map[capability.ID]*capability.Capability
	serverTools map[string][]*capability.ObservedTool
	exposed     exposedNames
	skillTool   *capability.Tool // the skill tool with the admitted names in its schema; nil: not admitted
}

// Admit is the single point of admission: channel policy first, then reach, which covers revocation. It is a pure
// function and reads nothing but its input.
func Admit(in AdmitInput) *Admitted {
	in.Engine = in.Narrow.confine(in.Engine)
	set := in.View.Snapshot.Set
	a := &Admitted{
		Epoch: in.View.Snapshot.Epoch, Digest: set.Digest(), Set: set, input: in,
		byID: make(map[capability.ID]*capability.Capability, set.Len()),
	}
	for c := range set.All() {
		a.judge(c)
	}
	a.admitServerTools()
	a.indexServerTools()
	a.exposed = newExposedNames(a)
	a.skillTool = a.buildSkillTool()
	return a
}

// Worker admits for a worker of this turn: the same epoch and policy, narrowed further, and nobody to answer approvals.
// Revocations that came since are the gate's business.
func (a *Admitted) Worker(n Narrowing) *Admitted {
	in := a.input
	in.Narrow, in.Attended = in.Narrow.and(n), false
	return Admit(in)
}

// Confine returns the engine as it judges the calls of this turn, whatever engine is in force when they are made.
func (a *Admitted) Confine(e *policy.Engine) *policy.Engine { return a.input.Narrow.confine(e) }

func (n *Narrowing) and(m Narrowing) *Narrowing {
	if n == nil {
		return &m
	}
	return &Narrowing{Channel: policy.Compose(n.Channel, m.Channel), ReadOnly: n.ReadOnly || m.ReadOnly}
}

func (n *Narrowing) confine(e *policy.Engine) *policy.Engine {
	if n == nil || !n.ReadOnly {
		return e
	}
	return e.Restricted(policy.ReadOnly)
}

func (n *Narrowing) keeps(id capability.ID) bool {
	return n == nil || id.Kind == capability.KindHook || n.Channel.Allows(id)
}

func (n *Narrowing) keepsServerTool(server, tool string) bool {
	return n == nil || n.Channel.AllowsServerTool(server, tool)
}

func (a *Admitted) judge(c *capability.Capability) {
	if !a.Shows(c.ID) || a.hostOnly(c) {
		a.Excluded = append(a.Excluded, policy.Standing{ID: c.ID, State: policy.Hidden})
		return
	}
	s := policy.StandingOf(a.input.Engine, c, a.input.View.Revoked, a.input.Attended)
	switch s.State {
	case policy.Blocked, policy.Revoked, policy.Hidden:
		a.Excluded = append(a.Excluded, s)
		return
	case policy.Gated:
		a.Gated = append(a.Gated, s)
	case policy.Open:
	}
	a.admit(c)
}

func (a *Admitted) hostOnly(c *capability.Capability) bool {
	tool, ok := c.Config.(*capability.Tool)
	return ok && tool.HostOnly && a.input.MCPFront
}

func (a *Admitted) admit(c *capability.Capability) {
	a.byID[c.ID] = c
	switch c.ID.Kind {
	case capability.KindTool:
		a.Tools = append(a.Tools, c)
	case capability.KindSkill:
		a.Skills = append(a.Skills, c)
	case capability.KindMCP:
		a.Servers = append(a.Servers, c)
	case capability.KindCommand:
		a.Commands = append(a.Commands, c)
	case capability.KindHook:
		a.Hooks = append(a.Hooks, c)
		if c.Config.(*capability.Hook).Refusal != "" {
			a.Refusals = append(a.Refusals, c)
		}
	case capability.KindUnspecified:
	}
}

// Shows reports whether this caller may know of a capability of that id. It does not depend on the set, so it also
// filters deltas and reports, which name what is no longer there.
func (a *Admitted) Shows(id capability.ID) bool {
	return a.input.Channel.Allows(id) && a.input.Narrow.keeps(id)
}

// Get returns the admitted capability of that id.
func (a *Admitted) Get(id capability.ID) (*capability.Capability, bool) {
	c, ok := a.byID[id]
	return c, ok
}

// Tool returns the admitted tool of that name.
func (a *Admitted) Tool(name string) (*capability.Capability, bool) {
	return a.Get(capability.ID{Kind: capability.KindTool, Name: name})
}

// Skill returns the admitted skill of that name, or the only one that a plugin has under it.
func (a *Admitted) Skill(name string) (*capability.Capability, bool) {
	return a.named(capability.ID{Kind: capability.KindSkill, Name: name})
}

// Server returns the admitted server of that name.
func (a *Admitted) Server(name string) (*capability.Capability, bool) {
	return a.Get(capability.ID{Kind: capability.KindMCP, Name: name})
}

// Command returns the admitted command of that name, or the only one that a plugin has under it.
func (a *Admitted) Command(name string) (*capability.Capability, bool) {
	return a.named(capability.ID{Kind: capability.KindCommand, Name: name})
}

// named finds a skill or command by its own name, or by the name it has within a plugin where one plugin alone has it.
func (a *Admitted) named(id capability.ID) (*capability.Capability, bool) {
	if c, ok := a.Get(id); ok {
		return c, true
	}
	found := a.within(id)
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}

// Ambiguous lists the qualified names of skills or commands that several plugins have under a name which nothing has of its
// own; nil where the name is clear.
func (a *Admitted) Ambiguous(id capability.ID) []string {
	if _, ok := a.Get(id); ok {
		return nil
	}
	if found := a.within(id); len(found) > 1 {
		return names(found)
	}
	return nil
}

// within are the admitted capabilities that have the name within a plugin, in order.
func (a *Admitted) within(id capability.ID) []*capability.Capability {
	all := a.Skills
	if id.Kind == capability.KindCommand {
		all = a.Commands
	}
	var found []*capability.Capability
	for _, c := range all {
		if c.Origin.Kind == capability.OriginPlugin && c.ID.Name == c.Origin.Plugin+":"+id.Name {
			found = append(found, c)
		}
	}
	return found
}

// ToolNames lists the admitted tools in order.
func (a *Admitted) ToolNames() []string { return names(a.Tools) }

// ServerNames lists the admitted servers in order.
func (a *Admitted) ServerNames() []string { return names(a.Servers) }

// SkillNames lists the admitted skills that a model may load, in order.
func (a *Admitted) SkillNames() []string {
	var all []string
	for _, c := range a.Skills {
		if !c.Config.(*capability.Skill).DisableModelInvocation {
			all = append(all, c.ID.Name)
		}
	}
	return all
}

// MayLoad reports whether a skill may be loaded without anybody being asked.
func (a *Admitted) MayLoad(name string) bool {
	r := policy.Request{Tool: policy.SkillTool, Kind: policy.SubjectName, Subject: name, ReadOnly: true}
	return a.input.Engine.Decide(r).Effect == policy.Allow
}

// Broken is what is wrong with the file that would declare a skill or command; false where none would, or the caller may
// not know of it.
func (a *Admitted) Broken(id capability.ID) (capability.Problem, bool) {
	p, ok := a.input.View.Broken[id]
	return p, ok && a.Shows(id)
}

// SkillFolders lists the folders outside of the workspace in which admitted skills have their files, in order.
func (a *Admitted) SkillFolders() []string {
	var all []string
	for _, c := range a.Skills {
		if s := c.Config.(*capability.Skill); path.IsAbs(s.BaseDir) && c.Usable() {
			all = append(all, s.BaseDir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func names(list []*capability.Capability) []string {
	all := make([]string, len(list))
	for i, c := range list {
		all[i] = c.ID.Name
	}
	return all
}

// reachable reports whether neither revocation nor the permission engine takes c away altogether.
func (a *Admitted) reachable(c *capability.Capability) bool {
	switch policy.StandingOf(a.input.Engine, c, a.input.View.Revoked, a.input.Attended).State {
	case policy.Open, policy.Gated:
		return true
	case policy.Blocked, policy.Revoked, policy.Hidden:
	}
	return false
}

// excluded returns the standing of a capability of the set that was not admitted.
func (a *Admitted) excluded(id capability.ID) (policy.Standing, bool) {
	for _, s := range a.Excluded {
		if s.ID == id {
			return s, true
		}
	}
	return policy.Standing{}, false
}

// RefusedByHook is the error that every tool call gets while a fail-closed hook cannot be read; nil when there is none.
func (a *Admitted) RefusedByHook() *vakerr.Error {
	if len(a.Refusals) == 0 {
		return nil
	}
	h := a.Refusals[0]
	return vakerr.New(vakerr.HookBlocked, "the fail-closed %s cannot run: %s", h.ID, h.Config.(*capability.Hook).Refusal).
		WithRemedy("an operator must repair the hook's definition or remove it; until then every tool call is refused")
}
