package session

import (
	"context"
	"runtime"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
)

// note asks the session to append a body. Sender: a call. Reply when durable is set: noted. A call sends few, and they
// must not be overtaken by its end, which never waits for room either.
type note struct {
	body    ledger.Body
	durable bool
}

// ControlMessage implements actorkit.Control.
func (note) ControlMessage() {}

type noted struct{}

// failed tells a session that an append failed. The end of a call does not overtake it.
type failed struct{ err error }

// ControlMessage implements actorkit.Control.
func (failed) ControlMessage() {}

// recorder writes for one call into its session's ledger.
type recorder struct {
	session actorkit.Ref
	ledger  Ledger
}

var _ dispatch.Recorder = recorder{}

// Record implements dispatch.Recorder. What is not durable is only queued: entries of a session keep their order, and a
// failed append ends the activation with all its calls. While the ledger is behind, every call waits for its entries: a
// caller in a hurry must not fill the queue that all sessions share.
func (r recorder) Record(ctx context.Context, body ledger.Body, durable bool) error {
	if !durable && !r.ledger.Behind() {
		return r.session.Tell(note{body, false})
	}
	_, err := actorkit.Ask[noted](ctx, r.session, note{body, true})
	return err
}

func (s *session) note(c *actorkit.Context, m note, reply actorkit.Replier) {
	if !m.durable {
		s.append(c, false, s.orFail(c), m.body)
		return
	}
	self := c.Self()
	s.append(c, true, func(err error) {
		if err != nil {
			_ = self.Tell(failed{err}) // first: nobody hears of it before the activation does
			reply.Reply(err)
			return
		}
		reply.Reply(noted{})
	}, m.body)
}

// orFail ends the activation when an append failed.
func (s *session) orFail(c *actorkit.Context) func(error) {
	self := c.Self()
	return func(err error) {
		if err != nil {
			_ = self.Tell(failed{err})
		}
	}
}

// answer appends bodies and answers: at once, or while the ledger is behind when they are durable, so that an asker in a
// hurry does not fill the queue that all sessions share.
func (s *session) answer(c *actorkit.Context, asker actorkit.Replier, result any, bodies ...ledger.Body) {
	switch fail := s.orFail(c); {
	case len(bodies) == 0:
		asker.Reply(result)
	case s.Ledger.Behind():
		s.append(c, false, func(err error) {
			if err != nil {
				asker.Reply(err)
				fail(err)
				return
			}
			asker.Reply(result)
		}, bodies...)
	default:
		// What the asker asks next comes behind this message, and so behind these entries. It need not wait until they are
		// encoded: yielding lets it run now, on this processor, where it was put.
		asker.Reply(result)
		runtime.Gosched()
		s.append(c, false, fail, bodies...)
	}
}

// append chains bodies behind the head and submits them as one write. done is called once, from any goroutine, and must
// not block. What was appended counts as the session's past from here on: when it fails, the activation has to end.
func (s *session) append(c *actorkit.Context, urgent bool, done func(error), bodies ...ledger.Body) {
	on, head := s.head, s.head
	entries := make([]ledger.Entry, 0, len(bodies))
	now := c.Now()
	for _, b := range bodies {
		e, next, err := head.Next(now, "", b)
		if err != nil {
			done(err)
			return
		}
		entries = append(entries, e)
		head = next
	}
	s.head, s.last = head, now
	s.Ledger.Submit(ledger.Append{Tenant: s.Tenant, On: on, Entries: entries}, urgent, func(out ledger.Outcome) { done(out.Err) })
}
