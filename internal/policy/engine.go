package policy

import (
	"fmt"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Mode is what happens to a call that no rule speaks of. The zero value is ReadOnly, the strictest.
type Mode uint8

// The modes, strictest first.
const (
	ReadOnly       Mode = iota // nothing that changes anything, whatever the rules allow
	WorkspaceWrite             // reading, writing inside the workspace, and declared servers unless a tool declares that it destroys; everything else asks
	FullAccess                 // everything
)

// String is the name of the mode in [permissions].
func (m Mode) String() string {
	switch m {
	case WorkspaceWrite:
		return "workspace-write"
	case FullAccess:
		return "full-access"
	case ReadOnly:
	}
	return "read-only"
}

// ParseMode reads a mode; empty is WorkspaceWrite.
func ParseMode(s string) (Mode, error) {
	switch s {
	case "", "workspace-write":
		return WorkspaceWrite, nil
	case "full-access":
		return FullAccess, nil
	case "read-only":
		return ReadOnly, nil
	}
	return ReadOnly, fmt.Errorf("unknown mode %q: the modes are read-only, workspace-write and full-access", s)
}

// Decision is the engine's word on one request.
type Decision struct {
	Effect Effect
	Rule   string // the rule that decided, as written; empty when the mode did
	Reason string // one sentence, lower case, no full stop
}

// Engine judges calls by rules and mode. It is never changed after it was compiled.
type Engine struct {
	mode    Mode
	rules   []rule   // in order of severity, deny first
	guarded []string // further files that are never written by mode alone; lower case
	shut    string   // why every call is denied; empty: it is not
}

// CompileEngine compiles the section. It fails closed: a deny rule that cannot be read denies every call until it is
// repaired, since nobody can say what it was meant to stop; an unknown mode is read-only. An ask or allow rule that
// cannot be read grants nothing. Each is a problem.
func CompileEngine(section PermissionRules) (*Engine, []capability.Problem) {
	e := &Engine{}
	var problems []capability.Problem
	report := func(where string, err error) {
		problems = append(problems, capability.Problem{
			Severity: capability.SeverityError, Code: "permission_rule",
			Message: fmt.Sprintf("[permissions] %s: %v", where, err),
			Hint:    "write a tool, or a tool and a glob: read, write(src/**), mcp(github/get_*)",
		})
	}
	var err error
	if e.mode, err = ParseMode(section.Mode); err != nil {
		report("mode", err)
	}
	for _, list := range []struct {
		effect Effect
		rules  []string
	}{{Deny, section.Deny}, {Ask, section.Ask}, {Allow, section.Allow}} {
		for i, text := range list.rules {
			r, err := parseRule(list.effect, text)
			if err != nil {
				report(fmt.Sprintf("%s, entry %d", list.effect, i+1), err)
				if r.effect == Deny {
					e.shut = fmt.Sprintf("[permissions] deny, entry %d cannot be read", i+1)
				}
				continue
			}
			e.rules = append(e.rules, r)
		}
	}
	e.rules = bySeverity(e.rules)
	return e, problems
}

// bySeverity keeps the order of rules within one effect.
func bySeverity(rules []rule) []rule {
	sorted := make([]rule, 0, len(rules))
	for _, effect := range []Effect{Deny, Ask, Allow} {
		for _, r := range rules {
			if r.effect == effect {
				sorted = append(sorted, r)
			}
		}
	}
	return sorted
}

// Restricted returns an engine with the same rules whose mode is not looser than m, for a worker.
func (e *Engine) Restricted(m Mode) *Engine {
	r := *e
	r.mode = min(e.mode, m)
	return &r
}

// Decide judges one request. The strictest matching rule wins; without one the mode decides.
func (e *Engine) Decide(req Request) Decision {
	if e.shut != "" {
		return Decision{Effect: Deny, Reason: e.shut}
	}
	names := req.names()
	decided := e.byMode(req)
	for _, r := range e.rules {
		if r.matchesTool(names) && r.matchesSubject(req) {
			decided = Decision{r.effect, r.text, fmt.Sprintf("the rule %s says %s", r.text, r.effect)}
			break
		}
	}
	if e.mode == ReadOnly && !req.ReadOnly && decided.Effect != Deny {
		return e.byMode(req)
	}
	return decided
}

// DecideAll judges the requests of one call, which are one for each of its subjects: the strictest decision counts. It
// returns that and the request it is about. There must be one request at least; none is denied.
func (e *Engine) DecideAll(requests []Request) (Decision, Request) {
	if len(requests) == 0 {
		return Decision{Effect: Deny, Reason: "nothing was asked"}, Request{}
	}
	strictest, about := e.Decide(requests[0]), requests[0]
	for _, r := range requests[1:] {
		if d := e.Decide(r); d.Effect < strictest.Effect {
			strictest, about = d, r
		}
	}
	return strictest, about
}

func (e *Engine) byMode(req Request) Decision {
	switch {
	case req.ReadOnly:
		return Decision{Effect: Allow, Reason: "it changes nothing"}
	case e.mode == ReadOnly:
		return Decision{Effect: Deny, Reason: "the mode is read-only and it does not declare that it changes nothing"}
	case e.mode == FullAccess:
		return Decision{Effect: Allow, Reason: "the mode is full-access"}
	case req.Destructive:
		return Decision{Effect: Ask, Reason: "it may destroy what cannot be brought back"}
	case req.Server != "":
		return Decision{Effect: Allow, Reason: "its server is declared here, and it does not declare that it destroys anything"}
	case req.Kind == SubjectPath && e.guards(req.Subject):
		return Decision{Effect: Ask, Reason: "the file governs what an agent may do, or runs outside of its tools"}
	case req.Kind == SubjectPath && inside(req.Subject):
		return Decision{Effect: Allow, Reason: "it writes inside the workspace"}
	}
	return Decision{Effect: Ask, Reason: "it may change something outside the workspace"}
}

// Refusal is the error of a request that must not run: permission_denied for Deny, approval_required for Ask where no
// approver can answer; nil for Allow.
func (d Decision) Refusal(req Request) *vakerr.Error {
	switch d.Effect {
	case Allow:
		return nil
	case Ask:
		return vakerr.New(vakerr.ApprovalRequired, "%s needs an approval and no approver can answer: %s", req.Rule(), d.Reason).
			WithRemedy("to allow it without asking, add %q to allow in [permissions]", req.Rule())
	case Deny:
	}
	denied := vakerr.New(vakerr.PermissionDenied, "%s is denied: %s", req.Rule(), d.Reason)
	if d.Rule != "" {
		return denied.WithRemedy("if it should be allowed, change the rule %s in [permissions]", d.Rule)
	}
	return denied.WithRemedy("if it should be allowed, check mode and deny in [permissions]")
}
