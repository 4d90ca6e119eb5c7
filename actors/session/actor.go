package session

import (
	"context"
	"log/slog"
	"slices"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/lifecycle"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func sessionProps(c *Config, directory actorkit.Ref, id string) actorkit.Props {
	return actorkit.Props{
		Kind: "session", Mailbox: 4096,
		New: func() actorkit.Actor { return &session{Config: c, directory: directory, id: ledger.SessionID(id)} },
	}
}

// session is one activation of one session.
type session struct {
	*Config
	directory actorkit.Ref
	id        ledger.SessionID
	identity
	lent *lent // of a worker; nil: it is none

	awake   bool
	waiting []command // arrived before the session was awake, or while commands are held

	head    ledger.Head // after everything submitted
	last    time.Time   // of the last entry
	memory  memory
	opened  uint64 // turns and calls of this activation, for their ids
	life    lifecycle.Session
	bound   *boundTurn // the open turn; nil: none, or it is being bound
	binding bool

	searched dispatch.Searched // by this activation

	expanding actorkit.Effect  // of the prompt of the turn that begins; zero: none
	flight    *dispatch.Flight // of what the expansion runs

	calls map[string]*inFlight
}

// inFlight is a call the session waits for.
type inFlight struct {
	ref   actorkit.Ref
	reply actorkit.Replier
	bound *boundTurn // that it belongs to, which may have ended

	request bool // of MCP, other than a plain call of a tool
}

// Receive implements actorkit.Actor.
func (s *session) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case command:
		c.Adopt(m.reply)
		s.command(c, m)
	case note:
		s.note(c, m, c.Replier())
	case finished:
		s.onFinished(c, m)
	case turnBound:
		s.onBound(c, m)
	case expanded:
		s.onExpanded(c, m)
	case stopping:
		s.onStopping(c, m)
	case closing:
		s.onClosing(c, m)
	case woke:
		s.onWoke(c, m)
	case failed:
		s.fail(c, m.err)
	case sleep:
		s.sleep(c, m)
	case left:
		if m.why != nil {
			s.turnAway(m.why)
		}
		for _, call := range s.calls {
			call.reply.Reply(m.why)
		}
		c.StopSelf()
	case *protocol.Revoked:
		s.revoked(c, m)
	case *protocol.PolicyChanged:
		s.judgeCalls(c)
	case lend:
		s.onLend(c, m)
	case dismissed:
		if s.bound != nil && s.bound.crew != nil {
			delete(s.bound.crew.ids, m.worker)
		}
	case actorkit.Stopping:
		s.release(s.bound)
	case actorkit.ChildStopped:
		s.callEnded(c, m)
	case actorkit.EffectPanicked:
		s.fail(c, m.Reason)
	}
}

// command wakes the session with the first command, holds commands back while a turn is being bound or the session is
// being closed, and else handles them.
func (s *session) command(c *actorkit.Context, m command) {
	if s.awake && !s.held() {
		s.handle(c, m)
		return
	}
	if _, closes := m.Message.(*sessionv1.CloseSession); closes { // which waits for the turn, and the turn perhaps for a person
		s.expanding.Cancel(vakerr.New(vakerr.SessionClosed, "the session was closed"))
	}
	if len(s.waiting) >= maxWaiting {
		m.reply.Reply(tooManyWaiting(string(s.id)))
		return
	}
	s.waiting = append(s.waiting, m)
	if !s.awake && len(s.waiting) == 1 {
		open, _ := m.Message.(*sessionv1.OpenSession)
		c.Go(func(ctx context.Context) any { return s.wake(ctx, s.id, open) })
	}
}

func (s *session) onWoke(c *actorkit.Context, m woke) {
	if m.err != nil {
		s.fail(c, m.err)
		return
	}
	s.awake, s.identity, s.lent, s.head, s.memory, s.last = true, m.identity, m.lent, m.head, m.memory, c.Now()
	if left := s.memory.unsettled.bodies(); len(left) > 0 {
		s.append(c, false, s.orFail(c), left...)
	}
	s.memory.unsettled = unsettled{}
	if m.over != nil {
		s.expire(c, m.over)
		return
	}
	if first := s.waiting[0]; !m.resumed {
		s.waiting = s.waiting[1:]
		first.reply.Reply(&sessionv1.OpenSessionResult{Session: s.describe()})
	}
	s.resume(c)
}

// held reports whether commands wait: for a turn that is being bound, or for the end of a session that is being closed,
// whose record takes nothing more.
func (s *session) held() bool { return s.binding || s.life.Closed() }

// resume handles what waited, until a turn has to be bound again or the session is closed.
func (s *session) resume(c *actorkit.Context) {
	for len(s.waiting) > 0 && !s.held() {
		m := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.handle(c, m)
	}
	if len(s.waiting) == 0 {
		s.waiting = nil
	}
}

func (s *session) handle(c *actorkit.Context, m command) {
	switch m.Message.(type) {
	case *sessionv1.Dispatch, *sessionv1.BeginTurn, *sessionv1.ListTools, *sessionv1.ListFeatures, *sessionv1.ReadSkill:
		if err := s.tied(c.Now()); err != nil {
			m.reply.Reply(err)
			return
		}
	}
	switch msg := m.Message.(type) {
	case *sessionv1.Dispatch:
		s.dispatch(c, msg, m)
	case *sessionv1.BeginTurn:
		s.beginTurn(c, msg, m)
	case *sessionv1.EndTurn:
		s.endTurn(c, msg, m)
	case *sessionv1.ListTools:
		s.listTools(c, msg, m)
	case *sessionv1.ListFeatures:
		s.listFeatures(c, msg, m)
	case *sessionv1.ReadSkill:
		s.readSkill(c, msg, m)
	case *sessionv1.OpenSession:
		s.reopen(msg, m)
	case *sessionv1.GetSession:
		m.reply.Reply(&sessionv1.GetSessionResult{Session: s.describe()})
	case *sessionv1.CloseSession:
		s.close(c, m)
	default:
		m.reply.Reply(vakerr.New(vakerr.InvalidRequest, "a session does not handle %T", m.Message))
	}
}

// reopen answers an opening of a session that exists. It stays what it is.
func (s *session) reopen(m *sessionv1.OpenSession, by command) {
	if !s.same(m) {
		by.reply.Reply(vakerr.New(vakerr.InvalidRequest, "session %s is not that worker", s.id).
			WithRemedy("open another session for it"))
		return
	}
	if m.GetWorker() == nil && m.GetChannel() != "" && m.GetChannel() != s.caller.Channel {
		by.reply.Reply(vakerr.New(vakerr.InvalidRequest, "session %s belongs to the channel %s", s.id, s.caller.Channel).
			WithRemedy("open another session for the channel %.64q", m.GetChannel()))
		return
	}
	// Whoever asks for a restriction must not be handed a session that does not have it.
	if len(m.GetWritePaths()) > 0 && !slices.Equal(m.GetWritePaths(), s.writePaths) {
		by.reply.Reply(vakerr.New(vakerr.InvalidRequest, "session %s has other write paths", s.id).
			WithRemedy("open another session with these, or resume this one without naming any"))
		return
	}
	// Nobody can be asked in a session without a person, whoever resumes it.
	if m.GetAttended() && !s.caller.Attended {
		by.reply.Reply(vakerr.New(vakerr.InvalidRequest, "session %s is not attended: it was opened without anybody who answers approvals", s.id).
			WithRemedy("open another session"))
		return
	}
	by.reply.Reply(&sessionv1.OpenSessionResult{Session: s.describe(), Resumed: true})
}

func (s *session) describe() *sessionv1.Session {
	d := describe(ledger.SessionInfo{
		Tenant: s.Tenant, ID: s.id, State: ledger.StateOpen, Head: s.head,
		CreatedAt: s.created, LastAt: s.last, Attributes: s.attributes,
	})
	d.State, d.Epoch, d.Misreads = "live", uint64(s.memory.told), s.memory.misreads
	return d
}

const maxReason = 200 // bytes

// close ends the session for good. Its calls are given up, and its workers end with it.
func (s *session) close(c *actorkit.Context, m command) {
	reason := phrase.Cut(m.Message.(*sessionv1.CloseSession).GetReason(), maxReason)
	var a *dispatch.Admission // nil: it has to be made
	if view := s.Gate.View(); s.bound != nil {
		a = s.bound.admission
	} else if view.Policy != nil {
		a = s.known(view)
	} else {
		a = &dispatch.Admission{Admitted: &turn.Admitted{}} // nothing was read yet
	}
	s.life = s.life.Close()
	s.unbind()
	why := "the session was closed"
	if reason != "" {
		why += ": " + reason
	}
	gone := vakerr.New(vakerr.SessionClosed, "%s", why)
	s.cancelCalls(c, gone, nil)
	if s.worker != nil {
		s.dismiss(s.worker, s.id)
	}
	end := closing{m.reply, reason, gone}
	if a == nil || asksAbout(a, hook.Input{Event: hook.SessionEnd, Text: reason}) {
		s.askAboutEnd(c, a, end)
		return
	}
	s.onClosing(c, end)
}

// onClosing makes the end of the session durable.
func (s *session) onClosing(c *actorkit.Context, m closing) {
	self := c.Self()
	s.append(c, true, func(err error) {
		if err != nil {
			m.reply.Reply(err)
			_ = self.Tell(failed{err})
			return
		}
		m.reply.Reply(&sessionv1.CloseSessionResult{})
		_ = self.Tell(left{m.gone})
	}, ledger.SessionClosed{Reason: m.reason})
}

// left tells a session that its last entry is durable. why is for calls that have not given up yet; there are none where
// it is nil.
type left struct{ why error }

// abandonedAfter is how many idle times an explicit turn without a call in flight is kept open. Whoever began it is gone
// by then, and the session could never leave memory.
const abandonedAfter = 6

// sleep passivates the session when nothing is open, else tells the directory that it stays.
func (s *session) sleep(c *actorkit.Context, m sleep) {
	patience := abandonedAfter * s.IdleTTL
	if s.bound != nil && s.life.InFlight() == 0 && m.unused > patience && !s.serving(c.Now(), patience) {
		s.append(c, false, s.orFail(c), s.turnEnded("abandoned"))
		s.life = s.life.Abandon()
		s.unbind()
	}
	if !s.awake || s.binding || len(s.waiting) > 0 || !s.life.Quiet() {
		c.Tell(s.directory, awake{string(s.id)})
		return
	}
	self := c.Self()
	s.append(c, false, func(err error) {
		if err != nil {
			_ = self.Tell(failed{err})
			return
		}
		_ = self.Tell(left{})
	}, ledger.SessionPassivated{Reason: "idle"})
}

// fail ends this activation. The next command makes another one, which reads the ledger first.
func (s *session) fail(c *actorkit.Context, err error) {
	if vakerr.CodeOf(err) != vakerr.SessionNotFound && vakerr.CodeOf(err) != vakerr.SessionClosed {
		c.Log().Error("a session's activation ends", slog.Any("error", err))
	}
	s.release(s.bound) // before anybody hears of it: no worker begins anything after that
	for _, m := range s.waiting {
		m.reply.Reply(err)
	}
	for _, call := range s.calls {
		call.reply.Reply(err)
	}
	c.StopSelf()
}

// revoked acts on a revocation that is in force already: what runs is cancelled where the operator asked for it, and the
// record says that the open turn was touched.
func (s *session) revoked(c *actorkit.Context, m *protocol.Revoked) {
	id, err := capability.ParseID(m.GetId())
	if err != nil || s.bound == nil {
		return
	}
	if _, admitted := s.bound.admission.Get(id); !admitted {
		return
	}
	s.append(c, false, s.orFail(c), ledger.CapabilityRevoked{Capability: id, Reason: m.GetReason()})
	if m.GetCancelRunning() {
		s.cancelCalls(c, vakerr.New(vakerr.CapabilityRevoked, "%s was revoked while the call ran: %s", id, m.GetReason()).
			WithRemedy("do without it; the call may have had its effect"), &id)
	}
}
