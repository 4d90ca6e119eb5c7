package policy

import (
	"path"
	"slices"
	"strings"
)

// decideCommand judges a shell command: the line as a whole and each simple command of it, together with the files its
// redirections touch. The strictest word counts.
//
// A deny or ask rule that meets any spelling of any part decides. To be allowed by rules, every part has to be, or a rule
// stands for exactly this line; and the line must not be opaque, unless a rule allows every use of the tool. Where there are
// rules about some commands or files, and a line hides which it means, a person is asked in every mode.
func (e *Engine) decideCommand(req Request) Decision {
	names := req.names()
	command := readShell(req.Subject)
	spellings := command.spellings(req.Subject)
	for _, r := range e.rules {
		if r.effect == Allow || !r.matchesTool(names) {
			continue
		}
		if slices.ContainsFunc(spellings, func(s string) bool { return r.matchesSubject(req.about(s)) }) {
			return e.cap(req, e.strictest(command, r.says()))
		}
	}
	decided := e.byMode(req)
	switch rule, allowed := e.allowsCommand(names, req, command); {
	case allowed:
		decided = rule.says()
	case command.unreadable:
		decided.Effect = min(decided.Effect, Ask)
		decided.Reason = "it cannot be read as a shell command"
	}
	decided = e.strictest(command, decided)
	if command.hidden && decided.Effect == Allow && e.guardsCommands(names) {
		decided = Decision{Effect: Ask, Reason: "what it runs or writes turns out only when it runs, and there are rules about that"}
	}
	return e.cap(req, decided)
}

// guardsCommands reports whether a deny or ask rule speaks of some commands, or of some files that commands could write.
func (e *Engine) guardsCommands(names []string) bool {
	writer := []string{strings.ToLower(e.host.WriteTool)}
	return slices.ContainsFunc(e.rules, func(r rule) bool {
		switch {
		case r.effect == Allow || r.subject == nil:
			return false
		case r.matchesTool(names):
			return r.kind == SubjectNone || r.kind == SubjectCommand || r.kind == SubjectPath
		}
		return r.matchesTool(writer)
	})
}

// spellings are the texts under which a deny or ask rule, or a pattern, may meet a command: as a whole and by its parts.
func (c shellCommand) spellings(whole string) []string {
	all := []string{whole}
	for _, p := range c.parts {
		all = append(all, p.seen...)
	}
	return all
}

func (r Request) spellings() []string {
	if r.Kind != SubjectCommand || r.Server != "" {
		return []string{r.Subject}
	}
	return readShell(r.Subject).spellings(r.Subject)
}

// about is the request with another spelling of its subject.
func (r Request) about(subject string) Request {
	r.Subject = subject
	return r
}

// allowsCommand finds the allow rules that cover a command; the rule is the one for its last part. An opaque line, or one
// that cannot be read, is covered by a rule about the whole tool only.
func (e *Engine) allowsCommand(names []string, req Request, c shellCommand) (last rule, allowed bool) {
	whole := c.clear()
	find := func(matches func(rule) bool) bool {
		i := slices.IndexFunc(e.rules, func(r rule) bool { return r.effect == Allow && r.matchesTool(names) && matches(r) })
		if i >= 0 {
			last = e.rules[i]
		}
		return i >= 0
	}
	if find(func(r rule) bool { return r.meant(req) && (r.subject == nil || whole && r.exactly(req.Subject)) }) {
		return last, true
	}
	if !whole {
		return rule{}, false
	}
	for _, p := range c.parts {
		if p.allowed == "" || !find(func(r rule) bool { return r.matchesSubject(req.about(p.allowed)) }) {
			return rule{}, false
		}
	}
	return last, true
}

// exactly reports whether a rule stands for this one line, whatever parts it has.
func (r rule) exactly(subject string) bool {
	switch m := r.subject.(type) {
	case commandGlob:
		return m.literal() && m.pattern == subject
	case commandOrGlob:
		return m.command.literal() && m.command.pattern == subject
	}
	return false
}

// strictest takes the files into account that the command's redirections read and write, as the tools read and write
// would.
func (e *Engine) strictest(c shellCommand, decided Decision) Decision {
	consider := func(d Decision) {
		if d.Effect < decided.Effect {
			decided = d
		}
	}
	for _, file := range c.writes {
		consider(e.Decide(Request{Tool: e.host.WriteTool, Subject: e.host.file(file), Kind: SubjectPath}))
	}
	for _, file := range c.reads {
		consider(e.Decide(Request{Tool: e.host.ReadTool, Subject: e.host.file(file), Kind: SubjectPath, ReadOnly: true}))
	}
	return decided
}

// file is the path that a redirection means: ~/ is the home folder, and what lies in the workspace is relative to it.
func (h Host) file(text string) string {
	if below, home := strings.CutPrefix(text, "~/"); home {
		text = path.Join("/", h.Home, below) // an unknown home is somewhere outside
	}
	if h.Workspace != "" {
		if below, inside := strings.CutPrefix(path.Clean(text), path.Clean(h.Workspace)+"/"); inside {
			return below
		}
	}
	return text
}
