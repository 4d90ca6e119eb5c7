package policy

// Pattern says which calls something is about, in the syntax of a permission rule: Tool or Tool(glob). Hooks use it.
type Pattern struct {
	rule rule
	all  bool
}

// ParsePattern reads a pattern; the empty text means every call.
func ParsePattern(text string) (Pattern, error) {
	if text == "" {
		return Pattern{all: true}, nil
	}
	// As a deny rule, so that it also matches compound shell commands.
	r, err := parseRule(Deny, text)
	return Pattern{rule: r}, err
}

// Matches reports whether the pattern is about that call.
func (p Pattern) Matches(req Request) bool {
	return p.all || p.rule.matchesTool(req.names()) && p.rule.matchesSubject(req)
}
