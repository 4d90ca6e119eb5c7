package policy

import (
	"fmt"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// State is the standing of a capability: may it be used now.
type State string

// The states.
const (
	Open    State = "open"    // some call of it runs without a question
	Gated   State = "gated"   // some call of it can run, after an approval or under a rule
	Blocked State = "blocked" // no call of it can run
	Revoked State = "revoked" // an operator withdrew it
	Hidden  State = "hidden"  // not visible for this caller; it must not be named to it
)

// Standing is the state of one capability, with the reason and remedy where it is not open.
type Standing struct {
	ID     capability.ID `json:"id"`
	State  State         `json:"state"`
	Reason string        `json:"reason,omitempty"`
	Remedy string        `json:"remedy,omitempty"`
	Asks   bool          `json:"asks,omitempty"` // of a blocked one: somebody could allow it, and nobody is there
}

// StandingOf is the reach of one capability: whether the permission engine could let any call of it run. It grants nothing:
// each call is judged again when it is made. attended says that somebody can answer an approval.
func StandingOf(engine *Engine, c *capability.Capability, revoked capability.Revocations, attended bool) Standing {
	s := Standing{ID: c.ID, State: Open}
	reason, now := revoked[c.ID]
	if !now && c.Resolution.Retired {
		reason, now = c.Resolution.Reason, true
	}
	if now {
		s.State, s.Reason = Revoked, reason
		s.Remedy = fmt.Sprintf("if it should be used again: vak-actors restore %s", c.ID)
		return s
	}
	if c.Hold != nil {
		s.State, s.Reason, s.Remedy = Blocked, c.Hold.Reason, c.Hold.Remedy
		return s
	}
	best := -1
	for _, req := range probes(c) {
		if p := engine.probe(req, attended); rank(p.State) > best {
			best, s.State, s.Reason, s.Remedy, s.Asks = rank(p.State), p.State, p.Reason, p.Remedy, p.Asks
		}
	}
	return s
}

func rank(s State) int {
	switch s {
	case Open:
		return 2
	case Gated:
		return 1
	case Blocked, Revoked, Hidden:
	}
	return 0
}

// probes are the requests that stand for every call of a capability; none for what is not called under a permission.
// A tool is probed once for each kind of subject its schema can name, a server once for each tool it was seen to have.
func probes(c *capability.Capability) []Request {
	switch config := c.Config.(type) {
	case *capability.Skill:
		return []Request{{Tool: SkillTool, Subject: c.ID.Name, Kind: SubjectName, ReadOnly: true}}
	case *capability.Tool:
		base := Request{Tool: c.ID.Name, ReadOnly: config.ReadOnly || c.ID.Name == BrokerTool, Destructive: config.Destructive}
		var all []Request
		for _, k := range subjectKinds(config.InputSchema) {
			base.Kind = k
			all = append(all, base)
		}
		return all
	case *capability.Server:
		if config.Observation == nil || len(config.Observation.Catalog) == 0 {
			return []Request{{Tool: BrokerTool, Server: c.ID.Name}}
		}
		all := make([]Request, 0, len(config.Observation.Catalog))
		for _, t := range config.Observation.Catalog {
			all = append(all, Request{
				Tool: BrokerTool, Server: c.ID.Name, ServerTool: t.Name,
				ReadOnly: t.ReadOnly, Destructive: t.Destructive,
			})
		}
		return all
	}
	return nil
}

// probe judges the calls that req stands for. Where a part of req is open (no subject, no tool of the server), a rule
// that speaks of some values only does not decide for all of them, but a partial allow keeps the capability reachable.
func (e *Engine) probe(req Request, attended bool) Standing {
	if e.shut != "" {
		return Standing{State: Blocked, Reason: e.shut, Remedy: "repair the rule: vak-actors doctor names its line"}
	}
	decided, partial := e.decideAll(req)
	switch {
	case decided.Effect == Allow:
		return Standing{State: Open}
	case decided.Effect == Deny:
		return Standing{State: Blocked, Reason: decided.Reason, Remedy: decided.Refusal(req).Remedy}
	case attended:
		return Standing{State: Gated, Reason: "it asks first: " + decided.Reason}
	case partial != "":
		return Standing{State: Gated, Reason: "no approver can answer, so only what the rule " + partial + " allows can run"}
	}
	return Standing{
		State: Blocked, Asks: true, Reason: "it asks first and no approver can answer: " + decided.Reason,
		Remedy: fmt.Sprintf("to allow it without asking, add %q to allow in [permissions]", wholeRule(req)),
	}
}

// decideAll finds the strictest rule that covers every call req stands for, and the text of the first allow rule that
// covers some.
func (e *Engine) decideAll(req Request) (decided Decision, partial string) {
	decided = e.byMode(probeSubject(req))
	found := false
	for _, r := range e.rules {
		whole, some := r.covers(req)
		if whole && !found {
			found = true
			decided = r.says()
		}
		if some && r.effect == Allow && partial == "" {
			partial = r.text
		}
	}
	if e.mode == ReadOnly && !req.ReadOnly && decided.Effect != Deny {
		decided = e.byMode(req)
	}
	if req.Kind == SubjectNone || req.Server != "" && req.ServerTool != "" {
		decided = e.byLearned(req, decided)
	}
	for _, l := range e.learned {
		if decided.Rule == "" && partial == "" {
			partial = l.allowsSome(req)
		}
	}
	return decided, partial
}

// probeSubject gives an open path the most favourable value: a file inside the workspace.
func probeSubject(req Request) Request {
	if req.Kind == SubjectPath && req.Subject == "" {
		req.Subject = "file"
	}
	return req
}

// covers reports whether r speaks of every call that req stands for, and whether it speaks of some.
func (r rule) covers(req Request) (whole, some bool) {
	switch {
	case req.Server != "" && req.ServerTool == "":
		return r.coversServer(req)
	case !r.matchesTool(req.names()) || !r.meant(req):
		return false, false
	case r.subject == nil:
		return true, true
	case r.aboutParameter():
		return false, r.effect != Allow
	case req.Server != "" || req.Subject != "":
		m := r.subject.matches(req)
		return m, m
	}
	return false, req.Kind != SubjectNone
}

// aboutParameter reports whether only a call with its arguments says if the rule matches.
func (r rule) aboutParameter() bool {
	_, is := r.subject.(parameter)
	return is
}

// coversServer is covers for a server whose tools are not known.
func (r rule) coversServer(req Request) (whole, some bool) {
	server := strings.ToLower(req.Server)
	if r.kind != SubjectNone || r.aboutParameter() {
		return false, false
	}
	if r.subject != nil {
		pattern, isGlob := r.subject.(subjectGlob)
		if !isGlob || !r.tool.match(BrokerTool) {
			return false, false
		}
		a, err := compileAddress(strings.ReplaceAll(string(pattern.text), slashStandIn, "/"))
		if err != nil || !a.server.match(req.Server) {
			return false, false
		}
		return a.tool.universal(), true
	}
	text, name := string(r.tool), BrokerTool+"__"+server
	if r.tool.match(BrokerTool) || text == name || r.effect != Allow && r.tool.match(name) {
		return true, true
	}
	if s, tool, found := strings.Cut(text, slashStandIn); found {
		return glob(s).match(server) && glob(tool).universal(), glob(s).match(server)
	}
	tool, found := strings.CutPrefix(text, name+"__")
	return found && glob(tool).universal(), found
}

// wholeRule is the rule that would allow every call req stands for.
func wholeRule(req Request) string {
	if req.Server == "" {
		return req.Rule()
	}
	if req.ServerTool == "" {
		return fmt.Sprintf("%s(%s/*)", BrokerTool, req.Server)
	}
	return req.Rule()
}
