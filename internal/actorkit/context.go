package actorkit

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Context is what an actor can do. It may be used only within Receive, by the goroutine that called it; effects and
// other goroutines use Refs and Repliers.
type Context struct{ c *cell }

// Self is the Ref of this actor.
func (x *Context) Self() Ref { return x.c.ref() }

// Tell sends and forgets: a message that cannot be queued counts as a dead letter. Use Ref.Tell to learn why.
func (x *Context) Tell(to Ref, msg any) {
	if err := to.Tell(msg); err != nil {
		x.c.sys.deadLetters.Add(1)
	}
}

// Reply answers the Ask being handled; an error becomes the error of Ask. It does nothing for a message nobody asked, and
// the first answer wins.
func (x *Context) Reply(v any) {
	if a := x.c.current; a != nil {
		a.settle(v)
	}
}

// Replier captures the Ask being handled, to be answered later. An Ask that is neither answered nor captured when Receive
// returns fails with internal_error.
func (x *Context) Replier() Replier {
	a := x.c.current
	if a != nil && a.owed.Load() == nil && !a.settled.Load() {
		x.c.own().debts.add(a)
	}
	return Replier{a}
}

// Adopt takes over an answer that another actor captured and sent here: from now on the asker gets actor_stopped when this
// actor stops first, and no longer when the other one does.
func (x *Context) Adopt(r Replier) {
	if r.a == nil {
		return
	}
	before := r.a.owed.Load()
	x.c.own().debts.add(r.a)
	if before != nil && before != r.a.owed.Load() {
		before.paid(r.a)
	}
	if r.a.settled.Load() {
		x.c.own().debts.paid(r.a) // it was answered meanwhile
	}
}

// Spawn starts a child. The kit makes the path unique, so a name may be used again at any time; whether two children of
// one name make sense is the parent's affair. It fails with invalid_request for a bad name, internal_error when New
// panicked or returned nil, actor_stopped when this actor is stopping.
func (x *Context) Spawn(name string, p Props) (Ref, error) {
	c := x.c
	if c.closing {
		return Ref{}, stoppedError(c.ref())
	}
	child, err := c.sys.newCell(c.self.path, name, p)
	if err != nil {
		return Ref{}, err
	}
	child.parent = c
	pid, err := c.sys.spawn(child, c.proto)
	if err != nil {
		return Ref{}, err
	}
	own := c.own()
	if own.children == nil {
		own.children = make(map[*actor.PID]*childRecord)
	}
	own.children[pid] = &childRecord{cell: child}
	return child.ref(), nil
}

// Stop tells a child to stop; it overtakes what the child has queued. ChildStopped follows when it is done. A Ref that is
// not a running child of this actor is ignored.
func (x *Context) Stop(child Ref) {
	if child.a == nil {
		return
	}
	if c := child.a.cell.Load(); c != nil && c.parent == x.c {
		c.box.PostSystemMessage(stopMessage)
	}
}

// StopSelf stops this actor after the message being handled; what is queued is rejected.
func (x *Context) StopSelf() { x.c.box.PostSystemMessage(stopMessage) }

// Now is the current time. In a testing/synctest bubble it is the bubble's.
func (x *Context) Now() time.Time { return time.Now() }

// Log is the System's logger with the path and the kind of this actor. Never log a message or a part of one that comes
// from outside.
func (x *Context) Log() *slog.Logger {
	return x.c.sys.logger.With(slog.String("actor", x.c.self.path), slog.String("kind", x.c.kind))
}
