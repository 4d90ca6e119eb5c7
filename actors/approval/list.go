package approval

import (
	"time"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of those who ask for a list.
const (
	maxWatchers = 256
	maxWait     = time.Minute

	maxListed = 2 << 10  // bytes of arguments that a list shows of each
	maxShown  = 64 << 10 // bytes of arguments that one approval shows
)

// watcher waits for news.
type watcher struct {
	reply    actorkit.Replier
	session  string
	revision uint64
	over     actorkit.Timer
}

// watched says that a watcher has waited long enough.
type watched struct{ w *watcher }

func (a *approver) show(c *actorkit.Context, m *approvalv1.GetApproval) {
	p, err := a.book.Find(m.GetId())
	if err != nil {
		c.Reply(err)
		return
	}
	c.Reply(&approvalv1.GetApprovalResult{Approval: describe(p, maxShown)})
}

func (a *approver) list(c *actorkit.Context, m *approvalv1.ListApprovals) {
	w := &watcher{reply: c.Replier(), session: m.GetSessionId(), revision: m.GetRevision()}
	wait := min(time.Duration(m.GetWaitMs())*time.Millisecond, maxWait)
	switch {
	case wait == 0 || a.hasNews(w):
		w.reply.Reply(a.listFor(w))
	case len(a.watchers) >= maxWatchers && !a.anyGone():
		w.reply.Reply(vakerr.New(vakerr.TooMany, "%d callers wait for approvals already", maxWatchers).
			WithRemedy("ask without waiting, or let one of them tell the others"))
	default:
		w.over = c.After(wait, watched{w})
		a.watchers[w] = struct{}{}
	}
}

// anyGone forgets the watchers whose callers have gone, and reports whether there were any.
func (a *approver) anyGone() bool {
	before := len(a.watchers)
	for w := range a.watchers {
		if !w.reply.Wanted() {
			a.stopWatching(w)
		}
	}
	return len(a.watchers) < before
}

// hasNews reports whether a watcher need not wait: what it knows is old, or it knows nothing and something waits.
func (a *approver) hasNews(w *watcher) bool {
	if w.revision != 0 {
		return w.revision != a.book.Revision()
	}
	return a.book.Waits(w.session) > 0
}

// news answers the watchers for whom there are some.
func (a *approver) news() {
	for w := range a.watchers {
		if a.hasNews(w) {
			a.stopWatching(w)
		}
	}
}

func (a *approver) stopWatching(w *watcher) {
	if _, waits := a.watchers[w]; !waits {
		return
	}
	delete(a.watchers, w)
	w.over.Stop()
	w.reply.Reply(a.listFor(w))
}

func (a *approver) listFor(w *watcher) *approvalv1.ListApprovalsResult {
	r := &approvalv1.ListApprovalsResult{Revision: a.book.Revision()}
	for _, p := range a.book.List(w.session) {
		r.Approvals = append(r.Approvals, describe(p, maxListed))
	}
	return r
}

// describe shows a question, with its arguments where they have at most so many bytes.
func describe(p approval.Pending, most int) *approvalv1.Approval {
	d := &approvalv1.Approval{
		Id: p.ID, SessionId: p.Session, TurnId: p.Turn, CallId: p.Call, Channel: p.Channel,
		Capability: p.Capability.String(), Action: p.Action, Reason: p.Reason, Rule: p.Rule,
		ArgumentsBytes: uint64(len(p.Arguments)), InputDigest: p.InputDigest, WrittenDigest: p.WrittenDigest, Policy: p.Policy,
		Rules: p.Rules, AskedMs: p.Asked.UnixMilli(), DeadlineMs: p.Deadline.UnixMilli(),
	}
	if len(p.Arguments) <= most {
		d.ArgumentsJson = p.Arguments
	}
	return d
}

func answerOf(m *approvalv1.AnswerApproval) (approval.Answer, error) {
	a := approval.Answer{ID: m.GetId(), By: m.GetBy(), Reason: m.GetReason(), InputDigest: m.GetInputDigest()}
	switch m.GetDecision() {
	case approvalv1.Decision_DECISION_ALLOW:
		a.Allow = true
	case approvalv1.Decision_DECISION_DENY:
	default:
		return a, vakerr.New(vakerr.InvalidRequest, "an answer says allow or deny")
	}
	switch m.GetScope() {
	case approvalv1.Scope_SCOPE_UNSPECIFIED, approvalv1.Scope_SCOPE_ONCE:
		a.Scope = approval.Once
	case approvalv1.Scope_SCOPE_SESSION:
		a.Scope = approval.Session
	case approvalv1.Scope_SCOPE_WORKSPACE:
		a.Scope = approval.Workspace
	default:
		return a, vakerr.New(vakerr.InvalidRequest, "an answer holds once, for the session or for the workspace")
	}
	return a, nil
}
