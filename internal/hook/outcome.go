package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
)

// Run is how a hook ended.
type Run struct {
	StartError string // why it did not start, in words for everyone; empty when it did
	TimedOut   bool
	ExitCode   int // -1 when a signal ended it
	Stdout     []byte
	Stderr     []byte
	Truncated  bool // stdout was longer than Stdout
}

// Verdict is the opinion of a hook, the stricter the greater.
type Verdict uint8

// The verdicts.
const (
	NoOpinion Verdict = iota
	Approve
	Ask   // a person is to be asked
	Block // it must not be
)

// String is the word that reports print.
func (v Verdict) String() string {
	switch v {
	case Approve:
		return "approve"
	case Ask:
		return "ask"
	case Block:
		return "block"
	case NoOpinion:
	}
	return "no opinion"
}

// Outcome is what one hook said.
type Outcome struct {
	Verdict Verdict
	Reason  string          // of a block or question; never empty then
	Input   json.RawMessage // what the tool's input is to be; nil: as it is
	Context string          // what the model is to know besides
	Output  json.RawMessage // what the tool's result is to be; nil: as it is
	Failure string          // why the hook gave no opinion of its own; empty: it did its work
}

// exitBlock is the exit status by which a hook blocks without writing JSON.
const exitBlock = 2

// Judge reads how a hook ended, by the rules of its dialect. Exit 2 blocks, with stderr as the reason, whatever stands on
// stdout; exit 0 with nothing on stdout is no opinion; exit 0 with JSON is what it says. What else a hook may do is a
// failure, which its failure mode decides.
func Judge(h *capability.Hook, in Input, run Run) Outcome {
	switch {
	case h.Refusal != "":
		return failed(h, "its definition cannot be used: "+h.Refusal)
	case run.StartError != "":
		return failed(h, "it did not start: "+run.StartError)
	case run.TimedOut:
		return failed(h, fmt.Sprintf("it took longer than %s", h.Timeout))
	case run.ExitCode == exitBlock && h.Dialect != capability.DialectVAK && (in.Event == SessionStart || in.Event == SessionEnd):
		return failed(h, "it blocks, which no hook of its program can do at "+string(in.Event))
	case run.ExitCode == exitBlock:
		return Outcome{Verdict: Block, Reason: reason(string(run.Stderr))}
	case run.ExitCode < 0:
		return failed(h, "a signal ended it")
	case run.ExitCode != 0 && !readsAnyway(h.Dialect, run):
		return failed(h, fmt.Sprintf("it ended with exit status %d", run.ExitCode))
	case len(bytes.TrimSpace(run.Stdout)) == 0:
		return Outcome{}
	case run.Truncated:
		return failed(h, "its answer is too long")
	}
	out, err := decodeAnswer(h.Dialect, in, bytes.TrimSpace(run.Stdout))
	if err != nil {
		return failed(h, err.Error())
	}
	return out
}

// readsAnyway reports whether an answer counts whatever the exit status: Claude Code takes what looks like JSON.
func readsAnyway(dialect capability.Dialect, run Run) bool {
	return (dialect == capability.DialectClaude || dialect == capability.DialectCodex) && bytes.HasPrefix(bytes.TrimSpace(run.Stdout), []byte("{"))
}

// failed is the outcome of a hook without an opinion. An unknown failure mode counts as fail-closed.
func failed(h *capability.Hook, why string) Outcome {
	o := Outcome{Failure: why}
	if h.FailureMode != capability.FailOpen {
		o.Verdict, o.Reason = Block, "it is fail-closed and failed: "+why
	}
	return o
}

// answer is the JSON that hooks print, of all dialects together; each reads its own part.
type answer struct {
	Decision string          `json:"decision"`
	Reason   string          `json:"reason"`
	Input    json.RawMessage `json:"input"` // own dialect: replaces the tool's input

	Continue   *bool     `json:"continue"`
	StopReason string    `json:"stopReason"`
	Specific   *specific `json:"hookSpecificOutput"`

	Permission   string          `json:"permission"` // Cursor
	AgentMessage string          `json:"agent_message"`
	UserMessage  string          `json:"user_message"`
	UpdatedInput json.RawMessage `json:"updated_input"`
	Context      string          `json:"additional_context"`
}

type specific struct {
	PermissionDecision string          `json:"permissionDecision"`
	PermissionReason   string          `json:"permissionDecisionReason"`
	UpdatedInput       json.RawMessage `json:"updatedInput"`
	Context            string          `json:"additionalContext"`
	ToolInput          json.RawMessage `json:"tool_input"` // Gemini: merged into the input
	UpdatedOutput      json.RawMessage `json:"updatedToolOutput"`
	UpdatedMCPOutput   json.RawMessage `json:"updatedMCPToolOutput"`
}

func decodeAnswer(dialect capability.Dialect, in Input, stdout []byte) (Outcome, error) {
	if dialect != capability.DialectVAK && stdout[0] != '{' {
		return plainText(in, stdout), nil
	}
	var a *answer
	if err := json.Unmarshal(stdout, &a); err != nil || a == nil {
		return Outcome{}, fmt.Errorf("its answer is not the JSON object {decision, reason}")
	}
	if dialect == capability.DialectVAK {
		return a.own()
	}
	return a.others(dialect, in)
}

// plainText is the answer of a hook of another program that is no JSON: context where those programs take it for that,
// and nothing elsewhere.
func plainText(in Input, stdout []byte) Outcome {
	if in.Event == UserPrompt || in.Event == SessionStart {
		return Outcome{Context: clipped(string(stdout))}
	}
	return Outcome{}
}

func (a *answer) own() (Outcome, error) {
	var o Outcome
	switch a.Decision {
	case "":
	case "approve":
		o.Verdict = Approve
	case "block":
		return Outcome{Verdict: Block, Reason: reason(a.Reason)}, nil
	default:
		return o, fmt.Errorf("its decision is neither block nor approve")
	}
	if input := bytes.TrimSpace(a.Input); given(input) {
		if input[0] != '{' {
			return Outcome{}, fmt.Errorf("the input it wants is no JSON object")
		}
		o.Input = input
	}
	return o, nil
}

// others reads the answers of Claude Code, Codex, Gemini and Cursor.
func (a *answer) others(dialect capability.Dialect, in Input) (Outcome, error) {
	var o Outcome
	consider := func(word, why string) error {
		v, err := verdictOf(word)
		if err == nil && v > o.Verdict {
			o.Verdict, o.Reason = v, why
		}
		return err
	}
	words := [][2]string{{a.Decision, a.Reason}, {a.Permission, firstOf(a.AgentMessage, a.UserMessage)}}
	if a.Specific != nil {
		words = append(words, [2]string{a.Specific.PermissionDecision, a.Specific.PermissionReason})
		o.Context = clipped(a.Specific.Context)
	}
	for _, w := range words {
		if err := consider(w[0], w[1]); err != nil {
			return Outcome{}, err
		}
	}
	if a.Continue != nil && !*a.Continue {
		o.Verdict, o.Reason = Block, firstOf(a.StopReason, a.Reason)
	}
	if o.Verdict >= Ask {
		o.Reason = reason(o.Reason)
	}
	o.Context = firstOf(o.Context, clipped(a.Context))
	return a.rewrites(dialect, in, o)
}

// rewrites reads the input and the output that a hook wants in place of the call's.
func (a *answer) rewrites(dialect capability.Dialect, in Input, o Outcome) (Outcome, error) {
	wanted, merge := a.UpdatedInput, false
	if a.Specific != nil {
		if given(a.Specific.UpdatedInput) {
			wanted = a.Specific.UpdatedInput
		}
		if dialect == capability.DialectGemini && given(a.Specific.ToolInput) {
			wanted, merge = a.Specific.ToolInput, true
		}
		if in.Event == PostToolUse {
			o.Output = firstGiven(a.Specific.UpdatedOutput, a.Specific.UpdatedMCPOutput)
		}
	}
	if in.Event != PreToolUse || !given(wanted) {
		return o, nil
	}
	input, err := in.rewritten(wanted, merge)
	if err != nil {
		return Outcome{}, err
	}
	o.Input = input
	return o, nil
}

// verdictOf reads the words that programs use. To defer is to leave the question to a person.
func verdictOf(word string) (Verdict, error) {
	switch word {
	case "":
		return NoOpinion, nil
	case "allow", "approve":
		return Approve, nil
	case "ask", "defer":
		return Ask, nil
	case "deny", "block":
		return Block, nil
	}
	return NoOpinion, fmt.Errorf("its decision is none of allow, ask and deny")
}

func given(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

func firstGiven(all ...json.RawMessage) json.RawMessage {
	for _, raw := range all {
		if given(raw) {
			return raw
		}
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// maxContext bounds what one hook adds to what a model reads, in bytes.
const maxContext = 10_000

func clipped(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	if len(text) > maxContext {
		text = strings.ToValidUTF8(text[:maxContext], "") + "…"
	}
	return text
}

// reason makes a hook's own words fit to be shown: printable, and not longer than a person reads.
func reason(text string) string {
	const longest = 2000 // bytes
	text = strings.TrimSpace(text)
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	if text == "" {
		return "it gave no reason"
	}
	return text
}
