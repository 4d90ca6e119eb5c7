package declare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// product is what one file, or one version of it, contributes. It is never changed after it was made.
type product struct {
	declarations []capability.Declaration
	problems     []capability.Problem
	config       *config.Config           // vak.toml only
	off          []capability.Shadow      // servers that are switched off: ID, and By, the file
	layer        *config.Config           // of a file of its form below it
	permissions  []policy.PermissionRules // of the settings of other programs
	broken       bool                     // a shared file that could not be read as a whole; an earlier version stays in force
	document     bool                     // of a skill or command
	restricting  []string                 // of a document: the entries of its metadata that restrict, as written
}

// after is what counts of a version of a file that follows another. A document that cannot be read any more leaves the
// earlier version in force beside the problem; but not where the new one has a restriction that the earlier one has not,
// for nobody may call the document more widely than its author wants now.
func (p *product) after(earlier *product) *product {
	if !p.document || len(p.declarations) > 0 || len(earlier.declarations) == 0 || p.restrictsMore(earlier) {
		return p
	}
	kept := *earlier
	kept.problems = append(slices.Clone(p.problems), capability.Problem{
		Severity: capability.SeverityWarning, Code: "earlier_version", Path: p.problems[0].Path,
		Message: "the version that was read before stays in force", Hint: "repair the file, or remove it",
	})
	return &kept
}

func (p *product) restrictsMore(earlier *product) bool {
	return slices.ContainsFunc(p.restricting, func(entry string) bool { return !slices.Contains(earlier.restricting, entry) })
}

// reporter collects the problems of one file.
type reporter struct {
	path     string
	vscode   bool // the document's dialect calls allowed-tools tools
	problems []capability.Problem
}

func (r *reporter) add(severity capability.Severity, code string, line int, message, hint string) {
	r.problems = append(r.problems, capability.Problem{
		Severity: severity, Code: code, Path: r.path, Line: line, Message: message, Hint: hint,
	})
}

func (r *reporter) error(code string, line int, message, hint string) {
	r.add(capability.SeverityError, code, line, message, hint)
}

func (r *reporter) warn(code string, line int, message, hint string) {
	r.add(capability.SeverityWarning, code, line, message, hint)
}

// fault is one reason why a file cannot be taken.
type fault struct {
	code    string
	line    int
	message string
	hint    string
}

func (r *reporter) fault(f *fault) { r.error(f.code, f.line, f.message, f.hint) }

// failed is the product of a file that declares nothing but problems.
func (r *reporter) failed() *product { return &product{problems: r.problems} }

// failedWith is the product of a document that cannot be read, but of which is known how it was to be restricted.
func (r *reporter) failedWith(restricting []string) *product {
	return &product{problems: r.problems, restricting: restricting}
}

// maxProblems bounds what is said of one file; a file of another kind, or a hostile one, would fill the report.
const maxProblems = 100

// bounded returns the product with no more problems than that. Errors go before warnings.
func bounded(name string, p *product) *product {
	if len(p.problems) <= maxProblems {
		return p
	}
	slices.SortStableFunc(p.problems, func(a, b capability.Problem) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	r := reporter{path: name, problems: slices.Clip(p.problems[:maxProblems])}
	r.error("too_many_problems", 0, fmt.Sprintf("%d more problems of this file are not listed", len(p.problems)-maxProblems), "repair the ones above first")
	p.problems = r.problems
	return p
}

// quoted writes foreign text into a message: escaped, and cut where it is absurdly long.
func quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return strconv.Quote(s)
}

// maxSummary is the length of a summary in characters.
const maxSummary = 240

// summary is the first sentences of a description on one line.
func summary(description string) string {
	text := []rune(strings.Join(strings.Fields(description), " "))
	if len(text) <= maxSummary {
		return string(text)
	}
	end := 0
	for i := 1; i < maxSummary; i++ {
		if text[i] == ' ' && strings.ContainsRune(".!?", text[i-1]) || strings.ContainsRune("。！？", text[i-1]) {
			end = i
		}
	}
	if end > 0 {
		return strings.TrimSpace(string(text[:end]))
	}
	return strings.TrimRight(string(text[:maxSummary-3]), " ") + "..."
}

// checkSkillName is checkName for skills, whose authors write slashes into names. No name is ever a path.
func checkSkillName(name string) error {
	if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, "//") {
		return fmt.Errorf("a name must not begin or end with a slash, nor hold two in a row")
	}
	return checkName(strings.ReplaceAll(name, "/", "-"))
}

// checkName says why a name may not become part of an id; nil for one that may.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a name must not be empty")
	case strings.Contains(name, "..") || strings.ContainsAny(name, `/\`):
		return fmt.Errorf("a name must not hold .. or a slash")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || !unicode.IsGraphic(r) }):
		return fmt.Errorf("a name must not hold characters that cannot be seen")
	case len(name) > 256:
		return fmt.Errorf("a name must not be longer than 256 bytes")
	}
	return nil
}
