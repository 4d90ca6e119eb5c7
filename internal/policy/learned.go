package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"github.com/vak-actors/vak-actors/capability"
)

// Learned are the rules that answers left behind: each allows what its text says, letter by letter, and no more. They
// answer a question of the mode; a rule of deny or ask wins over them. A Learned is never changed; nil has no rules.
type Learned struct{ rules map[string]struct{} }

// With returns the rules with more of them.
func (l *Learned) With(rules ...string) *Learned {
	all := &Learned{rules: make(map[string]struct{}, l.Len()+len(rules))}
	if l != nil {
		maps.Copy(all.rules, l.rules)
	}
	for _, r := range rules {
		all.rules[r] = struct{}{}
	}
	return all
}

// Len is the number of rules.
func (l *Learned) Len() int {
	if l == nil {
		return 0
	}
	return len(l.rules)
}

// Rules lists them in order.
func (l *Learned) Rules() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.rules))
}

func (l *Learned) allows(req Request) bool {
	if l == nil {
		return false
	}
	_, yes := l.rules[req.Rule()]
	return yes
}

// allowsSome is a rule about some call that req stands for; empty when there is none.
func (l *Learned) allowsSome(req Request) string {
	if l == nil || req.Server != "" || req.Subject != "" {
		return ""
	}
	for _, r := range l.Rules() {
		if strings.HasPrefix(r, req.Tool+"(") {
			return r
		}
	}
	return ""
}

// Learning returns an engine that knows these rules, too.
func (e *Engine) Learning(l *Learned) *Engine {
	if l.Len() == 0 {
		return e
	}
	g := *e
	g.learned = append(slices.Clip(g.learned), l)
	return &g
}

// byLearned answers a question of the mode by what was learned.
func (e *Engine) byLearned(req Request, decided Decision) Decision {
	if decided.Effect != Ask || decided.Rule != "" || !e.learnable(req) {
		return decided
	}
	for _, l := range e.learned {
		if l.allows(req) {
			return Decision{Allow, req.Rule(), "somebody allowed it for good"}
		}
	}
	return decided
}

// Learnable are the rules by which exactly these requests would be allowed from now on. Nil: one of them is to be asked
// about each time, since a rule says so, since it may destroy, or since no rule could name it and nothing more.
func (e *Engine) Learnable(requests []Request) []string {
	var rules []string
	for _, req := range requests {
		switch d := e.Decide(req); {
		case d.Effect == Allow:
		case d.Effect == Ask && d.Rule == "" && e.learnable(req):
			rules = append(rules, req.Rule())
		default:
			return nil
		}
	}
	return rules
}

// maxLearned bounds a learned rule, in bytes.
const maxLearned = 1 << 10

// learnable reports whether a rule may answer for a request. Never for what may destroy, for a command that a shell would
// take apart, and for a file by which an agent could lift its own limits.
func (e *Engine) learnable(req Request) bool {
	rule := req.Rule()
	switch {
	case req.Destructive, len(rule) > maxLearned, strings.ContainsFunc(rule, unicode.IsControl), strings.ToValidUTF8(rule, "") != rule:
		return false
	case req.Kind == SubjectCommand:
		return e.learnableCommand(req.Subject)
	case req.Kind == SubjectPath && e.guards(req.Subject):
		return guardedText(req.Subject)
	}
	return true
}

// learnableCommand reports whether a shell does what the line says and nothing hidden in it, and writes no file by which an
// agent could lift its own limits.
func (e *Engine) learnableCommand(line string) bool {
	c := readShell(line)
	return c.clear() && !slices.ContainsFunc(c.writes, func(file string) bool { return e.guards(e.host.file(file)) })
}

// guardedText reports whether a guarded file is a text that a model reads, as skills and commands of .claude are.
func guardedText(subject string) bool {
	clean := strings.ToLower(path.Clean(subject))
	return strings.HasPrefix(clean, ".claude/") && path.Ext(clean) == ".md" && !slices.Contains(strings.Split(clean, "/"), guardedFolder)
}

// LearnedRule is one entry of a file of learned rules.
type LearnedRule struct {
	Rule string    `toml:"rule"`
	By   string    `toml:"by"`
	At   time.Time `toml:"at"`
}

// Bounds of a file of learned rules.
const (
	MaxLearnedBytes = 1 << 20
	maxLearnedRules = 10_000
)

// ParseLearned reads a file of learned rules; path is how problems name it. A file that cannot be read has none: then more
// is asked, and nothing is allowed.
func ParseLearned(path string, text []byte) ([]LearnedRule, []capability.Problem) {
	problem := func(code string, line int, message, hint string) []capability.Problem {
		return []capability.Problem{{
			Severity: capability.SeverityError, Code: code, Path: path, Line: line, Message: message,
			Hint: hint + " (until then nothing that was learned is allowed)",
		}}
	}
	if len(text) > MaxLearnedBytes {
		return nil, problem("learned_too_many", 0, fmt.Sprintf("the file has more than %d bytes", MaxLearnedBytes), "remove rules that are not needed")
	}
	var file struct {
		Allow []LearnedRule `toml:"allow"`
	}
	d := toml.NewDecoder(bytes.NewReader(text))
	if err := d.DisallowUnknownFields().Decode(&file); err != nil {
		line, what := 0, "this is no file of learned rules"
		if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ = syntax.Position()
			what = "this is no valid TOML: " + strings.TrimPrefix(syntax.Error(), "toml: ")
		}
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
			line, _ = unknown.Errors[0].Position()
			what = "unknown key: an entry has rule, by and at"
		}
		return nil, problem("learned_syntax", line, what, `write each rule as [[allow]] with rule = "tool(subject)"`)
	}
	if key := otherSpelling(text); key != "" {
		return nil, problem("learned_syntax", 1+bytes.Count(text[:max(0, bytes.Index(text, []byte(key)))], []byte("\n")),
			fmt.Sprintf("%q is no key: keys are written in small letters", key), "write allow, rule, by and at")
	}
	if len(file.Allow) > maxLearnedRules {
		return nil, problem("learned_too_many", 0, fmt.Sprintf("the file has more than %d rules", maxLearnedRules), "remove rules that are not needed")
	}
	return checkLearned(path, file.Allow)
}

// otherSpelling returns a key that differs from a known one by its letters' case; empty if there is none. The decoder takes
// both for one, and of two lists of rules only the later one would count.
func otherSpelling(text []byte) string {
	var file map[string]any
	if err := toml.Unmarshal(text, &file); err != nil {
		return "" // it was decoded before
	}
	all := []map[string]any{file}
	if entries, is := file["allow"].([]any); is {
		for _, e := range entries {
			if entry, is := e.(map[string]any); is {
				all = append(all, entry)
			}
		}
	}
	for _, table := range all {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if key != strings.ToLower(key) {
				return key
			}
		}
	}
	return ""
}

// checkLearned leaves out what is no rule of a call.
func checkLearned(path string, all []LearnedRule) ([]LearnedRule, []capability.Problem) {
	var kept []LearnedRule
	var problems []capability.Problem
	report := func(severity capability.Severity, entry int, message, hint string) {
		problems = append(problems, capability.Problem{
			Severity: severity, Code: "learned_rule", Path: path, Message: fmt.Sprintf("[[allow]], entry %d: %s", entry+1, message), Hint: hint,
		})
	}
	for i, l := range all {
		if !literalRule(l.Rule) {
			report(capability.SeverityError, i, fmt.Sprintf("%.80q is no rule that could be learned", l.Rule), "remove the entry, or write a tool and its subject; it allows nothing as it is")
			continue
		}
		if strings.Contains(l.Rule, "*") {
			report(capability.SeverityWarning, i, "a learned rule is taken letter by letter, * included", "write patterns into allow of [permissions]")
		}
		kept = append(kept, l)
	}
	return kept, problems
}

// literalRule reports whether a text has the form of a rule; its subject need not be a pattern: a file may be called "a[1".
func literalRule(text string) bool {
	parts := ruleForm.FindStringSubmatch(text)
	return parts != nil && len(text) <= maxLearned && !strings.ContainsAny(text[:1], "+-?") && !strings.ContainsFunc(text, unicode.IsControl)
}

const learnedHead = `# Calls that somebody allowed for good. Each rule allows what it says, letter by letter; rules of deny and ask in
# [permissions] win. Remove an entry to be asked again.
`

// AppendLearned adds rules to the text of such a file and leaves what it holds as it is. Rules that are there already are
// not added again. It fails when the text cannot be read, or would hold too much.
func AppendLearned(text []byte, rules []string, by string, at time.Time) ([]byte, error) {
	known, problems := ParseLearned("learned.toml", text)
	if i := slices.IndexFunc(problems, func(p capability.Problem) bool {
		return p.Severity == capability.SeverityError && p.Code != "learned_rule"
	}); i >= 0 {
		return nil, fmt.Errorf("line %d: %s", problems[i].Line, problems[i].Message)
	}
	var out bytes.Buffer
	out.Write(text)
	if len(text) == 0 {
		out.WriteString(learnedHead)
	} else if text[len(text)-1] != '\n' {
		out.WriteByte('\n')
	}
	for _, rule := range rules {
		if slices.ContainsFunc(known, func(l LearnedRule) bool { return l.Rule == rule }) {
			continue
		}
		fmt.Fprintf(&out, "\n[[allow]]\nrule = %s\nby = %s\nat = %s\n", tomlText(rule), tomlText(by), at.UTC().Format(time.RFC3339))
	}
	after, problems := ParseLearned("learned.toml", out.Bytes())
	if len(after) < len(known) || slices.ContainsFunc(problems, func(p capability.Problem) bool { return p.Code != "learned_rule" }) {
		return nil, errors.New("the rules cannot be added to what the file holds")
	}
	return out.Bytes(), nil
}

// tomlText writes a string without control characters as TOML does.
func tomlText(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case unicode.IsControl(r) || !unicode.IsPrint(r):
			out.WriteString(`\U` + strings.ToUpper(fmt.Sprintf("%08s", strconv.FormatInt(int64(r), 16))))
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}
