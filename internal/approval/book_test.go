package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var start = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

const limit = 5 * time.Minute

func request(n uint64, session string) Request {
	return Request{
		ID: ID("run00000", n), Session: session, Action: "mcp(notes/wipe)", Arguments: json.RawMessage(`{}`),
		InputDigest: "d" + session, Rules: []string{"mcp(notes/wipe)"},
	}
}

func asked(t *testing.T, n uint64) *Book {
	t.Helper()
	b := NewBook("run00000")
	if _, err := b.Ask(start, start.Add(limit), request(n, "s")); err != nil {
		t.Fatal(err)
	}
	return b
}

// V159: the first answer counts, within the limit; every later one says why it does nothing.
func TestAnsweredOnce(t *testing.T) {
	yes := Answer{ID: "run00000-1", Allow: true, By: "ann"}
	for name, tc := range map[string]struct {
		before func(b *Book)
		answer Answer
		at     time.Duration
		want   vakerr.Code // empty: it counts
	}{
		"in time":                  {answer: yes, at: limit - 1},
		"at the deadline":          {answer: yes, at: limit, want: vakerr.ApprovalExpired},
		"the same again":           {before: func(b *Book) { _, _, _ = b.Answer(start, yes) }, answer: yes, want: vakerr.ApprovalConsumed},
		"yes after no":             {before: func(b *Book) { _, _, _ = b.Answer(start, Answer{ID: yes.ID}) }, answer: yes, want: vakerr.ApprovalConsumed},
		"after it expired":         {before: func(b *Book) { b.Expire(start.Add(limit), yes.ID) }, answer: yes, at: limit + 1, want: vakerr.ApprovalExpired},
		"after the call gave up":   {before: func(b *Book) { b.Withdraw(yes.ID) }, answer: yes, want: vakerr.ApprovalExpired},
		"after a deny rule":        {before: func(b *Book) { b.Judge(yes.ID, Verdict{Refusal: vakerr.New(vakerr.PermissionDenied, "no")}) }, answer: yes, want: vakerr.ApprovalExpired},
		"after an allow rule":      {before: func(b *Book) { b.Judge(yes.ID, Verdict{}) }, answer: yes, want: vakerr.ApprovalConsumed},
		"a policy that still asks": {before: func(b *Book) { b.Judge(yes.ID, Verdict{Asks: true}) }, answer: yes},
		"an early deadline":        {before: func(b *Book) { b.Expire(start.Add(limit-1), yes.ID) }, answer: yes},
		"of an earlier run":        {answer: Answer{ID: "run99999-7", Allow: true}, want: vakerr.ApprovalExpired},
		"never asked":              {answer: Answer{ID: "run00000-2", Allow: true}, want: vakerr.ApprovalNotFound},
		"no id at all":             {answer: Answer{ID: "x", Allow: true}, want: vakerr.ApprovalNotFound},
		"about what was shown":     {answer: Answer{ID: yes.ID, Allow: true, InputDigest: "ds"}},
		"about another input":      {answer: Answer{ID: yes.ID, Allow: true, InputDigest: "other"}, want: vakerr.ApprovalInputMismatch},
		"no such scope":            {answer: Answer{ID: yes.ID, Allow: true, Scope: "world"}, want: vakerr.InvalidRequest},
		"a denial for ever":        {answer: Answer{ID: yes.ID, Scope: Workspace}, want: vakerr.InvalidRequest},
		"a name of two lines":      {answer: Answer{ID: yes.ID, Allow: true, By: "ann\nadmin"}, want: vakerr.InvalidRequest},
		"a reason without end":     {answer: Answer{ID: yes.ID, Reason: strings.Repeat("x", maxReason+1)}, want: vakerr.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			b := asked(t, 1)
			if tc.before != nil {
				tc.before(b)
			}
			waiting := b.Len()
			_, s, err := b.Answer(start.Add(tc.at), tc.answer)
			if got := vakerr.CodeOf(err); err != nil && got != tc.want || err == nil && tc.want != "" {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			if tc.want != "" {
				if b.Len() != waiting {
					t.Error("an answer that does not count settled something")
				}
				if vakerr.From(err).Remedy == "" && tc.want != vakerr.InvalidRequest {
					t.Error("it does not say what to do")
				}
				return
			}
			if s.Err != nil || s.Outcome != ledger.ApprovalAllowed || s.Scope != Once || s.InputDigest != "ds" || len(s.Rules) > 0 || b.Len() != 0 {
				t.Errorf("settled as %+v, %d wait", s, b.Len())
			}
		})
	}
}

func TestAnswersSayWhatHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		answer Answer
		want   Settlement
		tells  string
	}{
		"no, with a reason": {
			Answer{Reason: "use staging", By: "ann"},
			Settlement{Outcome: ledger.ApprovalRejected, Reason: "use staging", By: "ann", InputDigest: "ds"},
			"mcp(notes/wipe) was not approved: use staging",
		},
		"no":                {Answer{}, Settlement{Outcome: ledger.ApprovalRejected, InputDigest: "ds"}, "mcp(notes/wipe) was not approved"},
		"for the session":   {Answer{Allow: true, Scope: Session}, Settlement{Outcome: ledger.ApprovalAllowed, Scope: Session, Rules: []string{"mcp(notes/wipe)"}, InputDigest: "ds"}, ""},
		"for the workspace": {Answer{Allow: true, Scope: Workspace}, Settlement{Outcome: ledger.ApprovalAllowed, Scope: Workspace, Rules: []string{"mcp(notes/wipe)"}, InputDigest: "ds"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.answer.ID = "run00000-1"
			_, s, err := asked(t, 1).Answer(start, tc.answer)
			if err != nil {
				t.Fatal(err)
			}
			if tc.tells != "" && (s.Err == nil || s.Err.Code != vakerr.ApprovalRejected || s.Err.Reason != tc.tells) {
				t.Errorf("the call is refused with %v", s.Err)
			}
			s.Err = nil
			if diff := cmp.Diff(tc.want, s); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
		})
	}
}

// A question that no rule could answer narrowly is answered once only.
func TestNoRulesNoAlways(t *testing.T) {
	b := NewBook("run00000")
	r := request(1, "s")
	r.Rules = nil
	if _, err := b.Ask(start, start.Add(limit), r); err != nil {
		t.Fatal(err)
	}
	for _, scope := range []Scope{Session, Workspace} {
		if _, _, err := b.Answer(start, Answer{ID: r.ID, Allow: true, Scope: scope}); vakerr.CodeOf(err) != vakerr.InvalidRequest || b.Len() != 1 {
			t.Errorf("%s: %v, %d wait", scope, err, b.Len())
		}
	}
}

// What waits is bounded, for a session and for a tenant, and a place is free again once a question is settled.
func TestBounds(t *testing.T) {
	b := NewBook("run00000")
	n := uint64(0)
	ask := func(session string) error {
		n++
		_, err := b.Ask(start, start.Add(limit), request(n, session))
		return err
	}
	for range MaxPerSession {
		if err := ask("greedy"); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("greedy"); vakerr.CodeOf(err) != vakerr.TooMany || !strings.Contains(err.Error(), "this session") {
		t.Errorf("one session more than its bound: %v", err)
	}
	for i := 0; b.Len() < MaxPending; i++ {
		if err := ask(fmt.Sprint("s", i/8)); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("late"); vakerr.CodeOf(err) != vakerr.TooMany || b.Len() != MaxPending {
		t.Errorf("one more than the tenant's bound: %v, %d wait", err, b.Len())
	}
	b.Withdraw(ID("run00000", 1))
	if err := ask("greedy"); err != nil {
		t.Errorf("a place is free, and it is not taken: %v", err)
	}
	if list := b.List(""); len(list) != MaxPending || list[0].ID != ID("run00000", 2) || list[len(list)-1].ID != ID("run00000", n) {
		t.Errorf("the list has %d, from %s to %s", len(list), list[0].ID, list[len(list)-1].ID)
	}
	if err := ask("x"); err == nil {
		t.Error("the bound does not hold any more")
	}
	if _, _, err := b.Answer(start, Answer{ID: ID("run00000", n), Allow: true}); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
		t.Errorf("one that was not taken up is answered with %v", err)
	}
	if _, err := NewBook("r").Ask(start, start, request(1, "s")); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
		t.Errorf("a question whose time is up already: %v", err)
	}
}

// TestBookAgainstModel drives random histories: each question is settled at most once, nothing settled is listed, the
// counts are right, and what is remembered stays bounded.
func TestBookAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBook("run00000")
		now, n := start, uint64(0)
		ends := map[string]time.Time{} // of what waits
		settled := map[string]bool{}
		note := func(id string, did bool) {
			if _, waits := ends[id]; did != waits || did && settled[id] {
				t.Fatalf("%s settled: %v, waited: %v, settled before: %v", id, did, waits, settled[id])
			}
			if did {
				delete(ends, id)
				settled[id] = true
			}
		}
		before := b.Revision()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			id := ID("run00000", uint64(rapid.IntRange(1, 12).Draw(t, "id")))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				n++
				r := request(n, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "session"))
				if _, err := b.Ask(now, now.Add(limit), r); err != nil {
					t.Fatal(err)
				}
				ends[r.ID] = now.Add(limit)
			case 1:
				_, _, err := b.Answer(now, Answer{ID: id, Allow: true})
				if end, waits := ends[id]; waits && !now.Before(end) {
					if vakerr.CodeOf(err) != vakerr.ApprovalExpired {
						t.Fatalf("a late answer: %v", err)
					}
					break
				}
				note(id, err == nil)
			case 2:
				if end, waits := ends[id]; !waits || now.Before(end) {
					if _, ended := b.Expire(now, id); ended {
						t.Fatal("it expired early, or twice")
					}
					break
				}
				_, ended := b.Expire(now, id)
				note(id, ended)
			case 3:
				_, waits := ends[id]
				b.Withdraw(id)
				note(id, waits)
			case 4:
				_, ended := b.Judge(id, Verdict{})
				note(id, ended)
			}
			if b.Len() != len(ends) || len(b.List("")) != len(ends) || len(b.List("a"))+len(b.List("b")) != len(ends) ||
				b.Waits("") != len(ends) || b.Waits("a") != len(b.List("a")) {
				t.Fatalf("%d wait, the book says %d", len(ends), b.Len())
			}
			for _, p := range b.List("") {
				if !p.Deadline.Equal(ends[p.ID]) {
					t.Fatalf("%s waits until %v, want %v", p.ID, p.Deadline, ends[p.ID])
				}
			}
			if r := b.Revision(); r < before {
				t.Fatal("the revision fell")
			}
			before = b.Revision()
		}
	})
}

func TestMemoryOfSettledIsBounded(t *testing.T) {
	b := NewBook("run00000")
	for n := range uint64(3 * maxSettled) {
		if _, err := b.Ask(start, start.Add(limit), request(n+1, "s")); err != nil {
			t.Fatal(err)
		}
		b.Withdraw(ID("run00000", n+1))
	}
	if len(b.settled) != maxSettled || len(b.order) != maxSettled || len(b.session) != 0 {
		t.Errorf("%d and %d are remembered, %d sessions", len(b.settled), len(b.order), len(b.session))
	}
	if _, _, err := b.Answer(start, Answer{ID: ID("run00000", 1), Allow: true}); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
		t.Errorf("one that is forgotten: %v", err)
	}
}
