package policy

import (
	"fmt"
	"strings"
)

// claudeTool says which calls a tool name of Claude Code means here: those of a kind and an access, whatever the tool is
// called, so that a guard covers every tool that does the same.
type claudeTool struct {
	kind   SubjectKind
	access access
	named  bool // only the tool of that name is meant, with a subject of that kind
}

// access is what a call does with its subject.
type access uint8

const (
	anyAccess access = iota
	reads
	writes
)

func (a access) is(req Request) bool {
	return a == anyAccess || req.ReadOnly == (a == reads)
}

// claudeTools has the names that mean more than a tool of that name, as Claude Code spells them where a tool of this host has
// the same in lower case: they are its names, and none of ours. Case does not matter. Read covers everything that reads files, Edit
// everything that writes them.
var claudeTools = map[string]claudeTool{
	"bash":         {kind: SubjectCommand},
	"Read":         {kind: SubjectPath, access: reads},
	"Edit":         {kind: SubjectPath, access: writes},
	"Write":        {kind: SubjectPath, access: writes},
	"Glob":         {kind: SubjectPath, named: true},
	"Grep":         {kind: SubjectPath, named: true},
	"multiedit":    {kind: SubjectPath, access: writes},
	"notebookedit": {kind: SubjectPath, access: writes},
	"webfetch":     {kind: SubjectURL},
	"skill":        {kind: SubjectName},
}

// noEffectError is the error of a rule that can be read and means nothing here: why.
type noEffectError string

func (e noEffectError) Error() string { return string(e) }

const errNoTool noEffectError = "there is no such tool here, so the rule has no effect"

// claudeCompiler reads rules of Claude Code.
type claudeCompiler struct{ host Host }

// rule reads Tool or Tool(specifier).
func (c claudeCompiler) rule(effect Effect, text string) (rule, error) {
	r := rule{effect: effect, text: strings.TrimSpace(text)}
	parts := ruleForm.FindStringSubmatch(r.text)
	if parts == nil {
		return r, fmt.Errorf("%q is not of the form Tool or Tool(specifier)", text)
	}
	name, specifier := strings.ToLower(parts[1]), parts[2]
	if specifier == "*" {
		specifier = ""
	}
	if strings.HasPrefix(name, BrokerTool+"__") {
		return c.serverTool(r, parts[1], specifier)
	}
	if strings.ContainsAny(name, "*?[{") {
		if effect == Allow {
			return r, fmt.Errorf("%q allows tools it does not name: name each tool", text)
		}
		var err error
		r.tool, err = compileGlob(name)
		return r, err
	}
	if name == "agent" || name == "task" {
		return r, errNoTool
	}
	r.tool = glob(name)
	known, isKnown := claudeToolOf(name)
	if isKnown && !known.named {
		r.tool, r.kind, r.access = "*", known.kind, known.access
	}
	var err error
	r.subject, err = c.specifier(effect, name, known, text, specifier)
	return r, err
}

func claudeToolOf(name string) (claudeTool, bool) {
	for known, tool := range claudeTools {
		if strings.EqualFold(known, name) {
			return tool, true
		}
	}
	return claudeTool{}, false
}

// serverTool reads mcp__server, mcp__server__* and mcp__server__tool, with a parameter in deny and ask.
func (c claudeCompiler) serverTool(r rule, name, specifier string) (rule, error) {
	if err := checkServerGlob(r.effect, name); err != nil {
		return r, err
	}
	var err error
	if r.tool, err = compileGlob(strings.ToLower(name)); err != nil || specifier == "" {
		return r, err
	}
	r.subject, err = parseParameter(r.effect, r.text, specifier)
	return r, err
}

// specifier reads what stands in the parentheses.
func (c claudeCompiler) specifier(effect Effect, name string, known claudeTool, text, specifier string) (matcher, error) {
	switch {
	case specifier == "":
		return nil, nil
	case known.kind == SubjectCommand:
		return claudeCommand(text, specifier)
	case known.kind == SubjectPath:
		if strings.EqualFold(name, "Write") && effect == Allow {
			return nil, noEffectError(fmt.Sprintf("the program it was written for never consults it, and it grants nothing here: write Edit(%s)", specifier))
		}
		return c.paths(effect, text, specifier)
	case known.kind == SubjectURL:
		host, ok := strings.CutPrefix(specifier, "domain:")
		if !ok || host == "" {
			return nil, fmt.Errorf("%q must name a host: WebFetch(domain:example.org)", text)
		}
		return domainGlob(strings.ToLower(host)), nil
	case known.kind == SubjectName:
		return subjectGlob{text: textGlob(skillPattern(specifier))}, nil
	case strings.Contains(specifier, ":"):
		return parseParameter(effect, text, specifier)
	}
	return nil, fmt.Errorf("%q: nobody knows what (%s) means for this tool", text, specifier)
}

// skillPattern drops the arguments of a skill from its pattern: they are not part of the name.
func skillPattern(specifier string) string {
	name, _, _ := strings.Cut(specifier, " ")
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "{", `\{`, "?", `\?`).Replace(name)
}

func claudeCommand(text, specifier string) (matcher, error) {
	if i := strings.Index(specifier, ":*"); i >= 0 && i != len(specifier)-2 {
		return nil, fmt.Errorf("%q has :* before its end, where it has no meaning: write * there, or put :* at the end", text)
	}
	return commandGlob{pattern: shellPrefix(specifier), star: true}, nil
}

// paths reads a gitignore pattern: //x from the root of the file system, ~/x in the home folder, /x and ./x from the
// workspace, and a name without a slash at any depth. What lies below a folder that matches is meant, too.
func (c claudeCompiler) paths(effect Effect, text, pattern string) (matcher, error) {
	switch {
	case strings.HasPrefix(pattern, "//"):
		pattern = pattern[1:]
	case pattern == "~", pattern == ".", pattern == "..":
	case strings.HasPrefix(pattern, "/"):
		pattern = "." + pattern
	case !strings.Contains(strings.TrimSuffix(pattern, "/"), "/"):
		pattern = "**/" + pattern
	}
	pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(pattern) // no alternatives in gitignore
	m, err := c.host.paths(effect, text, pattern)
	if err != nil {
		return nil, err
	}
	m.patterns = append(m.patterns, m.patterns[0]+"/**")
	return m, nil
}

// claudeMode reads a defaultMode. Only those that restrict, or that equal a mode of this program, are taken.
func claudeMode(text string) (mode string, err error) {
	switch text {
	case "", "default", "auto", "acceptEdits": // the mode of this program where none is written takes edits, too
		return "", nil
	case "plan":
		return ReadOnly.String(), nil
	case "dontAsk":
		return "", fmt.Errorf("the mode dontAsk is not taken over: what asks is refused where nobody can answer")
	case "bypassPermissions":
		return "", fmt.Errorf("the mode bypassPermissions is not taken over from a file of another program")
	}
	return "", fmt.Errorf("%q is no mode", text)
}
