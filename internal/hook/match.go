package hook

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Matching is how a matcher of another program is read.
type Matching string

// The matchings.
const (
	MatchAll     Matching = "all"     // it is empty or *
	MatchExact   Matching = "exact"   // names, separated by | or ,
	MatchPattern Matching = "regex"   // an unanchored regular expression
	MatchNothing Matching = "invalid" // an expression that cannot be read: the hook is asked every time
)

// MatchingOf says how a matcher is read. Only letters, digits, and the signs of names and lists make names; anything else
// is a regular expression.
func MatchingOf(matcher string) Matching {
	switch {
	case matcher == "" || matcher == "*":
		return MatchAll
	case !strings.ContainsFunc(matcher, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_- ,|", r)
	}):
		return MatchExact
	}
	if _, err := regexp.Compile(matcher); err != nil {
		return MatchNothing
	}
	return MatchPattern
}

// matchesName reports whether a matcher meets one of the names of a tool. One that cannot be read meets all.
func matchesName(matcher string, names []string) bool {
	switch MatchingOf(matcher) {
	case MatchAll, MatchNothing:
		return true
	case MatchExact:
		wanted := strings.FieldsFunc(matcher, func(r rune) bool { return r == '|' || r == ',' })
		return slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(names, strings.TrimSpace(w)) })
	case MatchPattern:
		return slices.ContainsFunc(names, regexp.MustCompile(matcher).MatchString)
	}
	return true
}

// Call is a call of a tool, as hooks are asked about it.
type Call struct {
	Name     string           // of the tool of this host
	Input    []byte           // one JSON object
	ID       string           // of the call, unique in its session
	Requests []policy.Request // what the permission engine is asked about it; one at least

	// Of a server's tool, whose Name is that of the broker.
	Server, ServerTool string
	ServerInput        []byte // one JSON object
}

// Concerns reports whether a hook is to be asked about in, whose Call is needed for the events of a tool only. Matchers of
// other programs count at the begin of a session (its source) and at its end (the reason), too. A match that
// cannot be read matches every call, since a guard that runs too often does less harm than one that never does.
func Concerns(h *capability.Hook, in Input) bool {
	moment, known := MomentOf(h.Dialect, h.Event)
	if !known || h.Idle != "" || !slices.Contains(moment.Events, in.Event) {
		return false
	}
	call := in.Call
	if !in.Event.OfTool() {
		text, matched := in.matched()
		return !matched || h.Dialect == capability.DialectVAK || matchesName(h.Match, []string{text})
	}
	if !moment.about(call) || !ifMatches(h, call.Requests) {
		return false
	}
	if h.Match == "" {
		return true
	}
	if h.Dialect == capability.DialectVAK {
		pattern, err := policy.ParsePattern(h.Match)
		return err != nil || slices.ContainsFunc(call.Requests, pattern.Matches)
	}
	return matchesName(h.Match, toolNames(h.Dialect, call))
}

// matched is what a matcher is about at an event of a session; false where it is about nothing.
func (in Input) matched() (string, bool) {
	switch in.Event {
	case SessionStart:
		return in.Source, true
	case SessionEnd:
		return in.endReason(), true
	case UserPrompt, Stop, PreToolUse, PostToolUse, PostToolFailure:
	}
	return "", false
}

// about reports whether the moment is about calls of that kind.
func (m Moment) about(call *Call) bool {
	if m.Server {
		return call.Server != ""
	}
	return m.Kind == policy.SubjectNone || slices.ContainsFunc(call.Requests, func(r policy.Request) bool {
		return r.Kind == m.Kind && (m.Kind != policy.SubjectPath || r.ReadOnly != m.Writes)
	})
}

// ifMatches reports whether the permission rule that a handler names besides is about the call.
func ifMatches(h *capability.Hook, requests []policy.Request) bool {
	if h.If == "" {
		return true
	}
	pattern, err := policy.ParsePatternOf(h.Dialect, h.If)
	return err != nil || slices.ContainsFunc(requests, pattern.Matches)
}

// toolNames are the names under which a dialect knows the tool of a call, the one it is told first. A tool whose own name
// the dialect has is that tool; any other is known by what it does.
func toolNames(dialect capability.Dialect, call *Call) []string {
	if call.Server != "" {
		switch dialect {
		case capability.DialectGemini:
			return []string{"mcp_" + call.Server + "_" + call.ServerTool}
		case capability.DialectCursor:
			return []string{"MCP:" + call.ServerTool}
		case capability.DialectVAK, capability.DialectClaude, capability.DialectCodex:
		}
		return []string{"mcp__" + call.Server + "__" + call.ServerTool}
	}
	own := call.Name
	if dialect != capability.DialectGemini {
		own = camel(own)
	}
	words := toolWords[dialect]
	if slices.Contains(words.own, own) {
		return []string{own}
	}
	for _, r := range call.Requests {
		var by []string
		switch {
		case r.Kind == policy.SubjectCommand:
			by = words.command
		case r.Kind == policy.SubjectURL:
			by = words.url
		case r.Kind == policy.SubjectPath && r.ReadOnly:
			by = words.reads
		case r.Kind == policy.SubjectPath:
			by = words.writes
		}
		if by != nil {
			return append(slices.Clone(by), own)
		}
	}
	return []string{own}
}

// words are the names a dialect has for tools.
type words struct {
	own                         []string // tools that are told apart by name
	command, url, reads, writes []string // of tools of other names, by what they do
}

var claudeWords = words{
	own: []string{
		"Bash", "Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "WebFetch", "WebSearch", "NotebookEdit", "Agent", "Task", "Skill",
	},
	command: []string{"Bash"}, url: []string{"WebFetch"}, reads: []string{"Read"}, writes: []string{"Write", "Edit", "MultiEdit"},
}

var toolWords = map[capability.Dialect]words{
	capability.DialectClaude: claudeWords,
	capability.DialectCodex:  claudeWords,
	capability.DialectCursor: {
		own:     []string{"Shell", "Read", "Write", "Grep", "Delete", "Task"},
		command: []string{"Shell"}, reads: []string{"Read"}, writes: []string{"Write"},
	},
	capability.DialectGemini: {
		command: []string{"run_shell_command"}, url: []string{"web_fetch"},
		reads:  []string{"read_file", "search_file_content", "list_directory"},
		writes: []string{"write_file", "replace"},
	},
}

// camel spells web_fetch as WebFetch.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
		first := []rune(part)
		b.WriteRune(unicode.ToUpper(first[0]))
		b.WriteString(string(first[1:]))
	}
	return b.String()
}
