package approval

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Learner keeps the rules of answers that hold for the workspace. It blocks and is called from one effect at a time.
type Learner interface {
	// Learn stores rules and returns when they should be in force, or why they are not stored.
	Learn(ctx context.Context, rules []string, by string, at time.Time) error
}

// Config is what an approver is made of.
type Config struct {
	Run     string // tells its questions from those of other runs of the daemon; see Caller
	Learner Learner
	Waiting *atomic.Int64 // the approver keeps it at the number of questions that wait
}

// Props describes the approver actor.
func Props(c Config) actorkit.Props {
	return actorkit.Props{Kind: "approver", Mailbox: 4096, New: func() actorkit.Actor {
		return &approver{Config: c, book: approval.NewBook(c.Run), questions: map[string]*question{}, watchers: map[*watcher]struct{}{}}
	}}
}

type approver struct {
	Config
	book      *approval.Book
	questions map[string]*question // that wait, by id
	watchers  map[*watcher]struct{}
	lessons   []lesson // rules to be learned, one after the other; the first one runs
}

// question is a call that waits.
type question struct {
	asker    actorkit.Replier
	judge    func() approval.Verdict
	deadline actorkit.Timer
}

// due says that the deadline of a question has come.
type due struct{ id string }

// Receive implements actorkit.Actor.
func (a *approver) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case *protocol.AskApproval:
		a.ask(c, m)
	case *protocol.WithdrawApproval:
		a.book.Withdraw(m.ID)
		a.drop(m.ID)
	case due:
		if s, ended := a.book.Expire(c.Now(), m.id); ended {
			a.drop(m.id).Reply(s)
		}
	case *protocol.PolicyChanged, *protocol.Revoked, protocol.JudgeApprovals:
		a.judgeAll()
	case *approvalv1.AnswerApproval:
		a.answer(c, m, c.Replier())
	case *approvalv1.GetApproval:
		a.show(c, m)
	case *approvalv1.ListApprovals:
		a.list(c, m)
	case protocol.ReleaseWatchers:
		for w := range a.watchers {
			a.stopWatching(w)
		}
	case watched:
		a.stopWatching(m.w)
	case learned:
		a.onLearned(c, m.err)
	case actorkit.EffectPanicked:
		a.onLearned(c, vakerr.From(m.Reason))
	default:
		return
	}
	a.Waiting.Store(int64(a.book.Len()))
	a.news()
}

func (a *approver) ask(c *actorkit.Context, m *protocol.AskApproval) {
	asker := c.Replier()
	now := c.Now()
	if _, err := a.book.Ask(now, m.Deadline, m.Request); err != nil {
		asker.Reply(err)
		return
	}
	id := m.Request.ID
	a.questions[id] = &question{asker, m.Judge, c.After(m.Deadline.Sub(now), due{id})}
	a.judge(id) // it may have changed since the call asked
}

// drop forgets a question that is settled and returns who asked it.
func (a *approver) drop(id string) actorkit.Replier {
	q := a.questions[id]
	if q == nil {
		return actorkit.Replier{}
	}
	delete(a.questions, id)
	q.deadline.Stop()
	return q.asker
}

func (a *approver) judgeAll() {
	for id := range a.questions {
		a.judge(id)
	}
}

func (a *approver) judge(id string) {
	if s, ended := a.book.Judge(id, a.questions[id].judge()); ended {
		a.drop(id).Reply(s)
	}
}

func (a *approver) answer(c *actorkit.Context, m *approvalv1.AnswerApproval, operator actorkit.Replier) {
	said, err := answerOf(m)
	if err != nil {
		operator.Reply(err)
		return
	}
	_, s, err := a.book.Answer(c.Now(), said)
	if err != nil {
		operator.Reply(err)
		return
	}
	l := lesson{id: said.ID, settlement: s, asker: a.drop(said.ID), operator: operator, at: c.Now()}
	if s.Scope != approval.Workspace {
		l.deliver(nil)
		return
	}
	a.lessons = append(a.lessons, l)
	if len(a.lessons) == 1 {
		a.learn(c)
	}
}

// lesson is an answer on its way: to the call, and to who gave it, once its rules are learned.
type lesson struct {
	id         string
	settlement approval.Settlement
	asker      actorkit.Replier
	operator   actorkit.Replier
	at         time.Time
}

// deliver tells both. Where the rules could not be learned the call goes on, this once.
func (l lesson) deliver(err error) {
	if err != nil {
		l.settlement.Scope, l.settlement.Rules = approval.Once, nil
	}
	switch taken := l.asker.Reply(l.settlement); {
	case !taken:
		l.operator.Reply(approval.GivenUp(l.id))
	case err != nil:
		l.operator.Reply(err)
	default:
		l.operator.Reply(&approvalv1.AnswerApprovalResult{Rules: l.settlement.Rules})
	}
}

type learned struct{ err error }

// learn stores the rules of the first lesson.
func (a *approver) learn(c *actorkit.Context) {
	l := a.lessons[0]
	c.Go(func(ctx context.Context) any {
		return learned{a.Learner.Learn(ctx, l.settlement.Rules, l.settlement.By, l.at)}
	})
}

func (a *approver) onLearned(c *actorkit.Context, err error) {
	if err != nil {
		c.Log().Error("the rules of an answer could not be stored; it counts once", slog.Any("error", err))
	}
	a.lessons[0].deliver(err)
	a.lessons = a.lessons[1:]
	if len(a.lessons) > 0 {
		a.learn(c)
	}
}
