package policy

import (
	"fmt"
	"regexp"
	"strings"
)

var ruleForm = regexp.MustCompile(`(?s)^([^()\s]+)(?:\((.+)\))?$`)

// parseRule reads `[+?-]Tool`, `[+?-]Tool(glob)` or `[?-]Tool(parameter:glob)` from the list of that effect. A prefix may be
// stricter than its list and then counts; one that is looser is an error.
func parseRule(host Host, list Effect, text string) (rule, error) {
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
	if err := checkServerGlob(r.effect, parts[1]); err != nil {
		return r, err
	}
	pattern := parts[2]
	switch {
	case strings.Trim(pattern, "*") == "":
		return r, nil
	case namesServerTool(parts[1]):
		r.subject, err = parseParameter(r.effect, text, pattern)
		return r, err
	}
	subject := subjectGlob{text: textGlob(pattern)}
	if subject.paths, err = host.paths(r.effect, r.text, pattern); err != nil {
		return r, err
	}
	r.subject = subject
	if namesShell(parts[1]) {
		r.subject = commandOrGlob{commandGlob{pattern: shellPrefix(pattern)}, subject}
	}
	return r, nil
}

// commandOrGlob is a rule for a tool by name, of which only a call says whether it takes a command.
type commandOrGlob struct {
	command commandGlob
	other   subjectGlob
}

func (m commandOrGlob) matches(req Request) bool {
	if req.Kind == SubjectCommand {
		return m.command.matches(req)
	}
	return m.other.matches(req)
}

// namesShell reports whether a rule may be about a tool that takes commands: any tool that is no server's.
func namesShell(tool string) bool { return !strings.EqualFold(tool, BrokerTool) }

// shellPrefix reads the older spelling "git:*" of "git *".
func shellPrefix(pattern string) string {
	if before, old := strings.CutSuffix(pattern, ":*"); old {
		return before + " *"
	}
	return pattern
}

// parseParameter reads parameter:glob, the one subject that a rule about a server's tool can have.
func parseParameter(effect Effect, text, pattern string) (matcher, error) {
	name, value, found := strings.Cut(pattern, ":")
	if !found || name == "" || value == "" {
		return nil, fmt.Errorf("%q names a server's tool, whose calls are matched by a parameter: write (parameter:glob), or leave (…) out", text)
	}
	if effect == Allow {
		return nil, fmt.Errorf("%q would allow by a parameter, and the tool may take the same thing under another name: leave (…) out", text)
	}
	n, err := compileGlob(strings.ToLower(name))
	if err != nil {
		return nil, err
	}
	v, err := compileGlob(value)
	return parameter{n, v}, err
}

func namesServerTool(tool string) bool {
	return strings.Contains(tool, "/") || strings.HasPrefix(strings.ToLower(tool), BrokerTool+"__")
}

// checkServerGlob refuses to allow tools of servers that are not named: mcp__* reads as one server's tools and would
// cover every server that is ever declared.
func checkServerGlob(effect Effect, tool string) error {
	server, isServer := strings.CutPrefix(strings.ToLower(tool), BrokerTool+"__")
	if !isServer || effect != Allow {
		return nil
	}
	server, _, _ = strings.Cut(server, "__")
	if server == "" || strings.ContainsAny(server, "*?[{") {
		return fmt.Errorf("%q allows tools of servers it does not name: write mcp__SERVER__*, or mcp for every server", tool)
	}
	return nil
}
