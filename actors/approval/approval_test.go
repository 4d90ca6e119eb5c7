package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "run00000"

// desk is an approver in a bubble, with calls that ask and a person who answers.
type desk struct {
	*testing.T
	caller  *Caller
	address protocol.Address
	waiting atomic.Int64
	system  *actorkit.System

	mu      sync.Mutex // guards what follows
	verdict approval.Verdict
	learned []string
	busy    int           // lessons being learned
	refuses error         // what the learner says
	hold    chan struct{} // the learner waits for it; nil: it does not
}

func atDesk(t *testing.T, f func(d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, system: actorkit.NewSystem(actorkit.Options{}), verdict: approval.Verdict{Asks: true}}
		ref, err := d.system.Spawn("approver", Props(Config{Run: run, Learner: d, Waiting: &d.waiting}))
		if err != nil {
			t.Fatal(err)
		}
		d.address.Set(ref)
		d.caller = NewCaller(&d.address, run)
		f(d)
		if err := d.system.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// Learn implements Learner.
func (d *desk) Learn(_ context.Context, rules []string, by string, _ time.Time) error {
	d.mu.Lock()
	d.busy++
	if d.busy > 1 {
		d.Error("two lessons are learned at a time")
	}
	hold := d.hold
	d.mu.Unlock()
	if hold != nil {
		<-hold
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	if d.refuses != nil {
		return d.refuses
	}
	d.learned = append(d.learned, fmt.Sprint(rules, " by ", by))
	return nil
}

func (d *desk) judge() approval.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.verdict
}

func (d *desk) rules(v approval.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verdict = v
}

// outcome is what became of a call.
type outcome struct {
	approval.Settlement
	err error
}

// call is a call that asks; when it returns the question waits, or is settled.
func (d *desk) call(ctx context.Context, session string) (id string, end <-chan outcome) {
	d.Helper()
	id = d.caller.NewID()
	done := make(chan outcome, 1)
	go func() {
		s, err := d.caller.Approve(ctx, approval.Request{
			ID: id, Session: session, Turn: "t", Call: "c", Action: "do", Reason: "it may", InputDigest: "d1", WrittenDigest: "d0",
			Capability: capability.ID{Kind: capability.KindTool, Name: "do"}, Arguments: json.RawMessage(`{"n":1}`), Rules: []string{"do"},
		}, time.Now().Add(5*time.Minute), d.judge)
		done <- outcome{s, err}
	}()
	synctest.Wait()
	return id, done
}

func (d *desk) ask(m proto.Message) (proto.Message, error) {
	return actorkit.Ask[proto.Message](d.Context(), d.address.Ref(), m)
}

func (d *desk) allow(id string, scope approvalv1.Scope) error {
	_, err := d.ask(&approvalv1.AnswerApproval{Id: id, Decision: approvalv1.Decision_DECISION_ALLOW, Scope: scope, By: "ann"})
	return err
}

func (d *desk) list(m *approvalv1.ListApprovals) *approvalv1.ListApprovalsResult {
	d.Helper()
	r, err := d.ask(m)
	if err != nil {
		d.Fatal(err)
	}
	return r.(*approvalv1.ListApprovalsResult)
}

// V159: a call waits for one answer, and no longer than its limit.
func TestDeadline(t *testing.T) {
	atDesk(t, func(d *desk) {
		begun := time.Now()
		id, end := d.call(d.Context(), "s")
		if d.waiting.Load() != 1 {
			t.Errorf("%d wait", d.waiting.Load())
		}
		got := <-end
		if took := time.Since(begun); got.Err == nil || got.Err.Code != vakerr.ApprovalExpired || got.Outcome != ledger.ApprovalExpired || took != 5*time.Minute {
			t.Errorf("after %v: %+v", took, got)
		}
		if err := d.allow(id, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
			t.Errorf("the late answer is told %v", err)
		}
		if d.waiting.Load() != 0 {
			t.Errorf("%d wait still", d.waiting.Load())
		}
	})
}

// V159: of a hundred people who answer at once one is heard.
func TestConcurrentAnswersCountOnce(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, end := d.call(d.Context(), "s")
		var counted, consumed atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				decision := approvalv1.Decision(1 + i%2)
				_, err := d.ask(&approvalv1.AnswerApproval{Id: id, Decision: decision, By: fmt.Sprint("p", i)})
				switch {
				case err == nil:
					counted.Add(1)
				case vakerr.CodeOf(err) == vakerr.ApprovalConsumed:
					consumed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if counted.Load() != 1 || consumed.Load() != 99 {
			t.Errorf("%d answers counted, %d came too late", counted.Load(), consumed.Load())
		}
		if got := <-end; got.err != nil || got.Outcome != ledger.ApprovalAllowed && got.Outcome != ledger.ApprovalRejected {
			t.Errorf("%+v", got)
		}
	})
}

// A call that is given up does not wait any more, and an answer to it says so.
func TestGivenUp(t *testing.T) {
	atDesk(t, func(d *desk) {
		ctx, cancel := context.WithCancelCause(d.Context())
		id, end := d.call(ctx, "s")
		cancel(vakerr.New(vakerr.TurnEnded, "the turn ended"))
		if got := <-end; vakerr.CodeOf(got.err) != vakerr.TurnEnded {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
		if d.waiting.Load() != 0 {
			t.Error("it waits still")
		}
		if err := d.allow(id, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
			t.Errorf("the answer is told %v", err)
		}
	})
}

// An answer in the moment in which the call is given up: who answers is told the truth of it.
func TestAnswerMeetsCancel(t *testing.T) {
	atDesk(t, func(d *desk) {
		for range 200 {
			ctx, cancel := context.WithCancel(d.Context())
			id, end := d.call(ctx, "s")
			go cancel()
			err := d.allow(id, 0)
			got := <-end
			if heard := got.err == nil && got.Outcome == ledger.ApprovalAllowed; heard != (err == nil) {
				t.Fatalf("the call: %+v; who answered was told %v", got, err)
			}
			cancel()
			synctest.Wait()
		}
	})
}

// A revocation, and a policy that forbids or allows, settle what waits at once; one that still asks does not.
func TestPolicySettles(t *testing.T) {
	refusal := vakerr.New(vakerr.PermissionDenied, "denied now")
	for name, tc := range map[string]struct {
		verdict approval.Verdict
		tell    any
		want    ledger.ApprovalOutcome // empty: it waits
		err     *vakerr.Error
	}{
		"denied":       {approval.Verdict{Refusal: refusal}, &protocol.PolicyChanged{}, ledger.ApprovalWithdrawn, refusal},
		"revoked":      {approval.Verdict{Refusal: refusal}, &protocol.Revoked{CapabilityRevoked: &registryv1.CapabilityRevoked{Id: "tool:do"}}, ledger.ApprovalWithdrawn, refusal},
		"allowed":      {approval.Verdict{}, &protocol.PolicyChanged{}, ledger.ApprovalNotNeeded, nil},
		"asked still":  {approval.Verdict{Asks: true}, &protocol.PolicyChanged{}, "", nil},
		"nobody tells": {approval.Verdict{Refusal: refusal}, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				id, end := d.call(d.Context(), "s")
				d.rules(tc.verdict)
				if tc.tell != nil {
					if err := d.address.Ref().Tell(tc.tell); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if tc.want == "" {
					if _, err := d.ask(&approvalv1.GetApproval{Id: id}); err != nil {
						t.Errorf("it does not wait: %v", err)
					}
					if err := d.allow(id, 0); err != nil {
						t.Error(err)
					}
					<-end
					return
				}
				got := <-end
				if got.err != nil || got.Outcome != tc.want || got.Err != tc.err {
					t.Errorf("%+v", got)
				}
			})
		})
	}
	// One that changed between the question and its arrival.
	atDesk(t, func(d *desk) {
		d.rules(approval.Verdict{Refusal: refusal})
		if _, end := d.call(d.Context(), "s"); (<-end).Err != refusal {
			t.Error("it waits for an answer that must not count")
		}
	})
}

// An approver that ends settles what waits, and nothing runs.
func TestStopSettles(t *testing.T) {
	atDesk(t, func(d *desk) {
		_, end := d.call(d.Context(), "s")
		if err := d.system.Shutdown(context.WithoutCancel(d.Context())); err != nil {
			t.Fatal(err)
		}
		if got := <-end; got.err == nil {
			t.Errorf("%+v", got)
		}
	})
}

// V158: an answer for the workspace leaves its rules before the call goes on, one lesson at a time.
func TestAnswerForTheWorkspaceIsLearnedFirst(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.hold = make(chan struct{})
		first, end1 := d.call(d.Context(), "s")
		second, end2 := d.call(d.Context(), "s")
		told := make(chan error, 2)
		for _, id := range []string{first, second} {
			go func() { told <- d.allow(id, approvalv1.Scope_SCOPE_WORKSPACE) }()
		}
		synctest.Wait()
		select {
		case <-end1:
			t.Error("the call went on before its rule was learned")
		case <-end2:
			t.Error("the call went on before its rule was learned")
		default:
		}
		if err := d.allow(first, 0); vakerr.CodeOf(err) != vakerr.ApprovalConsumed {
			t.Errorf("a second answer meanwhile is told %v", err)
		}
		close(d.hold)
		for range 2 {
			if err := <-told; err != nil {
				t.Error(err)
			}
		}
		for _, end := range []<-chan outcome{end1, end2} {
			if got := <-end; got.Scope != approval.Workspace || len(got.Rules) != 1 {
				t.Errorf("%+v", got)
			}
		}
		if len(d.learned) != 2 || d.learned[0] != "[do] by ann" {
			t.Errorf("learned: %v", d.learned)
		}
	})
}

// Where the rule cannot be stored, who answered is told, and the call goes on this once.
func TestAnswerThatCannotBeLearned(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.refuses = vakerr.New(vakerr.ConfigInvalid, "learned.toml cannot be read")
		id, end := d.call(d.Context(), "s")
		if err := d.allow(id, approvalv1.Scope_SCOPE_WORKSPACE); !errors.Is(err, d.refuses) {
			t.Errorf("who answered is told %v", err)
		}
		if got := <-end; got.err != nil || got.Outcome != ledger.ApprovalAllowed || got.Scope != approval.Once || got.Rules != nil {
			t.Errorf("%+v", got)
		}
	})
}

// An answer for the session leaves its rules to the call; nothing is stored.
func TestAnswerForTheSession(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, end := d.call(d.Context(), "s")
		if err := d.allow(id, approvalv1.Scope_SCOPE_SESSION); err != nil {
			t.Error(err)
		}
		if got := <-end; got.Scope != approval.Session || len(got.Rules) != 1 || len(d.learned) != 0 {
			t.Errorf("%+v, learned %v", got, d.learned)
		}
	})
}

// A host learns that something waits by asking for news; the wait is bounded, and so is the number of those who wait.
func TestWaitingForNews(t *testing.T) {
	atDesk(t, func(d *desk) {
		begun := time.Now()
		if r := d.list(&approvalv1.ListApprovals{WaitMs: 30_000}); len(r.GetApprovals()) != 0 || time.Since(begun) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), r)
		}
		begun = time.Now()
		if d.list(&approvalv1.ListApprovals{WaitMs: 4_000_000_000}); time.Since(begun) != maxWait {
			t.Errorf("it waited %v", time.Since(begun))
		}

		news := make(chan *approvalv1.ListApprovalsResult, 1)
		go func() { news <- d.list(&approvalv1.ListApprovals{WaitMs: 60_000}) }()
		synctest.Wait()
		id, end := d.call(d.Context(), "s")
		r := <-news
		if got := r.GetApprovals(); len(got) != 1 || got[0].GetId() != id || string(got[0].GetArgumentsJson()) != `{"n":1}` ||
			got[0].GetInputDigest() != "d1" || got[0].GetWrittenDigest() != "d0" || got[0].GetDeadlineMs() <= got[0].GetAskedMs() {
			t.Errorf("the news: %v", r)
		}
		if r := d.list(&approvalv1.ListApprovals{SessionId: "other"}); len(r.GetApprovals()) != 0 {
			t.Errorf("another session's: %v", r)
		}
		go func() { news <- d.list(&approvalv1.ListApprovals{WaitMs: 60_000, Revision: r.GetRevision()}) }()
		synctest.Wait()
		if err := d.allow(id, 0); err != nil {
			t.Error(err)
		}
		<-end
		if after := <-news; len(after.GetApprovals()) != 0 || after.GetRevision() <= r.GetRevision() {
			t.Errorf("after the answer: %v", after)
		}

		go func() { news <- d.list(&approvalv1.ListApprovals{WaitMs: 60_000}) }()
		synctest.Wait()
		begun = time.Now()
		if err := d.address.Ref().Tell(protocol.ReleaseWatchers{}); err != nil {
			t.Error(err)
		}
		if <-news; time.Since(begun) != 0 {
			t.Errorf("released after %v", time.Since(begun))
		}

		var all sync.WaitGroup
		for range maxWatchers {
			all.Go(func() { d.list(&approvalv1.ListApprovals{WaitMs: 1000}) })
		}
		synctest.Wait()
		if _, err := d.ask(&approvalv1.ListApprovals{WaitMs: 1000}); vakerr.CodeOf(err) != vakerr.TooMany {
			t.Errorf("one more who waits: %v", err)
		}
		all.Wait()

		// Those who have gone make room.
		gone, leave := context.WithCancel(d.Context())
		for range maxWatchers {
			all.Go(func() {
				_, _ = actorkit.Ask[proto.Message](gone, d.address.Ref(), &approvalv1.ListApprovals{WaitMs: 60_000})
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		d.list(&approvalv1.ListApprovals{WaitMs: 1})
	})
}

// A thousand calls wait; the next one is refused with a reason, and all are settled when the policy forbids them.
func TestAThousandWait(t *testing.T) {
	atDesk(t, func(d *desk) {
		ends := make([]<-chan outcome, approval.MaxPending)
		for i := range ends {
			_, ends[i] = d.call(d.Context(), fmt.Sprint("s", i/10))
		}
		if _, end := d.call(d.Context(), "one-more"); vakerr.CodeOf((<-end).err) != vakerr.TooMany {
			t.Error("one more than the bound waits")
		}
		if r := d.list(&approvalv1.ListApprovals{}); len(r.GetApprovals()) != approval.MaxPending || proto.Size(r) > 4<<20 {
			t.Errorf("the list has %d, %d bytes", len(r.GetApprovals()), proto.Size(r))
		}
		d.rules(approval.Verdict{Refusal: vakerr.New(vakerr.PermissionDenied, "no")})
		if err := d.address.Ref().Tell(&protocol.PolicyChanged{}); err != nil {
			t.Fatal(err)
		}
		for _, end := range ends {
			if got := <-end; got.Err == nil || got.Err.Code != vakerr.PermissionDenied {
				t.Fatalf("%+v", got)
			}
		}
		synctest.Wait()
		if d.waiting.Load() != 0 {
			t.Errorf("%d wait still", d.waiting.Load())
		}
	})
}

func TestAnswersAreRead(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, end := d.call(d.Context(), "s")
		for name, m := range map[string]*approvalv1.AnswerApproval{
			"no decision":  {Id: id},
			"unknown one":  {Id: id, Decision: 7},
			"unknown span": {Id: id, Decision: approvalv1.Decision_DECISION_ALLOW, Scope: 9},
		} {
			if _, err := d.ask(m); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := d.ask(&approvalv1.GetApproval{Id: "nothing"}); vakerr.CodeOf(err) != vakerr.ApprovalNotFound {
			t.Error(err)
		}
		if err := d.allow(id, 0); err != nil {
			t.Error(err)
		}
		<-end
	})
}
