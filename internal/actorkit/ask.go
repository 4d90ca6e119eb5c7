package actorkit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Ask sends msg and waits for the one answer.
//
// It fails with the errors of Tell; with deadline_exceeded or canceled when ctx ends first (always give ctx a deadline);
// with the answer itself when that is an error; with internal_error when the answer is not an R, when the actor panicked,
// or when it handled msg without answering; with actor_stopped when the actor stops before it answered. It never waits
// out its deadline for an actor that is gone. A message whose asker gave up before it was handled is not handled any more.
//
// Ask blocks: call it from goroutines and effects, never within Receive.
func Ask[R any](ctx context.Context, to Ref, msg any) (R, error) {
	var none R
	if ctx.Err() != nil {
		return none, gaveUp(ctx, to)
	}
	if msg == nil {
		return none, to.Tell(nil)
	}
	a := &ask{msg: msg, answer: make(chan any, 1)}
	if err := to.post(a); err != nil {
		return none, err
	}
	var v any
	select {
	case v = <-a.answer:
	case <-ctx.Done():
		if a.settled.CompareAndSwap(false, true) {
			return none, gaveUp(ctx, to)
		}
		v = <-a.answer // it was being answered just now
	}
	if err, failed := v.(error); failed {
		return none, err
	}
	r, ok := v.(R)
	if !ok {
		return none, vakerr.New(vakerr.Internal, "actor %q answered a %T with a %T instead of a %T", to, msg, v, none)
	}
	return r, nil
}

// gaveUp is the error of an asker whose context ended. A typed cause says better than we can why it did.
func gaveUp(ctx context.Context, to Ref) error {
	if why, typed := errors.AsType[*vakerr.Error](context.Cause(ctx)); typed {
		return why
	}
	code, words := vakerr.Canceled, "asking actor %q was cancelled"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code, words = vakerr.DeadlineExceeded, "actor %q did not answer in time"
	}
	return vakerr.New(code, words, to).WithCause(context.Cause(ctx))
}

// ask is the envelope of a message that wants an answer. Whoever swaps settled decides its outcome: the actor, the kit
// on the actor's behalf, or the asker by giving up.
type ask struct {
	msg     any
	answer  chan any // holds the one answer; nil when the asker is a protoactor process
	settled atomic.Bool
	owed    atomic.Pointer[debts] // of the actor that captured the Replier, set before it is handed out; see Context.Adopt

	// The asker when it is a protoactor process: a future or an actor of another node.
	sender *actor.PID
	proto  *actor.ActorSystem
}

// settle reports whether v became the answer: somebody waits for it and gets it.
func (a *ask) settle(v any) bool {
	if owed := a.owed.Load(); owed != nil {
		owed.paid(a) // also when the asker gave up long ago
	}
	if !a.settled.CompareAndSwap(false, true) {
		return false
	}
	if a.sender == nil {
		a.answer <- v
		return true
	}
	if _, failed := v.(*vakerr.Error); failed {
		v = &actor.DeadLetterResponse{} // the one failure protoactor's askers understand
	}
	a.proto.Root.Send(a.sender, v)
	return true
}

// Replier answers one Ask, from any goroutine and at any later time. Only the first answer counts. When the actor stops
// first, the asker gets actor_stopped. The zero Replier, captured from a message nobody asked, does nothing.
type Replier struct{ a *ask }

// Reply gives the answer; an error becomes the error of Ask. It reports whether the asker gets it: what must be given
// back is still the caller's when it returns false.
func (r Replier) Reply(v any) bool {
	return r.a != nil && r.a.settle(v)
}

// Wanted reports whether anybody still waits for the answer.
func (r Replier) Wanted() bool { return r.a != nil && !r.a.settled.Load() }

// debts are the captured and unanswered asks of one actor. The lock is needed because repliers may be used anywhere.
type debts struct {
	mu   sync.Mutex
	open map[*ask]struct{}
}

func (d *debts) add(a *ask) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = make(map[*ask]struct{})
	}
	a.owed.Store(d)
	d.open[a] = struct{}{}
}

func (d *debts) paid(a *ask) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, a)
}

// fail settles all that is open. The actor captures no more when it is called.
func (d *debts) fail(err error) {
	d.mu.Lock()
	open := d.open
	d.open = nil
	d.mu.Unlock()
	for a := range open {
		a.settle(err)
	}
}
