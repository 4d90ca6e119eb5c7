package ledger

import (
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Body is the content of an entry; its type belongs to the kind. Digests are lower-case hex SHA-256. Arguments and
// results arrive as they were sent and bounded: what is written here is never taken back.
type Body interface {
	// Kind is the kind of the entries that hold this body.
	Kind() Kind
}

// SessionOpened is always entry 1. The store writes it.
type SessionOpened struct {
	Owner      string            `json:"owner"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// SessionActivated is the first entry of every later epoch. The store writes it, so the ledger itself tells who wrote
// what.
type SessionActivated struct {
	Owner string `json:"owner"`
}

// TurnBegan binds a turn to a published set.
type TurnBegan struct {
	Turn            string           `json:"turn"`
	CapabilityEpoch capability.Epoch `json:"capability_epoch"`
	SetDigest       string           `json:"set_digest"`
	Channel         string           `json:"channel,omitempty"`
	Interface       string           `json:"interface,omitempty"` // digest of an InterfaceStored of this session
	Implicit        bool             `json:"implicit,omitempty"`  // a burst of calls that named no turn
	Started         bool             `json:"started,omitempty"`   // hooks were told of the start of the session, in this turn or an earlier one
	Loaded          []string         `json:"loaded,omitempty"`    // what readings and searches have loaded so far, in order
	Deferred        []string         `json:"deferred,omitempty"`
	Allowed         []string         `json:"allowed,omitempty"`  // rules that answers have left to the session so far
	Misreads        uint64           `json:"misreads,omitempty"` // of all turns before this one
}

// ToolsLoaded says which tools are loaded for the rest of the session since a search, behind what was loaded before.
type ToolsLoaded struct {
	Turn  string   `json:"turn"`
	Tools []string `json:"tools"`
}

// EpochChanged says what the session was told between two turns.
type EpochChanged struct {
	From      capability.Epoch `json:"from"`
	To        capability.Epoch `json:"to"`
	SetDigest string           `json:"set_digest"` // of the set of To
	Delta     capability.Delta `json:"delta"`
}

// InterfaceStored keeps what a model is shown, once for all turns that are shown the same.
type InterfaceStored struct {
	Digest    string          `json:"digest"` // of Interface; epoch numbers are no part of it
	Interface json.RawMessage `json:"interface"`
}

// CallStarted is durable before the effect of a call begins.
type CallStarted struct {
	Turn            string          `json:"turn"`
	Call            string          `json:"call"`
	Capability      capability.ID   `json:"capability"`
	Address         string          `json:"address"` // as the caller spelled it
	ArgumentsDigest string          `json:"arguments_digest"`
	Arguments       json.RawMessage `json:"arguments,omitempty"` // left out when they are too large
	Repaired        bool            `json:"repaired,omitempty"`  // the address was mended before it resolved
}

// CallOutcome is how a started call ended.
type CallOutcome string

// The outcomes. Unknown means that the effect may or may not have happened.
const (
	CallOK      CallOutcome = "ok"
	CallFailed  CallOutcome = "failed"
	CallUnknown CallOutcome = "unknown"
)

// CallFinished follows a CallStarted of the same call.
type CallFinished struct {
	Turn           string          `json:"turn"`
	Call           string          `json:"call"`
	Outcome        CallOutcome     `json:"outcome"`
	ResultDigest   string          `json:"result_digest,omitempty"`
	ResultBytes    int64           `json:"result_bytes"`
	Result         json.RawMessage `json:"result,omitempty"` // what the model was shown; left out when too large
	DurationMicros int64           `json:"duration_us"`
	Error          *Failure        `json:"error,omitempty"`
}

// CallRefused is a call that never started. Capability is zero when the address did not resolve.
type CallRefused struct {
	Turn       string        `json:"turn"`
	Call       string        `json:"call"`
	Capability capability.ID `json:"capability,omitzero"`
	Address    string        `json:"address"`
	Error      Failure       `json:"error"`
}

// TurnEnded closes a turn.
type TurnEnded struct {
	Turn    string   `json:"turn"`
	Reason  string   `json:"reason,omitempty"`  // empty: the caller ended it
	Misread []string `json:"misread,omitempty"` // tools that were used although the reading did not ask for them
	Stops   int      `json:"stops,omitempty"`   // how often in a row by now hooks kept the run from stopping
}

// CapabilityRevoked says that a revocation reached the session.
type CapabilityRevoked struct {
	Capability capability.ID `json:"capability"`
	Reason     string        `json:"reason"`
}

// HookRan is one run of a hook.
type HookRan struct {
	Turn           string        `json:"turn,omitempty"`
	Call           string        `json:"call,omitempty"` // empty: the hook ran for no call
	Hook           capability.ID `json:"hook"`
	Event          string        `json:"event"`
	Decision       string        `json:"decision"` // what the hook, or its failure mode, decided
	DurationMicros int64         `json:"duration_us"`
	InputBefore    string        `json:"input_before,omitempty"` // digest of the tool's input, where the hook has rewritten it
	InputAfter     string        `json:"input_after,omitempty"`
	InputIgnored   bool          `json:"input_ignored,omitempty"` // it wanted to rewrite the input, and the operator has turned that off
	Context        string        `json:"context,omitempty"`       // digest of what it wants the model to know
	Error          *Failure      `json:"error,omitempty"`
}

// CommandExpanded is one slash command that became a prompt.
type CommandExpanded struct {
	Turn    string        `json:"turn"`
	Command capability.ID `json:"command"`
	Digest  string        `json:"digest"` // of the expanded text
}

// WorkerOpened says that another session works for a turn of this one from now on. That one's attributes say the rest.
type WorkerOpened struct {
	Turn   string    `json:"turn"`
	Worker SessionID `json:"worker"`
}

// ApprovalAsked is durable before a person can answer: what exactly is to be approved.
type ApprovalAsked struct {
	Turn          string        `json:"turn"`
	Call          string        `json:"call"`
	Approval      string        `json:"approval"`
	Capability    capability.ID `json:"capability"`
	Action        string        `json:"action"`         // what is asked for, as a rule would name it
	Reason        string        `json:"reason"`         // why it is asked
	Rule          string        `json:"rule,omitempty"` // that asked; empty: the mode or a hook did
	WrittenDigest string        `json:"written_digest"` // of the arguments as the caller wrote them
	InputDigest   string        `json:"input_digest"`   // of the arguments that would run: after a repair and the hooks
	Policy        string        `json:"policy,omitempty"`
	DeadlineMS    int64         `json:"deadline_ms"` // Unix time
}

// ApprovalOutcome is how an approval ended.
type ApprovalOutcome string

// The outcomes. Only Allowed and NotNeeded let a call go on.
const (
	ApprovalAllowed   ApprovalOutcome = "allowed"    // a person said yes
	ApprovalRejected  ApprovalOutcome = "rejected"   // a person said no
	ApprovalExpired   ApprovalOutcome = "expired"    // nobody answered in time, or before the daemon ended
	ApprovalWithdrawn ApprovalOutcome = "withdrawn"  // the call was given up, or a revocation or the policy forbade it
	ApprovalNotNeeded ApprovalOutcome = "not_needed" // the policy allows it meanwhile
)

// ApprovalSettled follows an ApprovalAsked of the same approval.
type ApprovalSettled struct {
	Turn      string          `json:"turn"`
	Call      string          `json:"call"`
	Approval  string          `json:"approval"`
	Outcome   ApprovalOutcome `json:"outcome"`
	Scope     string          `json:"scope,omitempty"` // of an allowed one: once, session or workspace
	Rules     []string        `json:"rules,omitempty"` // what is allowed from now on, where the scope is wider than once
	By        string          `json:"by,omitempty"`    // who answered, as the answer says
	Reason    string          `json:"reason,omitempty"`
	WaitedMS  int64           `json:"waited_ms"`
	ErrorCode vakerr.Code     `json:"error_code,omitempty"` // what the call was refused with
}

// SessionPassivated ends an activation in order.
type SessionPassivated struct {
	Reason string `json:"reason,omitempty"`
}

// SessionClosed ends the session. Nothing can follow it.
type SessionClosed struct {
	Reason string `json:"reason,omitempty"`
}

// Failure is the public face of an error.
type Failure struct {
	Code   vakerr.Code `json:"code"`
	Reason string      `json:"reason"`
	Remedy string      `json:"remedy,omitempty"`
}

// FailureOf is the public face of err; what vakerr.From hides stays hidden. err is not nil.
func FailureOf(err error) Failure {
	e := vakerr.From(err)
	return Failure{e.Code, e.Reason, e.Remedy}
}
