package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Approver puts questions before people. Its methods are called from the goroutines of calls.
type Approver interface {
	// NewID names a question.
	NewID() string

	// Judge asks to judge what waits again. It does not block.
	Judge()

	// Approve waits until the question is settled or ctx ends. An error means that nobody was asked, or that the call was
	// given up; a Settlement tells whether the call may go on. judge says what the policy in force thinks of the call; it is
	// called whenever that may have changed.
	Approve(ctx context.Context, q approval.Request, deadline time.Time, judge func() approval.Verdict) (approval.Settlement, error)
}

// consented is what a person has said yes to: the request without what its tool declares of itself.
type consented struct {
	tool, server, serverTool, subject string
	kind                              policy.SubjectKind
}

func consentTo(r policy.Request) consented {
	return consented{r.Tool, r.Server, r.ServerTool, r.Subject, r.Kind}
}

// decide is the word of an engine on requests, once what a person has said yes to is taken as allowed.
func decide(engine *policy.Engine, requests []policy.Request, consents map[consented]struct{}) (policy.Decision, policy.Request) {
	decision, about := engine.DecideAll(requests)
	if decision.Effect != policy.Ask {
		return decision, about
	}
	for _, req := range requests {
		if _, yes := consents[consentTo(req)]; yes {
			continue
		}
		if d := engine.Decide(req); d.Effect == policy.Ask {
			return d, req
		}
	}
	return policy.Decision{Effect: policy.Allow, Reason: "a person allowed it"}, about
}

// word is what is to be said of requests now: by the rules, and where they allow by a hook that wants a person asked.
func (r *run) word(current *policy.Current, requests []policy.Request) (policy.Decision, policy.Request) {
	decision, about := decide(r.confined(current), requests, r.consents)
	if decision.Effect == policy.Allow && r.hookAsks != "" {
		decision = policy.Decision{Effect: policy.Ask, Reason: r.hookAsks}
	}
	return decision, about
}

// consent notes that a person has said yes. What others may be reading is not changed.
func (r *run) consent(requests []policy.Request) {
	all := maps.Clone(r.consents)
	if all == nil {
		all = make(map[consented]struct{}, len(requests))
	}
	for _, req := range requests {
		all[consentTo(req)] = struct{}{}
	}
	r.consents = all
}

// permit asks the permission engine in force now about the final arguments; the strictest word on any of them counts. Where
// it asks, a person is asked, if one is there.
func (r *run) permit(ctx context.Context) error { return r.obtain(ctx, r.requests(r.target)) }

// obtain returns when every one of the requests may run by the policy in force, or why they must not. After a person said
// yes the gate and the policy are asked again: what was forbidden meanwhile stays forbidden.
func (r *run) obtain(ctx context.Context, requests []policy.Request) error {
	for {
		current := r.Gate.View().Policy
		decision, about := r.word(current, requests)
		if decision.Effect != policy.Ask || !r.call.Attended {
			r.judge(current, requests)
			return r.unanswered(refusal(decision, about))
		}
		if err := r.ask(ctx, current, decision, about, requests); err != nil {
			return err
		}
		if err := r.authorize(); err != nil {
			return err
		}
	}
}

// unanswered says what helps where a hook asks and nobody is there; no rule would.
func (r *run) unanswered(refused error) error {
	if r.hookAsks == "" || vakerr.CodeOf(refused) != vakerr.ApprovalRequired {
		return refused
	}
	return vakerr.From(refused).WithRemedy("make the call in an attended session, or change what the hook says")
}

// judge notes by which policy the call was judged last, and on what.
func (r *run) judge(current *policy.Current, requests []policy.Request) {
	r.judged = current
	r.learn(requests)
}

// learn notes what the call is about. What is known later of the same subject takes the place of what was known before. What
// others may be reading is not changed.
func (r *run) learn(requests []policy.Request) {
	if r.subjects == nil {
		r.subjects = requests
		return
	}
	all := slices.Clone(r.subjects)
	for _, req := range requests {
		same := func(known policy.Request) bool { return consentTo(known) == consentTo(req) }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i] = req
		} else {
			all = append(all, req)
		}
	}
	r.subjects = all
}

// recheck judges a call again that waits inside of its op, where it must not wait for a person: what has to be asked is
// left in unasked, and the op, which has had no effect yet, runs again once it is answered. The flight comes before the
// policy is read: a later policy is either seen here, or finds the flight.
func (r *run) recheck(requests []policy.Request) error {
	r.learn(requests)
	r.fly()
	current := r.Gate.View().Policy
	decision, about := decide(r.confined(current), requests, r.consents)
	r.judged = current
	if decision.Effect == policy.Ask && r.call.Attended {
		r.unasked = requests
	}
	return refusal(decision, about)
}

// refusal is the error of a decision, as a plain error: nil for Allow.
func refusal(d policy.Decision, about policy.Request) error {
	if refused := d.Refusal(about); refused != nil {
		return refused
	}
	return nil
}

// ask puts the call before a person and returns nil when it may go on. Both the question and its end are on the ledger.
func (r *run) ask(ctx context.Context, current *policy.Current, d policy.Decision, about policy.Request, requests []policy.Request) error {
	begun := time.Now()
	q, deadline := r.question(ctx, begun, current, d, about)
	q.Rules = r.confined(current).Learnable(requests)
	if err := r.rec.Record(ctx, ledger.ApprovalAsked{
		Turn: q.Turn, Call: q.Call, Approval: q.ID, Capability: q.Capability, Action: q.Action, Reason: q.Reason, Rule: q.Rule,
		WrittenDigest: q.WrittenDigest, InputDigest: q.InputDigest, Policy: q.Policy, DeadlineMS: deadline.UnixMilli(),
	}, true); err != nil {
		return err
	}
	s, err := r.Approver.Approve(ctx, q, deadline, func() approval.Verdict { return r.verdict(requests) })
	switch {
	case err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		s = approval.Settlement{Outcome: ledger.ApprovalExpired, Err: approval.Unanswered(q.Action, time.Since(begun))}
	case err != nil:
		s = approval.Settlement{Outcome: ledger.ApprovalWithdrawn, Err: outcomeOf(ctx, err)}
	case s.InputDigest != q.InputDigest:
		s.Err = vakerr.New(vakerr.ApprovalInputMismatch, "the approval is about another input than the one that would run")
	}
	if s.Err == nil && s.Scope == approval.Session {
		if r.call.Allowances != nil && r.call.Allowances.Add(s.Rules) {
			r.Approver.Judge() // other calls of the session may ask for the same
		} else {
			s.Scope, s.Rules = approval.Once, nil
		}
	}
	if err := r.rec.Record(context.WithoutCancel(ctx), settled(q, s, time.Since(begun)), false); err != nil {
		return err
	}
	if s.Err != nil {
		return s.Err
	}
	if s.Outcome == ledger.ApprovalAllowed {
		r.consent(requests)
		r.hookAsks = ""
	}
	return nil
}

// question is what a person is shown, and until when an answer counts: the approval's own limit, or the caller's patience.
func (r *run) question(ctx context.Context, now time.Time, current *policy.Current, d policy.Decision, about policy.Request) (approval.Request, time.Time) {
	wait := current.ApprovalTimeout
	if wait <= 0 {
		wait = approval.DefaultTimeout
	}
	deadline := now.Add(wait)
	if patience, limited := ctx.Deadline(); limited && patience.Before(deadline) {
		deadline = patience
	}
	return approval.Request{
		ID: r.Approver.NewID(), Session: r.call.Session, Turn: r.call.Turn, Call: r.call.ID, Channel: r.call.Channels[0],
		Capability: r.subject(), Action: about.Rule(), Reason: d.Reason, Rule: d.Rule, Arguments: r.target.Arguments,
		WrittenDigest: capability.ContentDigest(r.call.Arguments), InputDigest: capability.ContentDigest(r.target.Arguments),
		Policy: current.Revision,
	}, deadline
}

// verdict is what the policy in force says of a call that waits for a person. The approver calls it from its own goroutine
// while the call's waits.
func (r *run) verdict(requests []policy.Request) approval.Verdict {
	if err := r.authorize(); err != nil {
		return approval.Verdict{Refusal: vakerr.From(err)}
	}
	switch decision, about := r.word(r.Gate.View().Policy, requests); decision.Effect {
	case policy.Allow:
		return approval.Verdict{}
	case policy.Ask:
		return approval.Verdict{Asks: true}
	default:
		return approval.Verdict{Refusal: decision.Refusal(about)}
	}
}

func settled(q approval.Request, s approval.Settlement, waited time.Duration) ledger.ApprovalSettled {
	body := ledger.ApprovalSettled{
		Turn: q.Turn, Call: q.Call, Approval: q.ID, Outcome: s.Outcome, Scope: string(s.Scope), Rules: s.Rules, By: s.By,
		Reason: s.Reason, WaitedMS: waited.Milliseconds(),
	}
	if s.Err != nil {
		body.ErrorCode = s.Err.Code
	}
	return body
}
