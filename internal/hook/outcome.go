package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
)

// Run is how the command of a hook ended.
type Run struct {
	StartError string // why it did not start, in words for everyone; empty when it did
	TimedOut   bool
	ExitCode   int // -1 when a signal ended it
	Stdout     []byte
	Stderr     []byte
	Truncated  bool // stdout was longer than Stdout
}

// Verdict is the opinion of a hook.
type Verdict uint8

// The verdicts.
const (
	NoOpinion Verdict = iota
	Approve
	Block
)

// String is the word that reports print.
func (v Verdict) String() string {
	switch v {
	case Approve:
		return "approve"
	case Block:
		return "block"
	case NoOpinion:
	}
	return "no opinion"
}

// Outcome is what one hook said.
type Outcome struct {
	Verdict Verdict
	Reason  string          // of a block; never empty then
	Input   json.RawMessage // what the tool's input is to be; nil: as it is
	Failure string          // why the hook gave no opinion of its own; empty: it did its work
}

// exitBlock is the exit status by which a hook blocks without writing JSON.
const exitBlock = 2

// Judge reads how a hook ended. Exit 2 blocks, with stderr as the reason; exit 0 with nothing on stdout is no opinion;
// exit 0 with JSON is what it says; everything else is a failure, which the hook's failure mode decides.
func Judge(h *capability.Hook, run Run) Outcome {
	switch {
	case h.Refusal != "":
		return failed(h, "its definition cannot be used: "+h.Refusal)
	case run.StartError != "":
		return failed(h, "it did not start: "+run.StartError)
	case run.TimedOut:
		return failed(h, fmt.Sprintf("it took longer than %s", h.Timeout))
	case run.ExitCode == exitBlock:
		return Outcome{Verdict: Block, Reason: reason(string(run.Stderr))}
	case run.ExitCode < 0:
		return failed(h, "a signal ended it")
	case run.ExitCode != 0:
		return failed(h, fmt.Sprintf("it ended with exit status %d", run.ExitCode))
	case len(bytes.TrimSpace(run.Stdout)) == 0:
		return Outcome{}
	case run.Truncated:
		return failed(h, "its answer is too long")
	}
	out, err := decodeAnswer(run.Stdout)
	if err != nil {
		return failed(h, err.Error())
	}
	return out
}

// failed is the outcome of a hook without an opinion. An unknown failure mode counts as fail-closed.
func failed(h *capability.Hook, why string) Outcome {
	o := Outcome{Failure: why}
	if h.FailureMode != capability.FailOpen {
		o.Verdict, o.Reason = Block, "it is fail-closed and failed: "+why
	}
	return o
}

// answer is the JSON a hook may print.
type answer struct {
	Decision string          `json:"decision"` // block, approve or absent
	Reason   string          `json:"reason"`
	Input    json.RawMessage `json:"input"` // replaces the tool's input; an object
}

func decodeAnswer(stdout []byte) (Outcome, error) {
	var a *answer
	if err := json.Unmarshal(stdout, &a); err != nil || a == nil {
		return Outcome{}, fmt.Errorf("its answer is not the JSON object {decision, reason}")
	}
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
	if input := bytes.TrimSpace(a.Input); len(input) > 0 && !bytes.Equal(input, []byte("null")) {
		if input[0] != '{' {
			return Outcome{}, fmt.Errorf("the input it wants is no JSON object")
		}
		o.Input = input
	}
	return o, nil
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
