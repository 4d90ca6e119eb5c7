package actorkit

import (
	"context"
	"time"
)

// Effect is one running piece of work of an actor, a comparable handle; the zero Effect never ran.
type Effect struct{ e *effect }

type effect struct{ cancel context.CancelCauseFunc }

// effectScope is the context all effects of one actor descend from. It is stored because the actor is its owner: it is
// cancelled when the actor stops.
type effectScope struct {
	ctx    context.Context //nolint:containedctx // see above
	cancel context.CancelCauseFunc
}

// Go runs work on a goroutine of its own and posts what it returns back as a message; nil posts nothing, a panic
// posts EffectPanicked. The work gets a context that is cancelled by Effect.Cancel and when the actor stops. The actor's
// stop waits for it, so work must heed its context. A result that comes after the stop began is dropped. Once the actor
// is stopping, Go does nothing and returns the zero Effect.
func (x *Context) Go(work func(ctx context.Context) any) Effect {
	c := x.c
	if c.closing {
		return Effect{}
	}
	own := c.own()
	if own.effects == nil {
		ctx, cancel := context.WithCancelCause(context.Background())
		own.effects = &effectScope{ctx, cancel}
	}
	ctx, cancel := context.WithCancelCause(own.effects.ctx)
	e := Effect{&effect{cancel}}
	c.box.effectStarted()
	c.sys.workers.schedule(&performance{c, ctx, e, work})
	return e
}

// performance is an effect that is to be run.
type performance struct {
	cell *cell
	ctx  context.Context //nolint:containedctx // of the work, and gone with it
	e    Effect
	work func(context.Context) any
}

// run is called by a worker.
func (p *performance) run() { p.cell.perform(p.ctx, p.e, p.work) }

// perform does the work of an effect.
func (c *cell) perform(ctx context.Context, e Effect, work func(context.Context) any) {
	var result any
	returned := false
	defer func() {
		e.e.cancel(nil)
		if !returned {
			v := recover()
			if v == nil {
				v = errGoexit
			}
			reason := newPanicError(v)
			c.report(reason, "effect failed")
			result = EffectPanicked{Effect: e, Reason: reason}
		}
		c.box.effectReturned(result)
	}()
	result = work(ctx)
	returned = true
}

// Cancel cancels the context of the work; cause is what context.Cause shows there. Its result still comes. Cancel may be
// called at any time and any number of times.
func (e Effect) Cancel(cause error) {
	if e.e != nil {
		e.e.cancel(cause)
	}
}

func (o *owned) cancelEffects(cause error) {
	if o.effects != nil {
		o.effects.cancel(cause)
	}
}

// Timer is one message to come, a comparable handle; the zero Timer is none.
type Timer struct{ t *timer }

// timer is also the envelope in which the message is queued when it is due.
type timer struct {
	owner *cell
	msg   any
	clock *time.Timer
}

// After posts msg to this actor once, d from now. A timer that is due is never rejected for a full queue. The stop of the
// actor stops its timers; once it is stopping, After does nothing and returns the zero Timer.
func (x *Context) After(d time.Duration, msg any) Timer {
	c := x.c
	if c.closing {
		return Timer{}
	}
	t := &timer{owner: c, msg: msg}
	own := c.own()
	if own.timers == nil {
		own.timers = make(map[*timer]struct{})
	}
	own.timers[t] = struct{}{}
	t.clock = time.AfterFunc(d, func() { c.box.post(t, false) })
	return Timer{t}
}

// Stop keeps the message from being delivered, also when it is already queued. It reports whether it did. Only the actor
// that set the timer may call it.
func (t Timer) Stop() bool {
	if t.t == nil || !t.t.owner.expired(t.t) {
		return false
	}
	t.t.clock.Stop()
	return true
}

// expired takes t from the actor's timers and reports whether it was among them.
func (c *cell) expired(t *timer) bool {
	if _, set := c.owned.timers[t]; !set {
		return false
	}
	delete(c.owned.timers, t)
	return true
}

func (o *owned) stopTimers() {
	for t := range o.timers {
		t.clock.Stop()
	}
	o.timers = nil
}
