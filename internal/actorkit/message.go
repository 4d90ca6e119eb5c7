package actorkit

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Control marks a message that overtakes every queued message without the mark and is never rejected for a full queue.
// It is for the few that withdraw work (revocation, cancellation): their number must be bounded by the sender.
type Control interface{ ControlMessage() }

// Undelivered is a message that wants to know when it was queued and its actor stopped before it was handled: it carries
// what must not be lost, for instance somebody's Replier. Undelivered is called once, from any goroutine, and must not
// block.
type Undelivered interface{ Undelivered(why error) }

// Started is the first message an actor receives. It builds here what New did not; a panic here stops the actor whatever
// the parent's Strategy says.
type Started struct{}

// Stopping tells an actor that it must stop. No message but Stopped follows, nothing may be spawned or started any more.
// Running effects have their context cancelled when Receive returns; an actor that failed in Started receives it as well.
type Stopping struct{}

// Stopped is the last message: children and effects have ended. An actor releases here what they used.
type Stopped struct{}

// ChildStopped tells a parent that a child, all its own children and all its effects have ended.
type ChildStopped struct {
	Child  Ref
	Name   string // as given to Spawn
	Reason error  // *PanicError when the child failed; nil when it stopped itself or was told to
}

// EffectPanicked is the result of an effect whose work panicked.
type EffectPanicked struct {
	Effect Effect
	Reason *PanicError
}

// PanicError is the failure of an actor or an effect: what was thrown and where.
//
// Value may hold anything the code had in its hands, also secrets. Error shows it only as far as PublicReason does.
type PanicError struct {
	Value any
	Stack []byte // of the panicking goroutine, as debug.Stack prints it; holds no message content
}

// newPanicError must be called by the deferred function that recovered value, while the panicking frames still stand.
func newPanicError(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

// Error returns the public text of the failure.
func (p *PanicError) Error() string { return "panic: " + PublicReason(p.Value) }

// Unwrap returns the thrown value when that was an error, so that errors.Is and errors.As see typed invariants.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// PublicReason describes a failure in words that may stand in logs and reports: the text of our own errors and of errors
// of the Go runtime, and of everything else only the type, because a foreign text may hold secrets.
func PublicReason(reason any) string {
	if p, ok := reason.(*PanicError); ok {
		return p.Error()
	}
	err, ok := reason.(error)
	if !ok {
		return fmt.Sprintf("a %T was thrown", reason)
	}
	if own, ok := errors.AsType[*vakerr.Error](err); ok {
		return own.Error()
	}
	if rt, ok := errors.AsType[runtime.Error](err); ok {
		return rt.Error()
	}
	return fmt.Sprintf("an error of type %T", err)
}

// errGoexit stands for a goroutine that ended by runtime.Goexit (testing's FailNow does that) in the middle of a message.
var errGoexit = vakerr.New(vakerr.Internal, "the goroutine was ended from within by runtime.Goexit")
