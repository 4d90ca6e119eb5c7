package actorkit

import (
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Actor is a thin shell around a decision: it owns state that no other goroutine touches.
//
// Receive is called by one goroutine at a time, with one of the lifecycle messages of this package or with whatever was
// sent. It must not block. The Context is valid for the life of the actor, but only within Receive.
type Actor interface {
	Receive(c *Context, msg any)
}

// Func is an Actor that is a function.
type Func func(c *Context, msg any)

// Receive calls f.
func (f Func) Receive(c *Context, msg any) { f(c, msg) }

// Props says how to make an actor. It is copied where needed and may be reused for any number of actors.
type Props struct {
	Kind       string       // what it is, for health and logs: "session", "mcpserver"
	New        func() Actor // allocates only; it runs in the spawner's goroutine, so building belongs into Started
	Mailbox    int          // bound of queued messages that are not Control; 0 or less: DefaultMailbox
	Supervisor Strategy     // what becomes of this actor's children when they fail; nil: they are stopped
}

// DefaultMailbox is the bound of an actor whose Props name none.
const DefaultMailbox = 1024

// Strategy decides what becomes of a child that failed. It runs in the parent, between two of its messages, and must not
// block. A Strategy that panics has decided for Stop.
type Strategy func(Failure) Directive

// Failure is what a Strategy knows.
type Failure struct {
	Child  Ref
	Name   string // as given to Spawn
	Kind   string
	Reason *PanicError
}

// Directive is the decision of a Strategy.
type Directive uint8

const (
	// Stop ends the child; the parent hears ChildStopped with the reason.
	Stop Directive = iota
	// Resume drops the message that failed and goes on with state, children and queue as they are.
	Resume
)

// ResumeChildren is the Strategy for actors that must keep their children through a failure of their own: directories and
// supervisors, whose state a single bad message does not spoil.
func ResumeChildren(Failure) Directive { return Resume }

// maxName is the bound of a name given to Spawn, in bytes.
const maxName = 256

func checkName(name string) error {
	switch {
	case name == "":
		return vakerr.New(vakerr.InvalidRequest, "an actor needs a name")
	case len(name) > maxName:
		return vakerr.New(vakerr.InvalidRequest, "the name of an actor is %d bytes long, at most %d are allowed", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return vakerr.New(vakerr.InvalidRequest, "the name %q of an actor holds control characters", name)
	}
	return nil
}
