package session

import (
	"slices"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
)

// What answers left to a session is found in its last turn, however long ago they were, and behind it; what an activation
// waited for when it ended is settled once.
func TestMemoryOfApprovals(t *testing.T) {
	bodies := []ledger.Body{
		ledger.TurnBegan{Turn: "t1", Allowed: []string{"write(a)"}},
		ledger.ApprovalAsked{Turn: "t1", Call: "c1", Capability: capability.ID{Kind: capability.KindTool, Name: "write"}, Approval: "r-1"},
		ledger.ApprovalSettled{Turn: "t1", Call: "c1", Approval: "r-1", Outcome: ledger.ApprovalAllowed, Scope: "session", Rules: []string{"write(b)"}},
		ledger.ApprovalAsked{Turn: "t1", Call: "c2", Capability: capability.ID{Kind: capability.KindTool, Name: "write"}, Approval: "r-2"},
		ledger.ApprovalSettled{Turn: "t1", Call: "c2", Approval: "r-2", Outcome: ledger.ApprovalAllowed, Scope: "workspace", Rules: []string{"write(c)"}},
		ledger.ApprovalAsked{Turn: "t1", Call: "c3", Capability: capability.ID{Kind: capability.KindTool, Name: "write"}, Approval: "r-3"},
	}
	m := newMemory()
	head := ledger.Head{Session: "s"}
	for _, b := range bodies {
		if !tells(b.Kind()) {
			t.Errorf("%s is passed over", b.Kind())
		}
		entry, next, err := head.Next(time.Unix(0, 0), "", b)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.take(entry); err != nil {
			t.Fatal(err)
		}
		head = next
	}
	if rules := m.allowances.Rules(); !slices.Equal(rules, []string{"write(a)", "write(b)"}) {
		t.Errorf("the session may %v", rules)
	}
	left := m.unsettled.bodies()
	if len(left) != 1 {
		t.Fatalf("left: %+v", left)
	}
	if s, ok := left[0].(ledger.ApprovalSettled); !ok || s.Approval != "r-3" || s.Call != "c3" || s.Outcome != ledger.ApprovalExpired {
		t.Errorf("settled as %+v", left[0])
	}
}
