package policy

import (
	"slices"

	"github.com/vak-actors/vak-actors/capability"
)

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
	r, err := parseRule(Host{}, Deny, text)
	return Pattern{rule: r}, err
}

// ParsePatternOf reads a pattern as a dialect writes permission rules.
func ParsePatternOf(dialect capability.Dialect, text string) (Pattern, error) {
	if dialect == capability.DialectVAK {
		return ParsePattern(text)
	}
	r, err := claudeCompiler{}.rule(Deny, text)
	return Pattern{rule: r}, err
}

// Matches reports whether the pattern is about that call.
func (p Pattern) Matches(req Request) bool {
	if p.all {
		return true
	}
	if !p.rule.matchesTool(req.names()) {
		return false
	}
	return slices.ContainsFunc(req.spellings(), func(subject string) bool { return p.rule.matchesSubject(req.about(subject)) })
}
