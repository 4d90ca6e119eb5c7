// Package hook is the contract of lifecycle hooks: which hooks an event concerns, what they are told, how what they
// answered is read, and what several answers come to.
//
// It decides; it runs nothing (internal/hookrun does) and has no clock. Its rules:
//   - hooks run one after another in the order given, and the first block wins: no later hook runs;
//   - silence is no opinion, and an approval is none either: a hook can only take away, it never grants what the permission
//     rules refuse;
//   - a hook that failed (did not start, timed out, answered what cannot be read) blocks if it is fail-closed, and is passed
//     over and reported if it is fail-open;
//   - a rewrite of the input is what the next hook sees, and the schema and rules are checked on the last one.
package hook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Event is a moment in the life of a session.
type Event string

// The events.
const (
	SessionStart Event = "session-start"
	PreToolUse   Event = "pre-tool-use"
	PostToolUse  Event = "post-tool-use"
	Stop         Event = "stop"
)

// Events lists them.
func Events() []Event { return []Event{SessionStart, PreToolUse, PostToolUse, Stop} }

// ParseEvent reads the name of an event; pre_tool_use is taken for pre-tool-use.
func ParseEvent(name string) (Event, error) {
	e := Event(strings.ReplaceAll(strings.TrimSpace(name), "_", "-"))
	if !slices.Contains(Events(), e) {
		return "", fmt.Errorf("unknown event %q: the events are session-start, pre-tool-use, post-tool-use and stop", name)
	}
	return e, nil
}

// OfTool reports whether the event is about a call, so that a hook's match applies.
func (e Event) OfTool() bool { return e == PreToolUse || e == PostToolUse }

// Concerns reports whether a hook is to be asked at an event. For the events of a tool call, calls is what the permission
// engine is asked about it (one request for each thing the call acts on), with the input as earlier hooks left it; one of
// them has to match. For the other events it is ignored. A match that cannot be read matches every call, since a guard that
// runs too often does less harm than one that never does.
func Concerns(h *capability.Hook, event Event, calls []policy.Request) bool {
	if own, err := ParseEvent(h.Event); err != nil || own != event {
		return false
	}
	if h.Match == "" || !event.OfTool() {
		return true
	}
	pattern, err := policy.ParsePattern(h.Match)
	return err != nil || slices.ContainsFunc(calls, pattern.Matches)
}

// Input is what a hook is told on its stdin.
type Input struct {
	Event     Event  `json:"event"`
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`            // the workspace, absolute
	Tool      *Tool  `json:"tool,omitempty"` // the call, for the events of one
	Text      string `json:"text,omitempty"` // the result after a call, the answer at a stop
}

// Tool is a call as a hook sees it.
type Tool struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // one JSON object
}

// MaxInput is the largest input a hook is given, in bytes of JSON. A longer Text is cut to fit; a call is never cut,
// because a hook that judged part of it would judge something else.
const MaxInput = 8 << 20

// Encode is the input as one line of JSON with its newline.
func (in Input) Encode() ([]byte, error) {
	const room = 64 << 10 // for the escapes of a cut text and the other fields
	if longest := MaxInput/2 - room; len(in.Text) > longest {
		in.Text = strings.ToValidUTF8(in.Text[:longest], "")
	}
	line, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the input: %w", err)
	}
	if len(line) > MaxInput {
		return nil, fmt.Errorf("the input has %d bytes, more than the %d a hook is given", len(line), MaxInput)
	}
	return append(line, '\n'), nil
}
