package actorkit

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// protoContext is protoactor's side of one actor.
type protoContext interface {
	actor.MessageInvoker
	actor.Context
}

// cell is one incarnation of one actor: its queue, its life and what it owns. To protoactor it is the actor and the
// supervisor of its children. Everything but box and the address is touched only by the worker that runs the cell.
//
// Protoactor knows no children of ours (they are spawned beside its own bookkeeping), so the order of a stop is decided
// here alone: beginStop closes the doors, tryFinish lets protoactor end the actor once nothing depends on it.
type cell struct {
	box      mailbox
	ctx      Context
	user     Actor
	self     *address
	sys      *System
	proto    protoContext // set before the first message
	kind     string
	strategy Strategy
	current  *ask // the ask being handled, until it is answered or captured
	owned    *owned
	parent   *cell // nil for those the System spawned
	started  bool  // Receive(Started) has returned
	closing  bool  // the stop has begun
	finished bool  // protoactor was told to end the actor
}

// owned is what only some actors have: made on first use, to keep idle ones small.
type owned struct {
	children map[*actor.PID]*childRecord
	timers   map[*timer]struct{}
	effects  *effectScope
	debts    debts
}

type childRecord struct {
	cell   *cell
	reason error // why it was stopped, when it failed
}

// finishStop is the system message of the last effect to return while its actor stops.
type finishStop struct{}

// failure travels through protoactor as the reason of a Failure.
type failure struct {
	cell     *cell
	reason   *PanicError
	starting bool // it had not handled Started
}

// These are shared because protoactor only looks at their type.
var (
	stopMessage = &actor.Stop{}

	_ actor.Actor              = (*cell)(nil)
	_ actor.SupervisorStrategy = (*cell)(nil)
	_ actor.Mailbox            = (*mailbox)(nil)
)

func (c *cell) ref() Ref { return Ref{c.self} }

// own returns c.owned, made if need be.
func (c *cell) own() *owned {
	if c.owned == nil {
		c.owned = &owned{}
	}
	return c.owned
}

// handle delivers one message of the control or user lane. It is not called once the stop has begun (H4).
func (c *cell) handle(msg any) {
	switch m := msg.(type) {
	case *ask:
		c.handleAsk(m)
	case *timer:
		if c.expired(m) {
			c.user.Receive(&c.ctx, m.msg)
		}
	default:
		c.user.Receive(&c.ctx, msg)
	}
}

func (c *cell) handleAsk(a *ask) {
	if a.settled.Load() {
		return // the asker gave up; work nobody waits for is not begun
	}
	c.current = a
	c.user.Receive(&c.ctx, a.msg)
	c.current = nil
	if a.owed.Load() == nil {
		a.settle(vakerr.New(vakerr.Internal, "actor %q gives no answer to a %T", c.ref(), a.msg))
	}
}

// handleSystem acts upon one lifecycle message. User code runs in here for Started and ChildStopped, and guarded for
// Stopping and Stopped.
func (c *cell) handleSystem(msg any) {
	switch msg.(type) {
	case *actor.SuspendMailbox:
		c.box.suspend(true)
	case *actor.ResumeMailbox:
		c.box.suspend(false)
	case *actor.Stop:
		c.beginStop()
	case *actor.Restart, finishStop:
	default:
		c.proto.InvokeSystemMessage(msg)
	}
	c.tryFinish()
}

// Receive is called by protoactor, from within InvokeSystemMessage.
func (c *cell) Receive(pc actor.Context) {
	switch m := pc.Message().(type) {
	case *actor.Started:
		c.user.Receive(&c.ctx, Started{})
		c.started = true
	case *actor.Terminated:
		c.childStopped(m.Who)
	case *actor.Stopped:
		c.stopped()
	}
}

// beginStop rejects what is queued, tells the actor, and stops what it owns. A second Stop only does the last again.
func (c *cell) beginStop() {
	if !c.closing {
		c.closing = true
		for _, msg := range c.box.close() {
			c.deadLetter(msg)
		}
		c.guarded(Stopping{})
	}
	if c.owned == nil {
		return
	}
	c.owned.stopTimers()
	c.owned.cancelEffects(stoppedError(c.ref()))
	for _, child := range c.owned.children {
		child.cell.box.PostSystemMessage(stopMessage)
	}
}

// tryFinish ends a stopping actor once its children and effects are gone. It leads to stopped.
func (c *cell) tryFinish() {
	if !c.closing || c.finished || c.box.effectsInFlight() > 0 {
		return
	}
	if c.owned != nil && len(c.owned.children) > 0 {
		return
	}
	c.finished = true
	c.proto.InvokeSystemMessage(stopMessage)
}

// stopped runs when protoactor has taken the actor from its registry; the parent is told right after.
func (c *cell) stopped() {
	c.guarded(Stopped{})
	c.self.cell.Store(nil)
	if c.owned != nil {
		c.owned.debts.fail(stoppedError(c.ref()))
	}
	c.sys.forget(c)
}

// guarded delivers a message of the stop. A panic in there must not keep the actor alive, nor its parent waiting (H1, H2).
func (c *cell) guarded(msg any) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil {
			v = errGoexit
		}
		c.report(newPanicError(v), "actor failed while it stopped")
	}()
	c.user.Receive(&c.ctx, msg)
	returned = true
}

func (c *cell) childStopped(who *actor.PID) {
	if c.owned == nil {
		return
	}
	record, known := c.owned.children[who]
	if !known {
		return
	}
	delete(c.owned.children, who)
	if !c.closing {
		a := record.cell.self
		c.user.Receive(&c.ctx, ChildStopped{Child: Ref{a}, Name: a.name(), Reason: record.reason})
	}
}

// failed is called in the deferred function that caught a panic of this actor. The parent decides what follows.
func (c *cell) failed(reason *PanicError) {
	if a := c.current; a != nil {
		c.current = nil
		a.settle(vakerr.New(vakerr.Internal, "actor %q failed at a %T", c.ref(), a.msg).WithCause(reason))
	}
	c.report(reason, "actor failed")
	c.proto.EscalateFailure(&failure{cell: c, reason: reason, starting: !c.started}, nil)
}

// HandleFailure decides about a failed child, in the parent.
func (c *cell) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	f, ours := reason.(*failure)
	if !ours {
		return
	}
	if !f.starting && !c.closing && c.sys.decide(c.strategy, f) == Resume {
		sup.ResumeChildren(who)
		return
	}
	if c.owned != nil {
		if record, known := c.owned.children[who]; known {
			record.reason = f.reason
		}
	}
	f.cell.box.PostSystemMessage(stopMessage)
}

// deadLetter disposes of a message that will not be handled: its asker, if any, learns that at once.
func (c *cell) deadLetter(msg any) {
	switch m := msg.(type) {
	case *ask:
		m.settle(stoppedError(c.ref()))
	case Undelivered:
		m.Undelivered(stoppedError(c.ref()))
	case *timer, EffectPanicked:
		return // the actor's own; nobody else waits for it
	}
	c.sys.deadLetters.Add(1)
}

// report logs a failure without anything of the message that led to it (H20).
func (c *cell) report(reason *PanicError, text string) {
	c.sys.panics.Add(1)
	c.sys.logger.Error(text, //nolint:sloglint // one of four constants
		slog.String("actor", c.self.path), slog.String("kind", c.kind),
		slog.String("reason", PublicReason(reason.Value)), slog.String("stack", string(reason.Stack)))
}
