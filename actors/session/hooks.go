package session

import (
	"context"
	"slices"
	"strings"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	maxStops = 8               // in a row: how often hooks keep a run from stopping
	endTime  = 2 * time.Second // what all hooks at the end of a session have together
)

// moment is what hooks are asked about an event of the session: by whom, and where it is recorded. It is made in Receive and
// used in an effect.
type moment struct {
	pipeline *dispatch.Pipeline
	call     dispatch.Call
	rec      dispatch.Recorder
	asker    context.Context //nolint:containedctx // ends when nobody waits for the event any more; nil: nobody gives up
}

func (s *session) moment(asker context.Context, c *actorkit.Context, turn string, a *dispatch.Admission) moment {
	return moment{s.Pipeline, dispatch.Call{
		Tenant: s.Tenant, Session: string(s.id), Turn: turn, Channels: s.channels(), Admission: a, Shard: hash(string(s.id)),
	}, recorder{c.Self(), s.Ledger}, asker}
}

// tell asks the hooks. It blocks as long as they run.
func (m moment) tell(ctx context.Context, in hook.Input) (hook.Decision, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if m.asker != nil {
		defer context.AfterFunc(m.asker, func() { stop(context.Cause(m.asker)) })()
	}
	return m.pipeline.Tell(ctx, m.call, in, m.rec)
}

// welcome asks the hooks about a turn that is about to begin: the session's first one, when started is not set, and its
// prompt. Where one of them objects nothing begins.
func (b *turnBound) welcome(ctx context.Context, m moment) {
	m.call.Turn, m.call.Admission = b.turn.id, b.turn.admission
	if !b.started {
		b.told(m.tell(ctx, hook.Input{Event: hook.SessionStart, Source: "startup"}))
		b.started = b.err == nil
	}
	if b.err == nil && b.begin.GetPrompt() != "" {
		b.told(m.tell(ctx, hook.Input{Event: hook.UserPrompt, Text: b.begin.GetPrompt()}))
	}
}

func (b *turnBound) told(d hook.Decision, err error) {
	b.context = append(b.context, d.Context...)
	switch {
	case err != nil:
		b.err = err
	case d.Block != nil:
		b.err = d.Block
	case d.Ask != "":
		b.err = vakerr.New(vakerr.HookBlocked, "%s", d.Ask).WithRemedy("nobody is asked about the begin of a turn; do what the reason asks for")
	}
}

// stopping is the end of a turn that hooks are asked about.
type stopping struct {
	reply    actorkit.Replier
	result   *sessionv1.EndTurnResult
	ended    ledger.TurnEnded
	decision hook.Decision
}

// askAboutStop lets hooks object to the end of a turn, which is over for its calls: commands wait until they have answered.
func (s *session) askAboutStop(c *actorkit.Context, m moment, end stopping) {
	s.binding = true
	in := hook.Input{Event: hook.Stop, Continued: s.memory.stops > 0}
	s.expanding = c.Go(func(ctx context.Context) any {
		decision, err := m.tell(ctx, in)
		if err == nil { // an end that nobody waits for any more, or that the ledger does not take, goes on nowhere
			end.decision = decision
		}
		return end
	})
}

func (s *session) onStopping(c *actorkit.Context, m stopping) {
	s.binding, s.expanding = false, actorkit.Effect{}
	text, goOn := m.decision.Continuation(s.memory.stops, maxStops)
	if s.memory.stops++; !goOn {
		s.memory.stops = 0
	}
	m.result.Continuation, m.ended.Stops = text, s.memory.stops
	s.answer(c, m.reply, m.result, m.ended)
	s.resume(c)
}

// closing is the end of a session that hooks were told of.
type closing struct {
	reply  actorkit.Replier
	reason string
	gone   *vakerr.Error
}

// askAboutEnd tells hooks that the session ends. Whatever they say it ends, after endTime at the latest; commands wait, and
// then find it closed.
func (s *session) askAboutEnd(c *actorkit.Context, a *dispatch.Admission, end closing) {
	s.binding = true
	m := s.moment(context.Background(), c, "", a)
	c.Go(func(ctx context.Context) any {
		if m.call.Admission == nil {
			m.call.Admission = s.admission(s.Gate.View())
		}
		limited, stop := context.WithTimeout(ctx, endTime)
		defer stop()
		_, _ = m.tell(limited, hook.Input{Event: hook.SessionEnd, Text: end.reason})
		return end
	})
}

// turnAway answers what waited for the end of the session, which is durable now.
func (s *session) turnAway(gone error) {
	for _, m := range s.waiting {
		switch m.Message.(type) {
		case *sessionv1.CloseSession:
			m.reply.Reply(&sessionv1.CloseSessionResult{})
		case *sessionv1.GetSession:
			d := s.describe()
			d.State = "closed"
			m.reply.Reply(&sessionv1.GetSessionResult{Session: d})
		default:
			m.reply.Reply(gone)
		}
	}
	s.waiting = nil
}

// asksAbout reports whether a hook of an admission is about an event of the session.
func asksAbout(a *dispatch.Admission, in hook.Input) bool {
	return slices.ContainsFunc(a.Hooks, func(h *capability.Capability) bool { return hook.Concerns(h.Config.(*capability.Hook), in) })
}

func joined(context []string) string { return strings.Join(context, "\n\n") }
