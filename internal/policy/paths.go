package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pathGlobs match a path when one of them does: relative to the workspace, or absolute where absolute is set.
type pathGlobs struct {
	patterns []string
	absolute bool
	folder   string // the workspace, to make a subject absolute; empty: not known
	within   bool   // nothing outside of the workspace is meant: what allows never reaches further than it says
}

func (g pathGlobs) matches(req Request) bool {
	if req.Kind != SubjectPath || req.Subject == "" {
		return false
	}
	subject := path.Clean(req.Subject)
	switch {
	case g.absolute && !path.IsAbs(subject):
		if g.folder == "" {
			return false
		}
		subject = path.Join(g.folder, subject)
	case g.within && !inside(subject):
		return false
	}
	return slices.ContainsFunc(g.patterns, func(p string) bool {
		ok, err := doublestar.Match(p, subject)
		return ok && err == nil
	})
}

// paths compiles a pattern for paths, in doublestar's syntax: /x from the root of the file system, ~/x in the home folder,
// ../x beside the workspace, x and ./x in it. One that ends with / means what lies below. text is the rule.
func (h Host) paths(effect Effect, text, pattern string) (pathGlobs, error) {
	m := pathGlobs{folder: h.Workspace}
	switch {
	case pattern == "~" || strings.HasPrefix(pattern, "~/"):
		if h.Home == "" {
			return m, fmt.Errorf("%q: the home folder is not known", text)
		}
		pattern, m.absolute = globEscape.Replace(h.Home)+pattern[1:], true
	case path.IsAbs(pattern):
		m.absolute = true
	case pattern == ".." || strings.HasPrefix(pattern, "../"):
		if h.Workspace != "" {
			pattern, m.absolute = path.Join(globEscape.Replace(h.Workspace), pattern), true
		}
	default:
		pattern = strings.TrimPrefix(pattern, "./")
		m.within = effect == Allow
	}
	switch below, folder := strings.CutSuffix(pattern, "/"); {
	case folder:
		pattern = below + "/**"
	case pattern == "" || pattern == ".":
		pattern = "**"
	}
	if !doublestar.ValidatePattern(pattern) {
		return m, fmt.Errorf("%q holds no valid pattern: check its brackets and braces", text)
	}
	m.patterns = []string{pattern}
	return m, nil
}

// globEscape writes a text so that a pattern takes it as it is.
var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`)

// inside reports whether a path subject lies in the workspace.
func inside(subject string) bool {
	clean := path.Clean(subject)
	return subject != "" && !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../")
}
