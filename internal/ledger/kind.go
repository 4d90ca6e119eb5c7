package ledger

import (
	"encoding/json"
)

// Kind says what an entry records. The words are part of the stored format.
type Kind string

// The kinds; each belongs to the body type of the same name.
const (
	KindSessionOpened     Kind = "session_opened"
	KindSessionActivated  Kind = "session_activated"
	KindTurnBegan         Kind = "turn_began"
	KindEpochChanged      Kind = "capability_epoch_changed"
	KindInterfaceStored   Kind = "interface_stored"
	KindToolsLoaded       Kind = "tools_loaded"
	KindCallStarted       Kind = "call_started"
	KindCallFinished      Kind = "call_finished"
	KindCallRefused       Kind = "call_refused"
	KindTurnEnded         Kind = "turn_ended"
	KindCapabilityRevoked Kind = "capability_revoked"
	KindHookRan           Kind = "hook_ran"
	KindCommandExpanded   Kind = "command_expanded"
	KindWorkerOpened      Kind = "worker_opened"
	KindApprovalAsked     Kind = "approval_asked"
	KindApprovalSettled   Kind = "approval_settled"
	KindSessionPassivated Kind = "session_passivated"
	KindSessionClosed     Kind = "session_closed"
)

// Kind of SessionOpened.
func (SessionOpened) Kind() Kind { return KindSessionOpened }

// Kind of SessionActivated.
func (SessionActivated) Kind() Kind { return KindSessionActivated }

// Kind of TurnBegan.
func (TurnBegan) Kind() Kind { return KindTurnBegan }

// Kind of EpochChanged.
func (EpochChanged) Kind() Kind { return KindEpochChanged }

// Kind of InterfaceStored.
func (InterfaceStored) Kind() Kind { return KindInterfaceStored }

// Kind of ToolsLoaded.
func (ToolsLoaded) Kind() Kind { return KindToolsLoaded }

// Kind of CallStarted.
func (CallStarted) Kind() Kind { return KindCallStarted }

// Kind of CallFinished.
func (CallFinished) Kind() Kind { return KindCallFinished }

// Kind of CallRefused.
func (CallRefused) Kind() Kind { return KindCallRefused }

// Kind of TurnEnded.
func (TurnEnded) Kind() Kind { return KindTurnEnded }

// Kind of CapabilityRevoked.
func (CapabilityRevoked) Kind() Kind { return KindCapabilityRevoked }

// Kind of HookRan.
func (HookRan) Kind() Kind { return KindHookRan }

// Kind of CommandExpanded.
func (CommandExpanded) Kind() Kind { return KindCommandExpanded }

// Kind of WorkerOpened.
func (WorkerOpened) Kind() Kind { return KindWorkerOpened }

// Kind of ApprovalAsked.
func (ApprovalAsked) Kind() Kind { return KindApprovalAsked }

// Kind of ApprovalSettled.
func (ApprovalSettled) Kind() Kind { return KindApprovalSettled }

// Kind of SessionPassivated.
func (SessionPassivated) Kind() Kind { return KindSessionPassivated }

// Kind of SessionClosed.
func (SessionClosed) Kind() Kind { return KindSessionClosed }

// decoders has one row a kind; Known and DecodeBody both read it.
var decoders = map[Kind]func(json.RawMessage) (Body, error){
	KindSessionOpened:     decodeAs[SessionOpened],
	KindSessionActivated:  decodeAs[SessionActivated],
	KindTurnBegan:         decodeAs[TurnBegan],
	KindEpochChanged:      decodeAs[EpochChanged],
	KindInterfaceStored:   decodeAs[InterfaceStored],
	KindToolsLoaded:       decodeAs[ToolsLoaded],
	KindCallStarted:       decodeAs[CallStarted],
	KindCallFinished:      decodeAs[CallFinished],
	KindCallRefused:       decodeAs[CallRefused],
	KindTurnEnded:         decodeAs[TurnEnded],
	KindCapabilityRevoked: decodeAs[CapabilityRevoked],
	KindHookRan:           decodeAs[HookRan],
	KindCommandExpanded:   decodeAs[CommandExpanded],
	KindWorkerOpened:      decodeAs[WorkerOpened],
	KindApprovalAsked:     decodeAs[ApprovalAsked],
	KindApprovalSettled:   decodeAs[ApprovalSettled],
	KindSessionPassivated: decodeAs[SessionPassivated],
	KindSessionClosed:     decodeAs[SessionClosed],
}

// Known reports whether this build knows the kind.
func (k Kind) Known() bool { _, ok := decoders[k]; return ok }

// DecodeBody reads the body of an entry into the type of its kind, a value and never a pointer. Fields it does not know
// are left out. It returns ledger_corrupt for a body that is not of its kind.
func DecodeBody(e Entry) (Body, error) {
	decode, ok := decoders[e.Kind]
	if !ok {
		return nil, corrupt(e.Session, e.Seq, "its kind is not known to this version")
	}
	body, err := decode(e.Body)
	if err != nil {
		return nil, corrupt(e.Session, e.Seq, "its body is not that of a "+string(e.Kind)).WithCause(err)
	}
	return body, nil
}

func decodeAs[T Body](raw json.RawMessage) (Body, error) {
	var body T
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	return body, nil
}
