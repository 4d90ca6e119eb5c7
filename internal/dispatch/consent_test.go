package dispatch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// person answers the questions of a shop's calls.
type person struct {
	asked  []approval.Request
	until  time.Duration // the last question's time
	says   func(q approval.Request) approval.Settlement
	before func() // happens while the last question waits
	judged approval.Verdict
	err    error
	again  int // how often what waits was to be judged again
}

func (p *person) NewID() string { return "ask" }

func (p *person) Judge() { p.again++ }

func (p *person) Approve(_ context.Context, q approval.Request, deadline time.Time, judge func() approval.Verdict) (approval.Settlement, error) {
	p.asked = append(p.asked, q)
	p.until = time.Until(deadline)
	if p.before != nil {
		p.before()
	}
	p.judged = judge()
	if p.err != nil {
		return approval.Settlement{}, p.err
	}
	if p.says != nil {
		return p.says(q), nil
	}
	return approval.Settlement{Outcome: ledger.ApprovalAllowed, Scope: approval.Once, By: "ann", InputDigest: q.InputDigest}, nil
}

// attended is a shop whose mode asks about everything that writes, with a person at hand.
func attended(t *testing.T) (*shop, *person, Call) {
	s, p := newShop(t), &person{}
	s.rules.Mode = "workspace-write"
	s.rules.Ask = []string{"do"}
	s.Approver = p
	return s, p, s.beginAs(true)
}

func bodiesOf[B ledger.Body](s *shop) (all []B) {
	for _, n := range s.notes {
		if b, ok := n.body.(B); ok {
			all = append(all, b)
		}
	}
	return all
}

// V158, V162: what asks runs after a yes, once, and the record tells what was asked about exactly and who answered, before
// the call is recorded as started.
func TestApprovedRunsOnce(t *testing.T) {
	s, p, c := attended(t)
	out := s.call(t.Context(), c, "do", ` {"path":"sub/a","n":1}`)
	if out.Refusal != nil || s.effects() != `{"path":"sub/a","n":1}` || len(p.asked) != 1 {
		t.Fatalf("%+v, effects %q, asked %d times", out, s.effects(), len(p.asked))
	}
	q := p.asked[0]
	if q.Action != "do(sub/a)" || q.Rule != "do" || q.Reason == "" || q.Session != "s" || q.Turn != "t1" || q.Call != "c1" ||
		q.Capability != idOf("tool:do") || string(q.Arguments) != `{"path":"sub/a","n":1}` ||
		q.InputDigest != capability.ContentDigest(q.Arguments) || q.WrittenDigest == q.InputDigest {
		t.Errorf("asked: %+v", q)
	}
	if p.until > approval.DefaultTimeout || p.until < approval.DefaultTimeout-time.Minute {
		t.Errorf("an answer counts for %v", p.until)
	}
	asked, settled, started := bodiesOf[ledger.ApprovalAsked](s), bodiesOf[ledger.ApprovalSettled](s), bodiesOf[ledger.CallStarted](s)
	if len(asked) != 1 || len(settled) != 1 || len(started) != 1 {
		t.Fatalf("recorded: %+v", s.notes)
	}
	if !s.notes[0].durable || s.notes[0].body != ledger.Body(asked[0]) {
		t.Error("the question is not durable before somebody can answer it")
	}
	if asked[0].InputDigest != started[0].ArgumentsDigest || asked[0].WrittenDigest != q.WrittenDigest || asked[0].Approval != "ask" {
		t.Errorf("asked about %+v, started %+v", asked[0], started[0])
	}
	if settled[0].Outcome != ledger.ApprovalAllowed || settled[0].By != "ann" || settled[0].Scope != "once" || settled[0].ErrorCode != "" {
		t.Errorf("settled as %+v", settled[0])
	}
}

// V160: where nobody can answer the call is refused at once, and nobody is asked.
func TestUnattendedFailsClosed(t *testing.T) {
	s, p, _ := attended(t)
	s.rules.Ask = []string{"do(*/secret)"} // not every call of it asks, so that a turn is shown it
	c := s.beginAs(false)
	out := s.call(t.Context(), c, "do", `{"path":"a/secret"}`)
	if out.Refusal == nil || out.Refusal.Code != vakerr.ApprovalRequired || s.effects() != "" || len(p.asked) != 0 {
		t.Errorf("%+v, effects %q, asked %d times", out, s.effects(), len(p.asked))
	}
}

// Every end but a yes leaves the call without an effect, and says so on the ledger.
func TestNotApprovedHasNoEffect(t *testing.T) {
	end := func(o ledger.ApprovalOutcome, code vakerr.Code) func(approval.Request) approval.Settlement {
		return func(q approval.Request) approval.Settlement {
			return approval.Settlement{Outcome: o, InputDigest: q.InputDigest, Err: vakerr.New(code, "no")}
		}
	}
	for name, tc := range map[string]struct {
		set  func(s *shop, p *person)
		want vakerr.Code
	}{
		"no":            {func(_ *shop, p *person) { p.says = end(ledger.ApprovalRejected, vakerr.ApprovalRejected) }, vakerr.ApprovalRejected},
		"nobody":        {func(_ *shop, p *person) { p.says = end(ledger.ApprovalExpired, vakerr.ApprovalExpired) }, vakerr.ApprovalExpired},
		"too many wait": {func(_ *shop, p *person) { p.err = vakerr.New(vakerr.TooMany, "too many") }, vakerr.TooMany},
		"for another input": {func(_ *shop, p *person) {
			p.says = func(approval.Request) approval.Settlement {
				return approval.Settlement{Outcome: ledger.ApprovalAllowed, InputDigest: "other"}
			}
		}, vakerr.ApprovalInputMismatch},
		"denied meanwhile": {func(s *shop, p *person) { p.before = func() { s.rules.Deny = []string{"do"}; s.publish() } }, vakerr.PermissionDenied},
		"revoked meanwhile": {func(s *shop, p *person) {
			p.before = func() { s.revoked = capability.Revocations{idOf("tool:do"): "incident"}; s.publish() }
		}, vakerr.CapabilityRevoked},
		"hidden meanwhile": {func(s *shop, p *person) { p.before = func() { s.channel.Tools.Deny = []string{"do"}; s.publish() } }, vakerr.ChannelDenied},
		"not recorded": {func(s *shop, p *person) {
			p.before = func() { s.refuses = vakerr.New(vakerr.LedgerUnavailable, "full") }
		}, vakerr.LedgerUnavailable},
		"read-only meanwhile": {func(s *shop, p *person) { p.before = func() { s.rules.Mode = "read-only"; s.publish() } }, vakerr.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, c := attended(t)
			tc.set(s, p)
			out := s.call(t.Context(), c, "do", `{}`)
			if out.Refusal == nil || out.Refusal.Code != tc.want || s.effects() != "" {
				t.Errorf("%+v, effects %q, want %s", out, s.effects(), tc.want)
			}
			if len(bodiesOf[ledger.CallStarted](s)) > 0 {
				t.Error("it is recorded as started")
			}
			settled := bodiesOf[ledger.ApprovalSettled](s)
			if name == "not recorded" {
				return
			}
			if len(settled) != 1 {
				t.Fatalf("settled: %+v", settled)
			}
			switch name {
			case "denied meanwhile", "revoked meanwhile", "hidden meanwhile", "read-only meanwhile":
				if p.judged.Refusal == nil || p.judged.Refusal.Code != tc.want {
					t.Errorf("while it waited the policy said %+v", p.judged)
				}
			default:
				if settled[0].ErrorCode != tc.want {
					t.Errorf("settled as %+v", settled[0])
				}
			}
		})
	}
}

// A policy that allows it meanwhile needs no answer; one that asks about it still does not ask twice.
func TestPolicyMovesWhileItWaits(t *testing.T) {
	s, p, c := attended(t)
	p.before = func() { s.rules.Ask, s.rules.Mode = nil, "full-access"; s.publish() }
	p.says = func(q approval.Request) approval.Settlement {
		return approval.Settlement{Outcome: ledger.ApprovalNotNeeded, InputDigest: q.InputDigest}
	}
	if out := s.call(t.Context(), c, "do", `{}`); out.Refusal != nil || len(p.asked) != 1 || p.judged.Asks || p.judged.Refusal != nil {
		t.Errorf("%+v, asked %d times, judged %+v", out, len(p.asked), p.judged)
	}

	s, p, c = attended(t)
	p.before = func() { s.rules.Ask = []string{"do", "look"}; s.publish() }
	if out := s.call(t.Context(), c, "do", `{}`); out.Refusal != nil || len(p.asked) != 1 || !p.judged.Asks {
		t.Errorf("%+v, asked %d times, judged %+v", out, len(p.asked), p.judged)
	}

	// An end that lets the call go on is no yes: what asks after it is asked again.
	s, p, c = attended(t)
	first := true
	p.says = func(q approval.Request) approval.Settlement {
		o := ledger.ApprovalAllowed
		if first {
			first, o = false, ledger.ApprovalNotNeeded
		}
		return approval.Settlement{Outcome: o, InputDigest: q.InputDigest}
	}
	if out := s.call(t.Context(), c, "do", `{}`); out.Refusal != nil || len(p.asked) != 2 {
		t.Errorf("%+v, asked %d times", out, len(p.asked))
	}
}

// The caller's patience limits the wait, too.
func TestCallersDeadlineCounts(t *testing.T) {
	s, p, c := attended(t)
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	s.call(ctx, c, "do", `{}`)
	if p.until > 20*time.Second || p.until < 5*time.Second {
		t.Errorf("an answer counts for %v", p.until)
	}
}

// C23: what a hook wrote is what is asked about, and both digests are on the ledger.
func TestApprovalIsAboutWhatHooksWrote(t *testing.T) {
	s, p, _ := attended(t)
	s.hook("pre-tool-use", `echo '{"decision":"approve","input":{"path":"safe","n":2}}'`)
	c := s.beginAs(true)
	if out := s.call(t.Context(), c, "do", `{"path":"/etc/passwd"}`); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	asked := bodiesOf[ledger.ApprovalAsked](s)
	if len(asked) != 1 || asked[0].Action != "do(safe)" || asked[0].InputDigest != capability.ContentDigest([]byte(`{"path":"safe","n":2}`)) ||
		asked[0].WrittenDigest != capability.ContentDigest([]byte(`{"path":"/etc/passwd"}`)) || string(p.asked[0].Arguments) != `{"path":"safe","n":2}` {
		t.Errorf("asked about %+v", asked)
	}
}

// An op that finds out only while it runs what it acts on has had no effect yet: a person is asked outside of it, and it
// runs again; without a person it is refused there.
func TestAskedInsideOfAnOp(t *testing.T) {
	for name, there := range map[string]bool{"attended": true, "unattended": false} {
		t.Run(name, func(t *testing.T) {
			s, p, _ := attended(t)
			s.rules.Ask = []string{"answer(secret/**)"}
			runs := 0
			s.answer = func(c op.Call) (op.Result, error) {
				runs++
				if err := c.PermitPath("secret/key"); err != nil {
					return op.Result{}, err
				}
				s.ran = append(s.ran, "answer")
				return op.Result{Content: []byte(`{"content":[],"structuredContent":{"ok":true}}`)}, nil
			}
			s.rules.Allow = []string{"answer"}
			c := s.beginAs(there)
			out := s.call(t.Context(), c, "answer", `{"path":"link"}`)
			if !there {
				if out.Refusal == nil || out.Refusal.Code != vakerr.ApprovalRequired || s.effects() != "" || runs != 1 {
					t.Errorf("%+v after %d runs, effects %q", out, runs, s.effects())
				}
				return
			}
			if out.Refusal != nil || s.effects() != "answer" || runs != 2 || len(p.asked) != 1 || p.asked[0].Action != "answer(secret/key)" {
				t.Errorf("%+v after %d runs, effects %q, asked %+v", out, runs, s.effects(), p.asked)
			}
		})
	}
}

// What an op comes across is judged by the rules about the op and by those about reading, and nobody is asked.
func TestMaySee(t *testing.T) {
	s, p, _ := attended(t)
	s.Reader = "read"
	s.rules.Deny = []string{"read(secret/**)", "answer(hidden/**)"}
	s.rules.Ask = []string{"read(asked/**)"}
	s.rules.Allow = []string{"answer"}
	got := map[string]bool{}
	s.answer = func(c op.Call) (op.Result, error) {
		for _, file := range []string{"open", "secret/a", "hidden/a", "asked/a"} {
			got[file] = c.MaySee(file)
		}
		return op.Result{Content: []byte(`{"content":[],"structuredContent":{"ok":true}}`)}, nil
	}
	if out := s.call(t.Context(), s.beginAs(true), "answer", `{}`); out.Refusal != nil || len(p.asked) > 0 {
		t.Fatalf("%+v, asked %+v", out, p.asked)
	}
	want := map[string]bool{"open": true, "secret/a": false, "hidden/a": false, "asked/a": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A call that waits for a person inside of its op has had no effect, whoever gives it up.
func TestGivenUpWhileAskedInsideOfAnOp(t *testing.T) {
	s, p, _ := attended(t)
	s.rules.Ask, s.rules.Allow = []string{"answer(secret/**)"}, []string{"answer"}
	s.answer = func(c op.Call) (op.Result, error) { return op.Result{}, c.PermitPath("secret/key") }
	c := s.beginAs(true)
	ctx, cancel := context.WithCancel(t.Context())
	p.before, p.err = cancel, vakerr.New(vakerr.Canceled, "given up")
	out := s.call(ctx, c, "answer", `{"path":"link"}`)
	if e, ok := out.Entry.(ledger.CallFinished); !ok || e.Outcome != ledger.CallFailed || out.Refusal == nil || out.Refusal.Code != vakerr.Canceled {
		t.Errorf("%+v", out)
	}
}

// V97: a rule that comes after the call was judged, and before its effect, still counts at the gate.
func TestRuleBetweenJudgementAndEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		rule func(s *shop)
		want vakerr.Code
	}{
		"denied":      {func(s *shop) { s.rules.Deny = []string{"do"} }, vakerr.PermissionDenied},
		"hidden":      {func(s *shop) { s.channel.Tools.Deny = []string{"do"} }, vakerr.ChannelDenied},
		"asked about": {func(s *shop) { s.rules.Ask = []string{"do"} }, vakerr.ApprovalRequired},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			c := s.begin()
			s.meddle = func() { tc.rule(s); s.publish() }
			out := s.call(t.Context(), c, "do", `{}`)
			if out.Refusal == nil || out.Refusal.Code != tc.want || s.effects() != "" {
				t.Errorf("%+v, effects %q", out, s.effects())
			}
		})
	}
}

func TestQuestionNamesTheRule(t *testing.T) {
	s, p, _ := attended(t)
	s.rules.Ask = nil
	c := s.beginAs(true)
	s.call(t.Context(), c, "do", `{}`)
	if len(p.asked) != 1 || p.asked[0].Rule != "" || !strings.Contains(p.asked[0].Reason, "outside the workspace") {
		t.Errorf("asked: %+v", p.asked)
	}
}

// V158: a yes for the session leaves the rules of the question to its later calls, and to no other session; a yes for once
// leaves none.
func TestYesForTheSession(t *testing.T) {
	s, p, _ := attended(t)
	s.rules.Ask = nil // the mode asks
	p.says = func(q approval.Request) approval.Settlement {
		return approval.Settlement{Outcome: ledger.ApprovalAllowed, Scope: approval.Session, Rules: q.Rules, InputDigest: q.InputDigest}
	}
	c := s.beginAs(true)
	c.Allowances = &Allowances{}
	for i, want := range []int{1, 1} {
		if out := s.call(t.Context(), c, "do", `{}`); out.Refusal != nil || len(p.asked) != want {
			t.Errorf("call %d: %+v, asked %d times", i, out, len(p.asked))
		}
	}
	if rules := c.Allowances.Rules(); len(rules) != 1 || rules[0] != "do" || p.again != 1 {
		t.Errorf("the session has %v, judged again %d times", rules, p.again)
	}
	if settled := bodiesOf[ledger.ApprovalSettled](s); len(settled) != 1 || settled[0].Scope != "session" || len(settled[0].Rules) != 1 {
		t.Errorf("settled as %+v", settled)
	}
	other := s.beginAs(true)
	other.Allowances = &Allowances{}
	if s.call(t.Context(), other, "do", `{}`); len(p.asked) != 2 {
		t.Error("another session is not asked")
	}
	s.rules.Deny = []string{"do"}
	s.publish()
	if out := s.call(t.Context(), c, "do", `{}`); out.Refusal == nil || out.Refusal.Code != vakerr.PermissionDenied {
		t.Errorf("a deny rule does not win: %+v", out)
	}
	s.rules.Deny, s.rules.Ask = nil, []string{"do"}
	s.publish()
	if s.call(t.Context(), c, "do", `{}`); len(p.asked) != 3 || p.asked[2].Rules != nil {
		t.Errorf("an ask rule does not win: asked %d times, %v", len(p.asked), p.asked[len(p.asked)-1].Rules)
	}
}

func TestAllowancesAreBounded(t *testing.T) {
	var a Allowances
	for i := range 2 * maxAllowances {
		if added := a.Add([]string{strings.Repeat("x", i+1)}); added != (i < maxAllowances) {
			t.Fatalf("rule %d: %v", i, added)
		}
	}
	if len(a.Rules()) != maxAllowances {
		t.Errorf("%d rules", len(a.Rules()))
	}
}

// A hook that asks is answered by a person, whatever the rules allow, and a rule cannot answer for one.
func TestHookAsksAPerson(t *testing.T) {
	for name, there := range map[string]bool{"attended": true, "unattended": false} {
		t.Run(name, func(t *testing.T) {
			s, p := newShop(t), &person{}
			s.Approver = p
			s.hook("PreToolUse", `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"is it wise?"}}'`,
				func(h *capability.Hook) { h.Dialect = capability.DialectClaude })
			c := s.beginAs(there)
			out := s.call(t.Context(), c, "do", `{}`)
			if !there {
				if out.Refusal == nil || out.Refusal.Code != vakerr.ApprovalRequired || s.effects() != "" || strings.Contains(out.Refusal.Remedy, "allow in [permissions]") {
					t.Errorf("%+v, effects %q", out, s.effects())
				}
				return
			}
			if out.Refusal != nil || s.effects() != `{}` || len(p.asked) != 1 || !p.judged.Asks {
				t.Fatalf("%+v, effects %q, asked %d times, judged %+v", out, s.effects(), len(p.asked), p.judged)
			}
			if q := p.asked[0]; !strings.Contains(q.Reason, "is it wise?") || q.Rule != "" || q.Rules != nil {
				t.Errorf("asked: %+v", q)
			}
			p.says = func(q approval.Request) approval.Settlement {
				return approval.Settlement{Outcome: ledger.ApprovalRejected, InputDigest: q.InputDigest, Err: vakerr.New(vakerr.ApprovalRejected, "no")}
			}
			if out := s.call(t.Context(), c, "do", `{"n":1}`); out.Refusal == nil || s.effects() != `{}` {
				t.Errorf("%+v, effects %q", out, s.effects())
			}
		})
	}
}
