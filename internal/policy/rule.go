package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Effect is what the permission engine says of a call. The zero value is Deny.
type Effect uint8

// The effects, strictest first.
const (
	Deny Effect = iota
	Ask
	Allow
)

// String is the name of the list in [permissions].
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
	}
	return "deny"
}

// SubjectKind says how a subject is to be read.
type SubjectKind uint8

// The kinds of subject.
const (
	SubjectNone    SubjectKind = iota
	SubjectPath                // relative to the workspace, or absolute, or beginning with .. : outside of it
	SubjectURL                 // an absolute URL
	SubjectCommand             // a shell command
	SubjectName                // the name of a skill
)

// Request is a call to be judged, after every rewrite of its input.
type Request struct {
	Tool       string // the tool as admitted; mcp for the broker
	Server     string // set for a call of a server's tool
	ServerTool string
	Subject    string // what the call acts on; for a server's tool it is server/tool and this is ignored
	Kind       SubjectKind

	ReadOnly    bool // the tool declares that it changes nothing
	Destructive bool // the tool declares that it may destroy
}

// Rule is the rule that would allow exactly this request.
func (r Request) Rule() string {
	switch {
	case r.Server != "":
		return fmt.Sprintf("%s(%s/%s)", BrokerTool, r.Server, r.ServerTool)
	case r.Subject != "":
		return fmt.Sprintf("%s(%s)", r.Tool, r.Subject)
	}
	return r.Tool
}

// BrokerTool is the tool through which servers are called, SkillTool the one that loads skills, ShellTool the name under
// which rules speak of commands for the shell.
const (
	BrokerTool = "mcp"
	SkillTool  = "skill"
	ShellTool  = "bash"
)

// rule is one compiled entry of [permissions].
type rule struct {
	effect  Effect
	text    string // without prefix, as written
	tool    glob   // lower case, over every name the tool of a request has
	pattern string // over the subject; empty: any subject
}

var ruleForm = regexp.MustCompile(`^([^()\s]+)(?:\((.+)\))?$`)

// parseRule reads `[+?-]Tool` or `[+?-]Tool(glob)` from the list of that effect. A prefix may be stricter than its list
// and then counts; one that is looser is an error.
func parseRule(list Effect, text string) (rule, error) {
	r := rule{effect: list, text: strings.TrimSpace(text)}
	if r.text == "" {
		return r, fmt.Errorf("an empty rule says nothing")
	}
	if i := strings.IndexByte("-?+", r.text[0]); i >= 0 {
		prefix := Effect(i)
		if prefix > list {
			return r, fmt.Errorf("%q would %s, but it stands in the list %s", text, prefix, list)
		}
		r.effect, r.text = prefix, r.text[1:]
	}
	parts := ruleForm.FindStringSubmatch(r.text)
	if parts == nil {
		return r, fmt.Errorf("%q is not of the form Tool or Tool(glob)", text)
	}
	var err error
	if r.tool, err = compileGlob(strings.ToLower(parts[1])); err != nil {
		return r, err
	}
	if r.pattern = parts[2]; strings.Trim(r.pattern, "*") == "" {
		r.pattern = ""
	}
	if !doublestar.ValidatePattern(r.pattern) {
		return r, fmt.Errorf("%q holds no valid pattern: check its brackets and braces", text)
	}
	if r.pattern != "" && namesServerTool(parts[1]) {
		return r, fmt.Errorf("%q names a server's tool, whose arguments cannot be matched: leave (…) out", text)
	}
	return r, nil
}

func namesServerTool(tool string) bool {
	return strings.Contains(tool, "/") || strings.HasPrefix(strings.ToLower(tool), BrokerTool+"__")
}

// names is every name under which rules know the tool of a request, lower case.
func (r Request) names() []string {
	if r.Server == "" {
		return []string{strings.ToLower(r.Tool)}
	}
	s, t := strings.ToLower(r.Server), strings.ToLower(r.ServerTool)
	return []string{strings.ToLower(r.Tool), s + "/" + t, BrokerTool + "__" + s + "__" + t, BrokerTool + "__" + s}
}

func (r rule) matchesTool(names []string) bool {
	return slices.ContainsFunc(names, r.tool.match)
}

// matchesSubject matches paths by path segments and everything else as one text.
func (r rule) matchesSubject(req Request) bool {
	if r.pattern == "" {
		return true
	}
	switch {
	case req.Server != "":
		return asText(r.pattern, req.Server+"/"+req.ServerTool)
	case req.Kind == SubjectPath:
		ok, err := doublestar.Match(r.pattern, path.Clean(req.Subject))
		return ok && err == nil
	case req.Kind == SubjectCommand && r.effect == Allow && compound(req.Subject):
		return false
	}
	return req.Subject != "" && asText(r.pattern, req.Subject)
}

func asText(pattern, text string) bool {
	return glob(strings.ReplaceAll(pattern, "/", slashStandIn)).match(text)
}

// compound reports whether a shell could run more than one command, or write a file, for this text. No pattern may
// allow such a text, because it would allow what follows the part that was meant.
func compound(command string) bool {
	return strings.ContainsAny(command, "\n\r;&|<>`") || strings.Contains(command, "$(")
}

// inside reports whether a path subject lies in the workspace.
func inside(subject string) bool {
	clean := path.Clean(subject)
	return subject != "" && !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../")
}
