// Package approval decides what becomes of a question to a person: which questions may wait, how long, which answer
// counts, and what it allows.
//
// An approval belongs to one call of one session: to a capability, to the exact input that would run, by its digest, and
// to the policy that asked. It is settled once: by an answer, by its deadline, or because the call, or the right to make
// it, went away; whatever comes later changes nothing and is told why. Answers come from an operator's front alone; no
// tool and nothing that a model says leads here. An answer may allow more than once only by the rules that the question
// itself names, which are never wider than what was asked.
//
// The package asks nobody and waits for nothing: a Book is told what happens, with the time, by the one goroutine that owns
// it.
package approval

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of how long an approval may wait.
const (
	DefaultTimeout = 5 * time.Minute
	MaxTimeout     = time.Hour
)

// Request is one question. It is never changed.
type Request struct {
	ID      string
	Session string
	Turn    string
	Call    string
	Channel string

	Capability capability.ID
	Action     string // what is asked for, as a rule would name it: mcp(github/create_issue)
	Reason     string // why it is asked: one sentence, lower case, no full stop
	Rule       string // that asks; empty: the mode or a hook does

	Arguments     json.RawMessage // that would run, in full
	WrittenDigest string          // of the arguments as the caller wrote them
	InputDigest   string          // of Arguments: an answer counts for exactly these
	Policy        string          // revision of the policy that asked

	// Rules are what an answer for more than this call would allow from then on. Empty: it can be allowed once only.
	Rules []string
}

// Scope is how far an allowing answer reaches.
type Scope string

// The scopes. The wider ones leave rules behind.
const (
	Once      Scope = "once"
	Session   Scope = "session"
	Workspace Scope = "workspace"
)

// Answer is what a person says.
type Answer struct {
	ID          string
	Allow       bool
	Scope       Scope  // of an allowing one; empty means Once
	By          string // who says it
	Reason      string // shown to the model after a denial
	InputDigest string // of what the person was shown; empty: whatever the question is about
}

// Settlement is the end of one question.
type Settlement struct {
	Outcome ledger.ApprovalOutcome // after Allowed and NotNeeded the call goes on, once the policy was asked again
	Scope   Scope                  // of an allowing answer
	Rules   []string               // of an answer that allows more than once
	By      string
	Reason  string

	InputDigest string        // what it is about
	Err         *vakerr.Error // what the call is refused with; nil: it may go on
}

// Verdict is what the policy in force says of a call that waits.
type Verdict struct {
	Asks    bool
	Refusal *vakerr.Error // it may not run, whatever a person says
}

// Pending is a question that waits.
type Pending struct {
	Request
	Asked    time.Time
	Deadline time.Time
}

// Bounds of an answer, in bytes.
const (
	maxBy     = 128
	maxReason = 1 << 10
)

// check refuses an answer that can never count.
func (a Answer) check() error {
	switch {
	case a.Scope != Once && a.Scope != Session && a.Scope != Workspace:
		return vakerr.New(vakerr.InvalidRequest, "an answer holds for once, session or workspace, not for %.32q", a.Scope)
	case !a.Allow && a.Scope != Once:
		return vakerr.New(vakerr.InvalidRequest, "a denial holds for the one call that asks").
			WithRemedy("to deny it from now on, add a rule to deny in [permissions]")
	case len(a.By) > maxBy || !oneLine(a.By):
		return vakerr.New(vakerr.InvalidRequest, "who answers is named in at most %d bytes, on one line", maxBy)
	case len(a.Reason) > maxReason || !oneLine(strings.ReplaceAll(a.Reason, "\n", " ")):
		return vakerr.New(vakerr.InvalidRequest, "the reason of an answer has at most %d bytes of plain text", maxReason)
	}
	return nil
}

func oneLine(text string) bool {
	return strings.ToValidUTF8(text, "") == text && !strings.ContainsFunc(text, unicode.IsControl)
}
