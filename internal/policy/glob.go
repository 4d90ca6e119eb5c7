package policy

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// glob is one compiled pattern over a name or a text. Unlike a path pattern its '*' crosses '/', because names of
// hooks, tools, commands and addresses hold slashes that separate nothing.
type glob string

const slashStandIn = "\x00"

// compileGlob checks a pattern. The syntax is doublestar's: * ? [class] {a,b} and backslash escapes; case counts.
func compileGlob(pattern string) (glob, error) {
	if pattern == "" {
		return "", fmt.Errorf("an empty pattern matches nothing")
	}
	g := strings.ReplaceAll(pattern, "/", slashStandIn)
	if !doublestar.ValidatePattern(g) {
		return "", fmt.Errorf("%q is no valid pattern: check its brackets and braces", pattern)
	}
	return glob(g), nil
}

// textGlob is compileGlob for a pattern that is known to be valid.
func textGlob(pattern string) glob { return glob(strings.ReplaceAll(pattern, "/", slashStandIn)) }

const globMeta = `*?[{\`

// match compares the fixed beginning first: most patterns are about other names.
func (g glob) match(text string) bool {
	fixed := string(g)
	meta := strings.IndexAny(fixed, globMeta)
	if meta >= 0 {
		fixed = fixed[:meta]
	}
	if !beginsAs(text, fixed) {
		return false
	}
	if meta < 0 {
		return len(text) == len(fixed)
	}
	ok, err := doublestar.Match(string(g), strings.ReplaceAll(text, "/", slashStandIn))
	return ok && err == nil
}

// beginsAs reports whether text begins with fixed, in which every / has its stand-in.
func beginsAs(text, fixed string) bool {
	if len(text) < len(fixed) {
		return false
	}
	for i := range len(fixed) {
		if text[i] != fixed[i] && (text[i] != '/' || fixed[i] != slashStandIn[0]) {
			return false
		}
	}
	return true
}

// universal reports whether g certainly matches every text.
func (g glob) universal() bool { return g != "" && strings.Trim(string(g), "*") == "" }

// addressGlob is a pattern over the tools of servers, written server/tool. '*' crosses neither side's border; a pattern
// without '/' means every tool of the servers it matches.
type addressGlob struct{ server, tool glob }

func compileAddress(pattern string) (addressGlob, error) {
	server, tool, found := strings.Cut(pattern, "/")
	if !found {
		tool = "*"
	}
	s, err := compileGlob(server)
	if err != nil {
		return addressGlob{}, err
	}
	t, err := compileGlob(tool)
	return addressGlob{s, t}, err
}
