package session

import (
	"context"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
)

// expanded is the outcome of an expansion that read files or ran commands.
type expanded struct {
	bound  turnBound
	delta  capability.Delta
	prompt string
	err    error
}

// expand reads and runs what a prompt asks for, in an effect. The turn is open on the ledger by then, and commands wait
// until it has begun. Whoever gives up the turn gives up what runs.
func (s *session) expand(c *actorkit.Context, m turnBound, delta capability.Delta) {
	s.binding, s.flight = true, &dispatch.Flight{}
	call := dispatch.Call{
		Tenant: s.Tenant, Session: string(s.id), Turn: m.turn.id, ID: s.nextID("c"), Channels: s.channels(), WritePaths: s.writePaths,
		Attended: s.caller.Attended, Allowances: s.memory.allowances, Flight: s.flight,
		Admission: m.turn.admission, Discovery: m.turn.discovery, Shard: hash(string(s.id)),
	}
	pipeline, rec := s.Pipeline, recorder{c.Self(), s.Ledger}
	s.expanding = c.Go(func(ctx context.Context) any {
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		if m.asker != nil {
			defer context.AfterFunc(m.asker, func() { stop(context.Cause(m.asker)) })()
		}
		prompt, err := pipeline.Expand(ctx, call, m.plan, rec)
		return expanded{m, delta, prompt, err}
	})
}

func (s *session) onExpanded(c *actorkit.Context, m expanded) {
	s.binding, s.expanding, s.flight = false, actorkit.Effect{}, nil
	if m.err != nil {
		s.giveUp(c, m.bound, m.err)
		return
	}
	m.bound.prompt = m.prompt
	s.begin(c, m.bound, m.delta, nil)
}

// giveUp ends a turn whose prompt could not be made.
func (s *session) giveUp(c *actorkit.Context, m turnBound, err error) {
	ended := s.turnEnded("the prompt could not be expanded")
	s.unbind()
	s.append(c, false, s.orFail(c), ended)
	s.life = s.life.Abandon()
	m.turn.reply.Reply(err)
	s.resume(c)
}
