package session

import (
	"context"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// cancel gives a call up when it touches id; always for nil.
type cancel struct {
	cause *vakerr.Error
	id    *capability.ID
}

// ControlMessage implements actorkit.Control.
func (cancel) ControlMessage() {}

// judge gives a call up that the mode in force does not allow any more, while its effect runs.
type judge struct{}

// ControlMessage implements actorkit.Control.
func (judge) ControlMessage() {}

// callProps describes the actor of one call.
func callProps(call *caller) actorkit.Props {
	return actorkit.Props{Kind: "call", Mailbox: 8, New: func() actorkit.Actor { return call }}
}

// caller is one dispatch in flight. It owns the goroutine on which the pipeline runs.
type caller struct {
	pipeline *dispatch.Pipeline
	call     dispatch.Call
	session  actorkit.Ref
	ledger   Ledger
	//nolint:containedctx // of whoever waits for the result: when it ends the call is given up
	asker   context.Context // nil: nobody gives up
	timeout time.Duration   // 0: the tool's own limit

	target turn.Target
	effect actorkit.Effect

	release func() bool // lets go of the asker; nil: there is none
}

// Receive implements actorkit.Actor.
func (r *caller) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case actorkit.Started:
		r.start(c)
	case cancel:
		if m.id == nil || slices.Contains(r.target.IDs, *m.id) {
			r.effect.Cancel(m.cause)
		}
	case judge:
		if why := r.call.Flight.Forbidden(); why != nil {
			r.effect.Cancel(why)
		}
	case actorkit.Stopping:
		if r.release != nil {
			r.release()
		}
	case actorkit.EffectPanicked:
		c.Tell(r.session, finished{r.call.ID, dispatch.Outcome{Refusal: vakerr.New(vakerr.Internal, "the call failed inside this program").
			WithRemedy("look for the cause in the daemon's log").WithCause(m.Reason)}})
	}
}

func (r *caller) start(c *actorkit.Context) {
	target, refusal := r.call.Resolve()
	r.target = target
	r.effect = c.Go(func(ctx context.Context) any {
		r.run(ctx, target, refusal)
		return nil
	})
	if r.asker != nil {
		r.release = context.AfterFunc(r.asker, func() { r.effect.Cancel(context.Cause(r.asker)) })
	}
}

// run makes the call and tells the session, which then stops this actor. A session that is gone by now has told the asker.
func (r *caller) run(ctx context.Context, target turn.Target, refusal error) {
	if r.timeout > 0 {
		limited, stop := context.WithTimeout(ctx, r.timeout)
		defer stop()
		ctx = limited
	}
	outcome := r.pipeline.Run(ctx, r.call, target, refusal, recorder{r.session, r.ledger})
	_ = r.session.Tell(finished{r.call.ID, outcome})
}
