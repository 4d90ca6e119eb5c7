package policy

import "slices"

// decideCommand judges a shell command: the line as a whole and each simple command of it, together with the files its
// redirections touch. The strictest word counts.
//
// A deny or ask rule that meets any spelling of any part decides. To be allowed by rules, every part has to be, and the
// line must not be opaque; only a rule that stands for exactly this line allows it as it is.
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
	return e.cap(req, e.strictest(command, decided))
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

// allowsCommand finds the allow rules that cover a command; the rule is the one for its last part.
func (e *Engine) allowsCommand(names []string, req Request, c shellCommand) (last rule, allowed bool) {
	find := func(subject string, whole bool) bool {
		i := slices.IndexFunc(e.rules, func(r rule) bool {
			if r.effect != Allow || !r.matchesTool(names) || whole && !r.exactly(subject) {
				return false
			}
			return r.matchesSubject(req.about(subject))
		})
		if i >= 0 {
			last = e.rules[i]
		}
		return i >= 0
	}
	if find(req.Subject, true) {
		return last, true
	}
	if c.opaque || c.unreadable || len(c.parts) == 0 {
		return rule{}, false
	}
	for _, p := range c.parts {
		if p.allowed == "" || !find(p.allowed, false) {
			return rule{}, false
		}
	}
	return last, true
}

// exactly reports whether a rule allows this text whatever it holds: it speaks of no subject, or of this one alone.
func (r rule) exactly(subject string) bool {
	switch m := r.subject.(type) {
	case nil:
		return true
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
		consider(e.Decide(Request{Tool: e.host.WriteTool, Subject: file, Kind: SubjectPath}))
	}
	for _, file := range c.reads {
		consider(e.Decide(Request{Tool: e.host.ReadTool, Subject: file, Kind: SubjectPath, ReadOnly: true}))
	}
	return decided
}
