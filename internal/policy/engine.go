package policy

import (
	"errors"
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
	host    Host
	mode    Mode
	rules   []rule     // in order of severity, deny first
	guarded []string   // further files that are never written by mode alone; lower case
	learned []*Learned // that answer questions of the mode
	shut    string     // why every call is denied; empty: it is not
}

// Host is what rules may refer to of the host: the folders that paths may be relative to, absolute, and the tools as which
// the redirections of a command read and write. Empty where one is not known.
type Host struct{ Workspace, Home, ReadTool, WriteTool string }

// CompileEngine compiles layers of permissions, the more important first. It fails closed: a deny rule that cannot be read
// denies every call until it is repaired, since nobody can say what it was meant to stop; an unknown mode is read-only. An
// ask or allow rule that cannot be read grants nothing. Each is a problem, and so is what an untrusted layer would grant.
//
// Deny and ask rules of all layers add up, and so do the allow rules of the trusted ones. The mode is that of the first
// trusted layer that names one; an untrusted layer may only make it stricter.
func CompileEngine(host Host, layers ...PermissionRules) (*Engine, []capability.Problem) {
	c := engineCompiler{engine: &Engine{mode: WorkspaceWrite, host: host}}
	for _, l := range layers {
		c.layer(l)
	}
	if c.strictest != nil {
		c.engine.mode = min(c.engine.mode, *c.strictest)
	}
	c.engine.rules = bySeverity(c.engine.rules)
	return c.engine, c.problems
}

type engineCompiler struct {
	engine    *Engine
	named     bool  // a trusted layer has named the mode
	strictest *Mode // of what the untrusted layers ask for
	problems  []capability.Problem
}

func (c *engineCompiler) report(severity capability.Severity, code string, l PermissionRules, line int, message, hint string) {
	c.problems = append(c.problems, capability.Problem{
		Severity: severity, Code: code, Path: l.Source, Line: line, Message: message, Hint: hint,
	})
}

func (c *engineCompiler) layer(l PermissionRules) {
	c.mode(l)
	withheld, first := 0, 0 // allow rules of an untrusted layer, and the line of the first
	for _, effect := range []Effect{Deny, Ask, Allow} {
		texts, lines := l.list(effect)
		for i, text := range texts {
			line := 0
			if i < len(lines) {
				line = lines[i]
			}
			r, err := c.parse(l.Dialect, effect, text)
			_, idle := errors.AsType[noEffectError](err)
			switch {
			case idle:
				c.report(capability.SeverityWarning, "permission_rule", l, line, fmt.Sprintf("%s %q: %v", effect, text, err), "remove it, or leave it to the program it was written for")
			case err != nil:
				c.unreadable(l, r.effect, i, line, err)
			case r.effect == Allow && l.Untrusted:
				if withheld++; first == 0 {
					first = line
				}
			default:
				if r.at = l.Source; r.at != "" && line > 0 {
					r.at = fmt.Sprintf("%s:%d", l.Source, line)
				}
				c.engine.rules = append(c.engine.rules, r)
			}
		}
	}
	if withheld > 0 {
		c.report(capability.SeverityWarning, "permissions_untrusted", l, first,
			untrustedText(withheld), trustHint)
	}
}

func untrustedText(rules int) string {
	if rules == 1 {
		return "an allow rule grants nothing: nobody has trusted this workspace"
	}
	return fmt.Sprintf("%d allow rules grant nothing: nobody has trusted this workspace", rules)
}

const trustHint = "read them; if they are right: vak-actors trust"

func (c *engineCompiler) parse(dialect capability.Dialect, effect Effect, text string) (rule, error) {
	if dialect == capability.DialectClaude {
		return claudeCompiler{c.engine.host}.rule(effect, text)
	}
	return parseRule(c.engine.host, effect, text)
}

// unreadable reports an entry. One that was meant to deny shuts the engine.
func (c *engineCompiler) unreadable(l PermissionRules, effect Effect, i, line int, err error) {
	hint := "write a tool, or a tool and a glob: read, write(src/**), mcp(github/get_*)"
	if l.Dialect == capability.DialectClaude {
		hint = "write a tool, or a tool and what it acts on: Read, Edit(src/**), Bash(git status), mcp__github__get_issue"
	}
	where := fmt.Sprintf("%s, entry %d", effect, i+1)
	if effect == Deny {
		hint += "; until then every call is denied"
		c.engine.shut = fmt.Sprintf("%s of the permissions cannot be read", where)
		if l.Source != "" {
			c.engine.shut += ": " + l.Source
		}
	}
	c.report(capability.SeverityError, "permission_rule", l, line, fmt.Sprintf("%s: %v", where, err), hint)
}

func (c *engineCompiler) mode(l PermissionRules) {
	text := l.Mode
	if l.Dialect == capability.DialectClaude {
		var err error
		if text, err = claudeMode(text); err != nil {
			c.report(capability.SeverityWarning, "permission_mode", l, l.Lines.Mode, err.Error(), "set mode in [permissions] of vak.toml")
		}
	}
	if text == "" {
		return
	}
	mode, err := ParseMode(text)
	if err != nil {
		c.report(capability.SeverityError, "permission_rule", l, l.Lines.Mode, fmt.Sprintf("mode: %v", err), "until then the mode is read-only")
	}
	switch {
	case l.Untrusted:
		if mode > WorkspaceWrite {
			c.report(capability.SeverityWarning, "permissions_untrusted", l, l.Lines.Mode,
				fmt.Sprintf("the mode %s is not taken: nobody has trusted this workspace", mode), trustHint)
		}
		if c.strictest == nil || mode < *c.strictest {
			c.strictest = &mode
		}
	case err != nil:
		c.engine.mode, c.named = ReadOnly, true
	case !c.named:
		c.engine.mode, c.named = mode, true
	}
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

// Mode is what happens to a call that no rule speaks of.
func (e *Engine) Mode() Mode { return e.mode }

// DeniesAll says why every call is denied, whatever it is; empty when some may run.
func (e *Engine) DeniesAll() string {
	if e.shut != "" {
		return e.shut
	}
	for _, r := range e.rules {
		if r.effect == Deny && r.subject == nil && r.kind == SubjectNone && r.access == anyAccess && r.tool.universal() {
			return r.says().Reason
		}
	}
	return ""
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
	if req.Kind == SubjectCommand && req.Server == "" {
		return e.decideCommand(req)
	}
	names := req.names()
	decided := e.byMode(req)
	for _, r := range e.rules {
		if r.matchesTool(names) && r.matchesSubject(req) {
			decided = r.says()
			break
		}
	}
	return e.cap(req, decided)
}

// cap keeps the mode read-only from being loosened by a rule.
func (e *Engine) cap(req Request, decided Decision) Decision {
	if e.mode == ReadOnly && !req.ReadOnly && decided.Effect != Deny {
		return e.byMode(req)
	}
	return e.byLearned(req, decided)
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
		asks := vakerr.New(vakerr.ApprovalRequired, "%s needs an approval and no approver can answer: %s", req.Rule(), d.Reason)
		if req.Kind == SubjectCommand && !clearCommand(req.Subject) {
			return asks.WithRemedy("write it as commands that say what they run: no rule allows substitutions, here-documents or several lines")
		}
		return asks.WithRemedy("to allow it without asking, add %q to allow in [permissions]", req.Rule())
	case Deny:
	}
	denied := vakerr.New(vakerr.PermissionDenied, "%s is denied: %s", req.Rule(), d.Reason)
	switch d.Rule {
	case "":
	case "*": // it also stands in for rules that cannot be read
		return denied.WithRemedy("vak-actors doctor names the file of rules that cannot be read; if there is none, change the rule * where it stands")
	default:
		return denied.WithRemedy("if it should be allowed, change the rule %s where it stands", d.Rule)
	}
	return denied.WithRemedy("if it should be allowed, check mode and deny in [permissions]")
}
