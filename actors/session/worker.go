package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of workers.
const (
	maxWorkers     = 32 // of one turn
	maxWorkerTools = 64 // globs
)

// worker is what makes a session the worker of another one's turn, for all its activations.
type worker struct {
	Parent   string   `json:"parent"`
	Turn     string   `json:"turn"`
	Tools    []string `json:"tools,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"`
	Channel  string   `json:"channel,omitempty"` // besides the parent's; empty: none
}

func (w *worker) describe() *sessionv1.Worker {
	if w == nil {
		return nil
	}
	return &sessionv1.Worker{ParentSessionId: w.Parent, ParentTurnId: w.Turn, Tools: w.Tools, ReadOnly: w.ReadOnly}
}

// tether ties workers to the turn they serve. It is shared between the actors of both.
type tether struct {
	ended atomic.Bool  // the turn is over: no dispatch of its workers begins any more
	used  atomic.Int64 // when a worker was last asked something, nanoseconds since 1970
}

// crew is the workers of one turn. The turn's session owns it.
type crew struct {
	tether *tether
	ids    map[string]struct{}
}

// lend asks a session for what a worker of its open turn may share. Sender: a worker that wakes. Receiver: the directory of
// the parent, and from there the parent. Reply: lent. Safe to repeat.
type lend struct {
	parent, turn, worker string
	reply                actorkit.Replier
}

// Undelivered implements actorkit.Undelivered: a session that left memory has no open turn.
func (m lend) Undelivered(error) { m.reply.Reply(parentGone(m.parent, m.turn)) }

// dismissed tells a session that a worker of it has ended. It takes the same way as lend; no reply.
type dismissed struct{ parent, worker string }

// lent is what a worker shares with the turn it serves. All of it is the parent's.
type lent struct {
	admission  *dispatch.Admission
	caller     dispatch.Caller
	writePaths []string
	tether     *tether
}

func parentGone(parent, turn string) *vakerr.Error {
	return vakerr.New(vakerr.TurnEnded, "session %.80q has no open turn %.80q, so nobody can work for it", parent, turn).
		WithRemedy("open a worker while a turn of its parent is open")
}

// onLend takes a worker into the crew of the open turn.
func (s *session) onLend(c *actorkit.Context, m lend) {
	b := s.bound
	switch {
	case b == nil || b.id != m.turn || s.life.Implicit():
		m.reply.Reply(parentGone(m.parent, m.turn))
		return
	case s.lent != nil:
		m.reply.Reply(vakerr.New(vakerr.InvalidRequest, "session %.80q is a worker itself", m.parent).
			WithRemedy("open workers of the session it works for"))
		return
	case b.crew == nil:
		b.crew = &crew{&tether{}, map[string]struct{}{}}
	}
	if _, known := b.crew.ids[m.worker]; !known {
		if len(b.crew.ids) >= maxWorkers {
			m.reply.Reply(vakerr.New(vakerr.TooMany, "turn %s has %d workers", m.turn, maxWorkers).
				WithRemedy("close one that is done before opening another"))
			return
		}
		b.crew.ids[m.worker] = struct{}{}
		s.append(c, false, s.orFail(c), ledger.WorkerOpened{Turn: b.id, Worker: ledger.SessionID(m.worker)})
	}
	m.reply.Reply(lent{b.admission, s.caller, s.writePaths, b.crew.tether})
}

// release ends the workers of a turn that is over: at once for every dispatch that has not begun, and then for good.
func (s *session) release(b *boundTurn) {
	if b == nil || b.crew == nil {
		return
	}
	b.crew.tether.ended.Store(true)
	for id := range b.crew.ids {
		_ = s.Route(id).Tell(Command{Message: &sessionv1.CloseSession{
			SessionId: id, Reason: fmt.Sprintf("turn %s of session %s, which it worked for, has ended", b.id, s.id),
		}})
	}
	b.crew = nil
}

// unbind ends what is bound, with its workers.
func (s *session) unbind() {
	s.release(s.bound)
	s.bound = nil
}

// serving reports whether a worker of the open turn was asked something within d.
func (s *session) serving(now time.Time, d time.Duration) bool {
	return s.bound.crew != nil && now.Sub(time.Unix(0, s.bound.crew.tether.used.Load())) <= d
}

// tied reports why a worker must not begin anything any more; nil for every other session.
func (s *session) tied(now time.Time) error {
	if s.lent == nil {
		return nil
	}
	if s.lent.tether.ended.Load() {
		return parentGone(s.worker.Parent, s.worker.Turn)
	}
	s.lent.tether.used.Store(now.UnixNano())
	return nil
}

// expire closes a worker that woke after the turn it served had ended.
func (s *session) expire(c *actorkit.Context, why error) {
	waiting := s.waiting
	s.waiting = nil
	for _, m := range waiting {
		if _, closing := m.Message.(*sessionv1.CloseSession); !closing {
			m.reply.Reply(why)
			continue
		}
		s.close(c, m)
		return
	}
	s.close(c, command{Command: Command{Message: &sessionv1.CloseSession{Reason: "the turn it worked for has ended"}}})
}

// hire makes what an opening asks for a worker, and asks the parent for what it shares. It blocks.
func (c *Config) hire(ctx context.Context, id ledger.SessionID, m *sessionv1.OpenSession) (identity, *lent, error) {
	asked := m.GetWorker()
	w := &worker{
		Parent: asked.GetParentSessionId(), Turn: asked.GetParentTurnId(), Tools: asked.GetTools(), ReadOnly: asked.GetReadOnly(),
		Channel: m.GetChannel(),
	}
	if m.GetAttended() {
		return identity{}, nil, vakerr.New(vakerr.InvalidRequest, "nobody answers approvals for a worker").WithRemedy("leave out attended")
	}
	if err := w.check(); err != nil {
		return identity{}, nil, err
	}
	l, err := c.borrow(ctx, w, id)
	if err != nil {
		return identity{}, nil, err
	}
	i := identity{worker: w, caller: l.caller}
	i.caller.Attended = false
	if i.writePaths, err = within(l.writePaths, m.GetWritePaths()); err != nil {
		c.dismiss(w, id)
		return identity{}, nil, err
	}
	return i, l, nil
}

// within are the write paths of a worker: those asked for, which its parent must be allowed to write, or else the parent's.
func within(parent, asked []string) ([]string, error) {
	if len(asked) == 0 {
		return parent, nil
	}
	for _, p := range asked {
		if err := op.CheckWritePath(parent, p); err != nil {
			return nil, err
		}
	}
	return asked, nil
}

// check reports what of a worker's narrowing cannot be read.
func (w *worker) check() error {
	if w.Parent == "" || w.Turn == "" {
		return vakerr.New(vakerr.InvalidRequest, "a worker names the session and the open turn it works for").
			WithRemedy("set parent_session_id and parent_turn_id")
	}
	if len(w.Tools) > maxWorkerTools {
		return vakerr.New(vakerr.TooMany, "%d globs of tools, a worker has at most %d", len(w.Tools), maxWorkerTools)
	}
	for i, glob := range w.Tools {
		if _, problems := compileTools([]string{glob}); len(problems) > 0 || glob == "" {
			return vakerr.New(vakerr.InvalidRequest, "the worker's tools, entry %d, is no glob", i+1).
				WithRemedy("name a tool, or a tool of a server as server/tool; * stands for anything")
		}
	}
	return nil
}

// compileTools makes the channel that shows what globs keep; nil, which shows all, for none.
func compileTools(globs []string) (*policy.Channel, []string) {
	if len(globs) == 0 {
		return nil, nil
	}
	rules := policy.ChannelRules{Tools: policy.Filter{Allow: []string{}}}
	for _, g := range globs {
		if strings.Contains(g, "/") {
			rules.MCP.Allow = append(rules.MCP.Allow, g)
		} else {
			rules.Tools.Allow = append(rules.Tools.Allow, g)
		}
	}
	names, _ := policy.CompileChannel("worker", policy.ChannelRules{Tools: rules.Tools})
	switch {
	case rules.MCP.Allow != nil:
		rules.Tools.Allow = append(rules.Tools.Allow, policy.BrokerTool)
	case !names.AllowsTool(policy.BrokerTool):
		rules.MCP.Allow = []string{}
	}
	channel, problems := policy.CompileChannel("worker", rules)
	var all []string
	for _, p := range problems {
		all = append(all, p.Message)
	}
	return channel, all
}

// narrow is the admission of a worker: its parent's, and nothing that its own words do not keep.
func (w *worker) narrow(a *dispatch.Admission) *dispatch.Admission {
	channel, _ := compileTools(w.Tools) // check has seen that it can be read
	if w.Channel != "" {
		channel = policy.Compose(channel, a.View.Policy.Channel(w.Channel))
	}
	return a.Worker(turn.Narrowing{Channel: channel, ReadOnly: w.ReadOnly})
}

// borrow asks the parent for what a worker shares, already narrowed. It blocks.
func (c *Config) borrow(ctx context.Context, w *worker, id ledger.SessionID) (*lent, error) {
	l, err := actorkit.Ask[lent](ctx, c.Route(w.Parent), lend{parent: w.Parent, turn: w.Turn, worker: string(id)})
	if err != nil {
		return nil, err
	}
	l.admission = w.narrow(l.admission)
	return &l, nil
}

// dismiss tells the parent that a worker ended. Losing it costs a place in the crew until the turn ends.
func (c *Config) dismiss(w *worker, id ledger.SessionID) {
	_ = c.Route(w.Parent).Tell(dismissed{w.Parent, string(id)})
}

// same reports whether an opening asks for what this session is.
func (s *session) same(m *sessionv1.OpenSession) bool {
	asked := m.GetWorker()
	switch {
	case asked == nil:
		return true
	case s.worker == nil:
		return false
	}
	return asked.GetParentSessionId() == s.worker.Parent && asked.GetParentTurnId() == s.worker.Turn &&
		asked.GetReadOnly() == s.worker.ReadOnly && slices.Equal(asked.GetTools(), s.worker.Tools) &&
		cmp.Or(m.GetChannel(), s.worker.Channel) == s.worker.Channel
}
