package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V84, V89: an explicit turn keeps its epoch, and its record tells what happened in the order in which it did.
func TestExplicitTurn(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin()
		w.publish() // nothing differs, but the epoch does
		for _, tool := range []string{"look", "do"} {
			r := must[*sessionv1.DispatchResult](w, call(turn.GetTurnId(), tool))
			if r.GetRefusal() != nil || r.GetEpoch() != turn.GetEpoch() {
				t.Errorf("%s: %v", tool, r)
			}
		}
		end := must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: turn.GetTurnId()})
		if end.GetCalls() != 2 {
			t.Errorf("%v", end)
		}
		want := []ledger.Kind{
			ledger.KindSessionOpened, ledger.KindInterfaceStored, ledger.KindTurnBegan,
			ledger.KindCallStarted, ledger.KindCallFinished, ledger.KindCallStarted, ledger.KindCallFinished, ledger.KindTurnEnded,
		}
		record := w.record()
		if diff := cmp.Diff(want, kinds(record)); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
		if began := of[ledger.TurnBegan](record)[0]; uint64(began.CapabilityEpoch) != turn.GetEpoch() || began.SetDigest != turn.GetSetDigest() {
			t.Errorf("V89: %+v", began)
		}
	})
}

func TestTurnErrors(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		refused := func(m proto.Message, want vakerr.Code) {
			t.Helper()
			if _, err := w.ask(m); vakerr.CodeOf(err) != want {
				t.Errorf("%T: %v, want %s", m, err, want)
			}
		}
		refused(&sessionv1.BeginTurn{SessionId: "s"}, vakerr.TurnOpen)
		refused(call("t0.9", "look"), vakerr.TurnNotFound)
		refused(&sessionv1.EndTurn{SessionId: "s", TurnId: "t0.9"}, vakerr.TurnNotFound)
		must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: turn})
		refused(call(turn, "look"), vakerr.TurnEnded)
		refused(&sessionv1.OpenSession{SessionId: "s", Channel: "mcp"}, vakerr.InvalidRequest)
		refused(&sessionv1.OpenSession{SessionId: "s", WritePaths: []string{"docs"}}, vakerr.InvalidRequest)
		refused(&sessionv1.BeginTurn{SessionId: "nobody"}, vakerr.SessionNotFound)
		refused(&sessionv1.BeginTurn{SessionId: "../s"}, vakerr.InvalidRequest)
		must[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: "s"})
		refused(&sessionv1.BeginTurn{SessionId: "s"}, vakerr.SessionClosed)
	})
}

// Calls in flight together are one turn; when the epoch moves under them, the next call has the new one and the old ones
// go on under theirs.
func TestBurst(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		first := w.send(w.Context(), call("", "slow"))
		if r := must[*sessionv1.DispatchResult](w, call("", "look")); r.GetEpoch() != 1 {
			t.Errorf("%v", r)
		}
		w.extra = []capability.Declaration{w.tool("new", true, nil).Declaration}
		w.publish()
		if r := must[*sessionv1.DispatchResult](w, call("", "look")); r.GetEpoch() != 2 || r.GetRefusal() != nil {
			t.Errorf("after the epoch moved: %v", r)
		}
		if len(first) > 0 {
			t.Error("the running call was ended")
		}
		w.let <- struct{}{}
		if a := <-first; a.err != nil || a.result.(*sessionv1.DispatchResult).GetEpoch() != 1 {
			t.Errorf("the running call: %+v", a)
		}
		record := w.record()
		began, ended := of[ledger.TurnBegan](record), of[ledger.TurnEnded](record)
		if len(began) != 2 || !began[0].Implicit || len(ended) != 2 || ended[0].Reason != "the epoch moved" || ended[1].Turn != began[1].Turn {
			t.Errorf("turns %+v, %+v", began, ended)
		}
		if changed := of[ledger.EpochChanged](record); len(changed) != 1 || changed[0].Delta.String() != "added tool:new" {
			t.Errorf("changes %+v", changed)
		}
	})
}

// A call ends when its turn does, when whoever waits for it is gone, and when what it runs is withdrawn; a tool that
// breaks off costs its own call only.
func TestCallsThatEndEarly(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		refusal := func(a answer) vakerr.Code {
			t.Helper()
			if a.err != nil {
				return vakerr.CodeOf(a.err)
			}
			return vakerr.Code(a.result.(*sessionv1.DispatchResult).GetRefusal().GetCode())
		}
		turn := w.begin().GetTurnId()
		running := w.send(w.Context(), call(turn, "slow"))
		must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: turn})
		if code := refusal(<-running); code != vakerr.TurnEnded {
			t.Errorf("its turn ended: %s", code)
		}

		ctx, leave := context.WithCancel(w.Context())
		running = w.send(ctx, call("", "slow"))
		leave()
		if code := refusal(<-running); code != vakerr.Canceled {
			t.Errorf("its asker is gone: %s", code)
		}

		running = w.send(w.Context(), call("", "slow"))
		id := capability.ID{Kind: capability.KindTool, Name: "slow"}
		w.revoked = capability.Revocations{id: "incident"}
		w.publish()
		if err := w.directory.Tell(&protocol.Revoked{CapabilityRevoked: &registryv1.CapabilityRevoked{
			Id: id.String(), Reason: "incident", CancelRunning: true,
		}}); err != nil {
			t.Fatal(err)
		}
		if code := refusal(<-running); code != vakerr.CapabilityRevoked {
			t.Errorf("revoked while it ran: %s", code)
		}
		if code := refusal(<-w.send(w.Context(), call("", "panic"))); code != vakerr.Internal {
			t.Errorf("a tool that broke off: %s", code)
		}
		if code := refusal(<-w.send(w.Context(), call("", "look"))); code != "" {
			t.Errorf("the next call: %s", code)
		}
		record := w.record()
		if n := len(of[ledger.CapabilityRevoked](record)); n != 1 {
			t.Errorf("%d revocations are recorded", n)
		}
		open := map[string]bool{}
		for _, b := range record {
			switch b := b.(type) {
			case ledger.CallStarted:
				open[b.Call] = true
			case ledger.CallFinished:
				delete(open, b.Call)
			}
		}
		if len(open) > 1 { // the one that broke off has no end
			t.Errorf("calls without an end: %v", open)
		}
	})
}

// V93: a session that somebody else activated is written by nobody else: this activation ends, and the next command makes
// a new one, with the session's history.
func TestFencedActivation(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		must[*sessionv1.DispatchResult](w, call("", "do"))
		w.pass(time.Second) // nothing of it is left to write: only the next call can notice
		taken := w.disk.commit.Commit(w.Context(), ledger.Activate{Tenant: "default", ID: "s", Owner: "another node", At: time.Now()})
		if taken.Err != nil {
			t.Fatal(taken.Err)
		}
		result, err := w.ask(call("", "do"))
		if r, ok := result.(*sessionv1.DispatchResult); err == nil && ok && r.GetRefusal() == nil {
			t.Error("a writing call ran under a stale activation")
		}
		time.Sleep(time.Second)
		if r := must[*sessionv1.DispatchResult](w, call("", "do")); r.GetRefusal() != nil {
			t.Errorf("the next activation: %v", r)
		}
		if n := len(of[ledger.SessionActivated](w.record())); n != 2 {
			t.Errorf("%d activations are recorded, want the other node's and the new one", n)
		}
	})
}

// An idle session leaves memory and comes back with what it was; none of the commands that arrive meanwhile is lost.
func TestPassivationLosesNoCommand(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		must[*sessionv1.DispatchResult](w, call("", "look"))
		for i := range 40 {
			time.Sleep(DefaultIdleTTL + time.Duration(i)*time.Minute/3)
			var all []<-chan answer
			for range 3 {
				all = append(all, w.post(w.Context(), call("", "look")))
			}
			for _, a := range all {
				if got := <-a; got.err != nil || got.result.(*sessionv1.DispatchResult).GetRefusal() != nil {
					t.Fatalf("round %d: %+v", i, got)
				}
			}
		}
		time.Sleep(3 * DefaultIdleTTL)
		synctest.Wait()
		if s := must[*sessionv1.GetSessionResult](w, &sessionv1.GetSession{SessionId: "s"}).GetSession(); s.GetState() != "passivated" {
			t.Errorf("at last: %v", s)
		}
		record := w.record()
		if n := len(of[ledger.SessionPassivated](record)); n < 2 || n != len(of[ledger.SessionActivated](record))+1 {
			t.Errorf("%d passivations, %d activations", n, len(of[ledger.SessionActivated](record)))
		}
		if n := len(of[ledger.CallFinished](record)); n != 121 {
			t.Errorf("%d calls are recorded, want 121", n)
		}
	})
}

// A turn whose owner is gone does not keep its session in memory for ever; one that is only slow is not touched.
func TestAbandonedTurn(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		time.Sleep(5 * DefaultIdleTTL)
		if r := must[*sessionv1.DispatchResult](w, call(turn, "look")); r.GetRefusal() != nil {
			t.Errorf("a slow owner lost its turn: %v", r)
		}
		time.Sleep(8 * DefaultIdleTTL)
		synctest.Wait()
		if s := must[*sessionv1.GetSessionResult](w, &sessionv1.GetSession{SessionId: "s"}).GetSession(); s.GetState() != "passivated" {
			t.Errorf("after hours: %v", s)
		}
		if ended := of[ledger.TurnEnded](w.record()); len(ended) != 1 || ended[0].Reason != "abandoned" {
			t.Errorf("%+v", ended)
		}
		w.begin()
	})
}
