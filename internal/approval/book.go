package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of what waits and of what is remembered.
const (
	MaxPending    = 1000 // of a tenant
	MaxPerSession = 64
	maxSettled    = 1024 // settled questions whose end is remembered, to tell a late answer why it is late
)

// Book holds the questions of a tenant. It belongs to one goroutine.
type Book struct {
	run      string
	revision uint64
	last     uint64 // number of the latest question
	pending  map[string]Pending
	session  map[string]int // questions of each session
	settled  map[string]ledger.ApprovalOutcome
	order    []string // of settled, oldest first
}

// NewBook returns an empty book. run tells its questions from those of other runs of the daemon.
func NewBook(run string) *Book {
	return &Book{run: run, revision: 1, pending: map[string]Pending{}, session: map[string]int{}, settled: map[string]ledger.ApprovalOutcome{}}
}

// ID is the id of the n-th question of a run.
func ID(run string, n uint64) string { return run + "-" + strconv.FormatUint(n, 10) }

// Revision grows with every question that comes or goes. It is never 0.
func (b *Book) Revision() uint64 { return b.revision }

// Len is the number of questions that wait.
func (b *Book) Len() int { return len(b.pending) }

// Waits is the number of questions of one session that wait, or of all for an empty name.
func (b *Book) Waits(session string) int {
	if session == "" {
		return len(b.pending)
	}
	return b.session[session]
}

// Ask takes a question up. It returns too_many when enough wait already, approval_expired when the deadline has passed.
func (b *Book) Ask(now, deadline time.Time, r Request) (Pending, error) {
	if n, ours := b.number(r.ID); ours {
		b.last = max(b.last, n) // one that is not taken up was asked all the same
	}
	switch {
	case b.session[r.Session] >= MaxPerSession:
		return Pending{}, vakerr.New(vakerr.TooMany, "%d calls of this session wait for an approval already, so %s is not asked", MaxPerSession, r.Action).
			WithRemedy("wait until they are answered")
	case len(b.pending) >= MaxPending:
		return Pending{}, vakerr.New(vakerr.TooMany, "%d calls wait for an approval already, so %s is not asked", MaxPending, r.Action).
			WithRemedy("wait until they are answered; an operator sees them with: vak-actors approvals list")
	case !now.Before(deadline):
		return Pending{}, Unanswered(r.Action, 0)
	}
	p := Pending{Request: r, Asked: now, Deadline: deadline}
	b.pending[r.ID] = p
	b.session[r.Session]++
	b.revision++
	return p, nil
}

// Answer settles a question by what a person says. Errors, which settle nothing: invalid_request; approval_not_found;
// approval_consumed after another answer; approval_expired after any other end; approval_input_mismatch.
func (b *Book) Answer(now time.Time, a Answer) (Pending, Settlement, error) {
	a.Scope = cmp.Or(a.Scope, Once)
	if err := a.check(); err != nil {
		return Pending{}, Settlement{}, err
	}
	p, waits := b.pending[a.ID]
	switch {
	case !waits:
		return Pending{}, Settlement{}, b.late(a.ID)
	case !now.Before(p.Deadline):
		return Pending{}, Settlement{}, lateAnswer(a.ID, ledger.ApprovalExpired)
	case a.InputDigest != "" && a.InputDigest != p.InputDigest:
		return Pending{}, Settlement{}, vakerr.New(vakerr.ApprovalInputMismatch, "the answer is about another input than the one that %s asks about", a.ID).
			WithRemedy("look at it again with: vak-actors approvals show %s", a.ID)
	case a.Scope != Once && len(p.Rules) == 0:
		return Pending{}, Settlement{}, vakerr.New(vakerr.InvalidRequest, "%s can be allowed once only: no rule could allow it and nothing more", p.Action).
			WithRemedy("allow it once")
	}
	s := Settlement{Outcome: ledger.ApprovalAllowed, Scope: a.Scope, By: a.By, Reason: a.Reason, InputDigest: p.InputDigest}
	switch {
	case !a.Allow:
		s.Outcome, s.Scope, s.Err = ledger.ApprovalRejected, "", rejected(p.Action, a.Reason)
	case a.Scope != Once:
		s.Rules = p.Rules
	}
	b.settle(p, s.Outcome)
	return p, s, nil
}

// Expire settles a question whose deadline has passed, and only then.
func (b *Book) Expire(now time.Time, id string) (Settlement, bool) {
	p, waits := b.pending[id]
	if !waits || now.Before(p.Deadline) {
		return Settlement{}, false
	}
	b.settle(p, ledger.ApprovalExpired)
	return Settlement{Outcome: ledger.ApprovalExpired, InputDigest: p.InputDigest, Err: Unanswered(p.Action, p.Deadline.Sub(p.Asked))}, true
}

// Withdraw settles a question whose call was given up.
func (b *Book) Withdraw(id string) {
	if p, waits := b.pending[id]; waits {
		b.settle(p, ledger.ApprovalWithdrawn)
	}
}

// Judge settles a question that the policy in force answers by itself.
func (b *Book) Judge(id string, v Verdict) (Settlement, bool) {
	p, waits := b.pending[id]
	switch {
	case !waits || v.Refusal == nil && v.Asks:
		return Settlement{}, false
	case v.Refusal != nil:
		b.settle(p, ledger.ApprovalWithdrawn)
		return Settlement{Outcome: ledger.ApprovalWithdrawn, Reason: v.Refusal.Reason, InputDigest: p.InputDigest, Err: v.Refusal}, true
	}
	b.settle(p, ledger.ApprovalNotNeeded)
	return Settlement{Outcome: ledger.ApprovalNotNeeded, Reason: "the policy allows it now", InputDigest: p.InputDigest}, true
}

// Find is a question that waits. Errors: those of a late Answer.
func (b *Book) Find(id string) (Pending, error) {
	if p, waits := b.pending[id]; waits {
		return p, nil
	}
	return Pending{}, b.late(id)
}

// List is what waits, of one session or of all for an empty name, the longest waiting first.
func (b *Book) List(session string) []Pending {
	var all []Pending
	for _, p := range b.pending {
		if session == "" || p.Session == session {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y Pending) int {
		if c := x.Asked.Compare(y.Asked); c != 0 {
			return c
		}
		nx, _ := b.number(x.ID)
		ny, _ := b.number(y.ID)
		return cmp.Or(cmp.Compare(nx, ny), strings.Compare(x.ID, y.ID))
	})
	return all
}

func (b *Book) settle(p Pending, o ledger.ApprovalOutcome) {
	delete(b.pending, p.ID)
	if b.session[p.Session]--; b.session[p.Session] == 0 {
		delete(b.session, p.Session)
	}
	b.revision++
	if len(b.order) >= maxSettled {
		delete(b.settled, b.order[0])
		b.order = b.order[1:]
	}
	b.settled[p.ID] = o
	b.order = append(b.order, p.ID)
}

// number reads an id of this run.
func (b *Book) number(id string) (n uint64, ours bool) {
	digits, ours := strings.CutPrefix(id, b.run+"-")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ours && err == nil
}

// late is why a question that does not wait cannot be answered. One of another run of the daemon ended with it.
func (b *Book) late(id string) error {
	if o, known := b.settled[id]; known {
		return lateAnswer(id, o)
	}
	n, ours := b.number(id)
	run, digits, _ := strings.Cut(id, "-")
	_, err := strconv.ParseUint(digits, 10, 64)
	if ours && n <= b.last && n > 0 || !ours && err == nil && len(run) == len(b.run) {
		return lateAnswer(id, "")
	}
	return vakerr.New(vakerr.ApprovalNotFound, "there is no approval %.64q", id).
		WithRemedy("see what waits with: vak-actors approvals list")
}

func lateAnswer(id string, o ledger.ApprovalOutcome) error {
	code, why := vakerr.ApprovalExpired, ""
	switch o {
	case ledger.ApprovalAllowed, ledger.ApprovalRejected:
		code, why = vakerr.ApprovalConsumed, "it was answered before"
	case ledger.ApprovalExpired:
		why = "nobody answered in time, and the call was refused"
	case ledger.ApprovalWithdrawn:
		why = "its call was given up, or may not run any more"
	case ledger.ApprovalNotNeeded:
		code, why = vakerr.ApprovalConsumed, "the policy allows it meanwhile"
	default:
		why = "it was settled long ago, or the daemon was restarted since, and then nothing ran"
	}
	return vakerr.New(code, "the approval %s waits no longer: %s", id, why).
		WithRemedy("see what waits with: vak-actors approvals list")
}

// GivenUp is the error of an answer whose call does not wait for it any more.
func GivenUp(id string) error { return lateAnswer(id, ledger.ApprovalWithdrawn) }

func rejected(action, reason string) *vakerr.Error {
	text := fmt.Sprintf("%s was not approved", action)
	if reason != "" {
		text += ": " + reason
	}
	return vakerr.New(vakerr.ApprovalRejected, "%s", text).
		WithRemedy("do without it, and do not try it by another way; ask the user what they want instead")
}

// Unanswered is the error of a call whose question nobody answered.
func Unanswered(action string, after time.Duration) *vakerr.Error {
	text := fmt.Sprintf("nobody approved %s in time", action)
	if after > 0 {
		text += fmt.Sprintf(" (%s)", after.Round(time.Millisecond))
	}
	return vakerr.New(vakerr.ApprovalExpired, "%s; it did not run", text).
		WithRemedy("ask the user whether you may, before you try again")
}
