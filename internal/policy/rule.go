package policy

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
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
	Arguments  string // the JSON object of the call, for rules about a parameter; of a server's tool its own. Empty: not known

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

const serverNames = 4 // of a server's tool

// names is every name under which rules know the tool of a request, lower case.
func (r Request) names() []string {
	if r.Server == "" {
		return []string{strings.ToLower(r.Tool)}
	}
	s, t := strings.ToLower(r.Server), strings.ToLower(r.ServerTool)
	return []string{strings.ToLower(r.Tool), s + "/" + t, BrokerTool + "__" + s + "__" + t, BrokerTool + "__" + s}
}

// rule is one compiled entry.
type rule struct {
	effect  Effect
	text    string      // without prefix, as written
	at      string      // file:line, for people; empty: not known
	tool    glob        // lower case, over every name the tool of a request has
	kind    SubjectKind // when set, calls of other kinds are not meant
	access  access
	subject matcher // nil: any subject
}

// matcher says whether a rule's subject is that of a request.
type matcher interface {
	matches(req Request) bool
}

// matchesTool reports whether the rule names a tool. What allows mcp__a__* does not reach the server a__b, while what denies
// it does: the name alone does not tell where a server's name ends.
func (r rule) matchesTool(names []string) bool {
	if len(names) == serverNames && r.effect == Allow && strings.HasPrefix(string(r.tool), BrokerTool+"__") {
		tool, server := names[2], names[3]
		return string(r.tool) == server || strings.HasPrefix(string(r.tool), server+"__") && r.tool.match(tool)
	}
	return slices.ContainsFunc(names, r.tool.match)
}

func (r rule) matchesSubject(req Request) bool {
	if !r.meant(req) {
		return false
	}
	return r.subject == nil || r.subject.matches(req)
}

// meant reports whether calls of that kind and access are.
func (r rule) meant(req Request) bool {
	return (r.kind == SubjectNone || r.kind == req.Kind) && r.access.is(req)
}

// says is the decision of a rule that matches.
func (r rule) says() Decision {
	where := ""
	if r.at != "" {
		where = " in " + r.at
	}
	return Decision{r.effect, r.text, fmt.Sprintf("the rule %s%s says %s", r.text, where, r.effect)}
}

// subjectGlob matches paths by path segments and everything else as one text.
type subjectGlob struct {
	text  glob
	paths pathGlobs
}

func (g subjectGlob) matches(req Request) bool {
	switch {
	case req.Server != "":
		return g.text.match(req.Server + "/" + req.ServerTool)
	case req.Kind == SubjectPath:
		return g.paths.matches(req)
	}
	return req.Subject != "" && g.text.match(req.Subject)
}

// commandGlob matches a simple command. "git *" means git with any arguments and none, "git*" what begins so.
type commandGlob struct {
	pattern string
	star    bool // only * has a meaning, as in Claude Code
}

func (g commandGlob) matches(req Request) bool {
	if req.Kind != SubjectCommand {
		return false
	}
	if before, bare := strings.CutSuffix(g.pattern, " *"); bare && g.one(before, req.Subject) {
		return true
	}
	return g.one(g.pattern, req.Subject)
}

func (g commandGlob) one(pattern, text string) bool {
	if !g.star {
		return textGlob(pattern).match(text)
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// literal reports whether the pattern stands for one text.
func (g commandGlob) literal() bool {
	if g.star {
		return !strings.Contains(g.pattern, "*")
	}
	return !strings.ContainsAny(g.pattern, `*?[{\`)
}

// domainGlob matches the host of a URL; a leading *. stands for any host below it.
type domainGlob string

func (g domainGlob) matches(req Request) bool {
	if req.Kind != SubjectURL {
		return false
	}
	u, err := url.Parse(req.Subject)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if below, wild := strings.CutPrefix(string(g), "*."); wild {
		return strings.HasSuffix(host, "."+below)
	}
	return host == string(g) || g == "*"
}

// parameter matches an argument of a call by name and value. Only deny and ask rules have it: it cannot know under which
// other name a tool takes the same thing.
type parameter struct{ name, value glob }

func (p parameter) matches(req Request) bool {
	var object map[string]any
	if req.Arguments == "" || json.Unmarshal([]byte(req.Arguments), &object) != nil {
		return req.Arguments != "" // a guard that cannot read what it guards
	}
	for name, value := range object {
		if p.name.match(strings.ToLower(name)) && p.holds(value, maxParameterDepth) {
			return true
		}
	}
	return false
}

const maxParameterDepth = 8

// holds looks for the value in lists and objects, too, and compares paths in their clean spelling as well, from a root and
// without one.
func (p parameter) holds(value any, depth int) bool {
	if depth == 0 {
		return true
	}
	switch v := value.(type) {
	case string:
		relative := strings.TrimPrefix(path.Clean(v), "/")
		return p.value.match(v) || p.value.match(path.Clean(v)) || p.value.match(relative) || p.value.match("/"+relative)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return p.holds(e, depth-1) })
	case map[string]any:
		for _, e := range v {
			if p.holds(e, depth-1) {
				return true
			}
		}
		return false
	}
	return p.value.match(fmt.Sprint(value))
}
