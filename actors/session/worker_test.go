package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// workerOf asks for the worker "w" of a turn of session "s".
func workerOf(turn string, tools ...string) *sessionv1.OpenSession {
	return &sessionv1.OpenSession{SessionId: "w", Worker: &sessionv1.Worker{ParentSessionId: "s", ParentTurnId: turn, Tools: tools}}
}

// calls makes the worker call a tool in a turn of that id, and returns how it was refused; empty: it was not.
func (w *tenant) workerCalls(turn, tool string) vakerr.Code {
	w.Helper()
	result, err := w.ask(&sessionv1.Dispatch{SessionId: "w", TurnId: turn, Name: tool})
	if err != nil {
		return vakerr.CodeOf(err)
	}
	return vakerr.Code(result.(*sessionv1.DispatchResult).GetRefusal().GetCode())
}

func (w *tenant) ends(turn string) {
	w.Helper()
	must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: turn})
}

// V124: a worker is bound to the epoch of its parent's turn, and to nothing that came later; it has its parent's write
// paths and channel, nobody to answer approvals, and only the tools it was given.
func TestWorkerInherits(t *testing.T) {
	inBubble(t, func(w *tenant) {
		must[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: "s", Channel: "desk", Attended: true, WritePaths: []string{"docs"}})
		turn := w.begin()
		w.extra = []capability.Declaration{w.tool("new", true, nil).Declaration}
		w.publish()
		opened := must[*sessionv1.OpenSessionResult](w, workerOf(turn.GetTurnId(), "look", "slow", "new")).GetSession()
		looked := w.freshened.Load()
		if opened.GetChannel() != "desk" || opened.GetWorker().GetParentTurnId() != turn.GetTurnId() || !slices.Equal(opened.GetWritePaths(), []string{"docs"}) {
			t.Errorf("opened %v", opened)
		}
		begun := must[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: "w"})
		if begun.GetEpoch() != turn.GetEpoch() || begun.GetSetDigest() != turn.GetSetDigest() || !slices.Equal(begun.GetLoaded(), []string{"look", "slow"}) {
			t.Errorf("its turn: epoch %d of %d, loaded %v", begun.GetEpoch(), turn.GetEpoch(), begun.GetLoaded())
		}
		for tool, want := range map[string]vakerr.Code{"look": "", "do": vakerr.UnknownTool, "new": vakerr.UnknownTool} {
			if got := w.workerCalls(begun.GetTurnId(), tool); got != want {
				t.Errorf("%s: %q, want %q", tool, got, want)
			}
		}
		must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "w", TurnId: begun.GetTurnId()})
		running := w.send(w.Context(), &sessionv1.Dispatch{SessionId: "w", Name: "slow"})
		if got := w.workerCalls("", "new"); got != vakerr.UnknownTool {
			t.Errorf("a call of no turn reaches a later epoch: %q", got)
		}
		w.let <- struct{}{}
		<-running
		if began := of[ledger.TurnBegan](w.recordOf("w")); len(began) != 2 || w.freshened.Load() != looked {
			t.Errorf("a worker looked for something newer: turns %+v, %d passes", began, w.freshened.Load()-looked)
		}
		listed := must[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: "w"})
		if text := string(listed.GetToolsJson()); strings.Contains(text, `"new"`) || strings.Contains(text, `"do"`) || listed.GetEpoch() != turn.GetEpoch() {
			t.Errorf("it lists %s of epoch %d", text, listed.GetEpoch())
		}
		began := of[ledger.WorkerOpened](w.record())
		if diff := cmp.Diff([]ledger.WorkerOpened{{Turn: turn.GetTurnId(), Worker: "w"}}, began); diff != "" {
			t.Errorf("the parent's record (-want +got):\n%s", diff)
		}
		attributes := of[ledger.SessionOpened](w.recordOf("w"))[0].Attributes
		if attributes[attrAttended] != "false" || !strings.Contains(attributes[attrWorker], `\"s\"`) {
			t.Errorf("the worker's record: %v", attributes)
		}
	})
}

// V124, V97: what is revoked is revoked for workers at once, although they are bound to an older epoch.
func TestRevocationReachesWorkers(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		must[*sessionv1.OpenSessionResult](w, workerOf(w.begin().GetTurnId()))
		running := w.send(w.Context(), &sessionv1.Dispatch{SessionId: "w", Name: "slow"})
		if got := w.workerCalls("", "look"); got != "" {
			t.Fatal(got)
		}
		slow, look := capability.ID{Kind: capability.KindTool, Name: "slow"}, capability.ID{Kind: capability.KindTool, Name: "look"}
		w.revoked = capability.Revocations{slow: "incident", look: "incident"}
		w.publish()
		_ = w.directory.Tell(&protocol.Revoked{CapabilityRevoked: &registryv1.CapabilityRevoked{Id: slow.String(), Reason: "incident", CancelRunning: true}})
		if a := <-running; a.err != nil || a.result.(*sessionv1.DispatchResult).GetRefusal().GetCode() != string(vakerr.CapabilityRevoked) {
			t.Errorf("the running call: %+v", a)
		}
		if got := w.workerCalls("", "look"); got != vakerr.CapabilityRevoked {
			t.Errorf("the next call: %q", got)
		}
	})
}

// V124: workers end with the turn they serve, what they run is given up, and nobody can work for a turn that is over.
func TestWorkersEndWithTheTurn(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		must[*sessionv1.OpenSessionResult](w, workerOf(turn))
		running := w.send(w.Context(), &sessionv1.Dispatch{SessionId: "w", Name: "slow"})
		w.ends(turn)
		a := <-running // an error where the session was gone before the call had given up
		if r, _ := a.result.(*sessionv1.DispatchResult); vakerr.CodeOf(a.err) != vakerr.SessionClosed && r.GetRefusal().GetCode() != string(vakerr.SessionClosed) {
			t.Errorf("the running call: %+v", a)
		}
		if got := w.workerCalls("", "look"); got != vakerr.SessionClosed {
			t.Errorf("the next call: %q", got)
		}
		closed := of[ledger.SessionClosed](w.recordOf("w"))
		if len(closed) != 1 || !strings.Contains(closed[0].Reason, turn) {
			t.Errorf("its record ends with %+v", closed)
		}
		later := workerOf(turn)
		later.SessionId = "later"
		if _, err := w.ask(later); vakerr.CodeOf(err) != vakerr.TurnEnded {
			t.Errorf("a worker of a turn that is over: %v", err)
		}
		if _, err := w.disk.Session(w.Context(), "default", "later"); vakerr.CodeOf(err) != vakerr.SessionNotFound {
			t.Errorf("a worker that was refused is kept: %v", err)
		}
	})
}

// The same holds where word of it does not reach them.
func TestWorkersEndUntold(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		must[*sessionv1.OpenSessionResult](w, workerOf(turn))
		w.lost.Store(true)
		w.ends(turn)
		if got := w.workerCalls("", "look"); got != vakerr.TurnEnded {
			t.Errorf("the next call: %q", got)
		}
	})
}

// The same holds when the turn ends in another way than by its end.
func TestWorkersEndWhenTheParentIsGone(t *testing.T) {
	for name, end := range map[string]func(*tenant){
		"closed": func(w *tenant) { must[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: "s"}) },
		"fenced": func(w *tenant) { // by another activation, as after a failure
			w.pass(time.Second) // nothing is left to write
			if taken := w.disk.commit.Commit(w.Context(), ledger.Activate{Tenant: "default", ID: "s", Owner: "other", At: time.Now()}); taken.Err != nil {
				w.Fatal(taken.Err)
			}
			if result, err := w.ask(call("", "do")); err == nil && result.(*sessionv1.DispatchResult).GetRefusal() == nil {
				w.Error("a writing call ran under a stale activation")
			}
		},
		"abandoned": func(w *tenant) { w.pass(9 * DefaultIdleTTL) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *tenant) {
				w.open()
				must[*sessionv1.OpenSessionResult](w, workerOf(w.begin().GetTurnId()))
				end(w)
				if got := w.workerCalls("", "look"); got != vakerr.SessionClosed && got != vakerr.TurnEnded {
					t.Errorf("the worker goes on: %q", got)
				}
				if closed := of[ledger.SessionClosed](w.recordOf("w")); len(closed) != 1 {
					t.Errorf("the worker is still open: %v", closed)
				}
			})
		})
	}
}

// A worker that was passivated comes back as what it was, keeps its parent's turn open by working, and is closed although
// it sleeps when that ends.
func TestWorkerPassivated(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin()
		must[*sessionv1.OpenSessionResult](w, workerOf(turn.GetTurnId(), "look"))
		w.publish()
		for range 10 {
			w.pass(2 * DefaultIdleTTL) // 200 minutes in all, more than an unused turn stays open
			begun := must[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: "w"})
			if begun.GetEpoch() != turn.GetEpoch() || !slices.Equal(begun.GetLoaded(), []string{"look"}) {
				t.Fatalf("after its sleep: epoch %d, loaded %v", begun.GetEpoch(), begun.GetLoaded())
			}
			must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "w", TurnId: begun.GetTurnId()})
		}
		w.pass(2 * DefaultIdleTTL)
		w.ends(turn.GetTurnId())
		record := w.recordOf("w")
		if len(of[ledger.SessionPassivated](record)) < 10 || len(of[ledger.SessionClosed](record)) != 1 {
			t.Errorf("its record: %v", kinds(record))
		}
		if opened := of[ledger.WorkerOpened](w.record()); len(opened) != 1 {
			t.Errorf("the parent's record: %v", opened)
		}
	})
}

// A worker whose daemon was started again finds no turn, and closes.
func TestWorkerAfterRestart(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		must[*sessionv1.OpenSessionResult](w, workerOf(turn))
		if err := w.system.Shutdown(w.Context()); err != nil {
			t.Fatal(err)
		}
		w.start()
		if got := w.workerCalls("", "look"); got != vakerr.TurnEnded {
			t.Errorf("its next call: %q", got)
		}
		if got := w.workerCalls("", "look"); got != vakerr.SessionClosed {
			t.Errorf("the one after: %q", got)
		}
	})
}

// What a worker must not be opened with.
func TestWorkerRefused(t *testing.T) {
	inBubble(t, func(w *tenant) {
		must[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: "s", WritePaths: []string{"docs"}})
		turn := w.begin().GetTurnId()
		inside := workerOf(turn)
		inside.WritePaths = []string{"docs/en"}
		if got := must[*sessionv1.OpenSessionResult](w, inside).GetSession().GetWritePaths(); !slices.Equal(got, inside.GetWritePaths()) {
			t.Errorf("narrower write paths became %v", got)
		}
		for name, tc := range map[string]struct {
			edit func(*sessionv1.OpenSession)
			want vakerr.Code
		}{
			"another turn":          {func(m *sessionv1.OpenSession) { m.Worker.ParentTurnId = "t9.9" }, vakerr.TurnEnded},
			"another parent":        {func(m *sessionv1.OpenSession) { m.Worker.ParentSessionId = "nobody" }, vakerr.TurnEnded},
			"no parent":             {func(m *sessionv1.OpenSession) { m.Worker.ParentSessionId = "" }, vakerr.InvalidRequest},
			"wider write paths":     {func(m *sessionv1.OpenSession) { m.WritePaths = []string{"docs", "src"} }, vakerr.PermissionDenied},
			"an approver":           {func(m *sessionv1.OpenSession) { m.Attended = true }, vakerr.InvalidRequest},
			"an empty glob":         {func(m *sessionv1.OpenSession) { m.Worker.Tools = []string{"look", ""} }, vakerr.InvalidRequest},
			"too many globs":        {func(m *sessionv1.OpenSession) { m.Worker.Tools = slices.Repeat([]string{"a"}, 65) }, vakerr.TooMany},
			"a worker's own":        {func(m *sessionv1.OpenSession) { m.Worker.ParentSessionId, m.Worker.ParentTurnId = "w", w.turnOf("w") }, vakerr.InvalidRequest},
			"an id that is another": {func(m *sessionv1.OpenSession) { m.SessionId = "s" }, vakerr.InvalidRequest},
		} {
			m := workerOf(turn)
			m.SessionId = "x"
			tc.edit(m)
			if _, err := w.ask(m); vakerr.CodeOf(err) != tc.want {
				t.Errorf("%s: %v, want %s", name, err, tc.want)
			}
		}
	})
}

// turnOf begins a turn of a session.
func (w *tenant) turnOf(session string) string {
	w.Helper()
	return must[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: session}).GetTurnId()
}

// A turn has so many workers at a time; closing one makes room for another.
func TestWorkersAreBounded(t *testing.T) {
	inBubble(t, func(w *tenant) {
		w.open()
		turn := w.begin().GetTurnId()
		hire := func(i int) error {
			m := workerOf(turn)
			m.SessionId = fmt.Sprintf("w%d", i)
			_, err := w.ask(m)
			return err
		}
		for i := range maxWorkers {
			if err := hire(i); err != nil {
				t.Fatal(i, err)
			}
		}
		if err := hire(maxWorkers); vakerr.CodeOf(err) != vakerr.TooMany {
			t.Errorf("one more: %v", err)
		}
		must[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: "w0"})
		if err := hire(maxWorkers); err != nil {
			t.Errorf("after one was closed: %v", err)
		}
	})
}

// V180: misreads are counted for the session, and the count outlives its passivation. V181: so does what was loaded, in its
// order, however long the record of the last turn is.
func TestMisreadsAndLoadedSurvive(t *testing.T) {
	inBubble(t, func(w *tenant) {
		serving := func(name string, domains ...string) capability.Declaration {
			d := w.tool(name, true, nil).Declaration
			d.Serves = capability.ParseDomains(domains...)
			return d
		}
		look := w.ops.Declarations()
		i := slices.IndexFunc(look, func(d capability.Declaration) bool { return d.ID.Name == "look" })
		look[i].Serves = capability.ParseDomains("web")
		w.declared = look
		w.extra = []capability.Declaration{serving("a", "memory"), serving("b", "web")}
		w.publish()
		w.open()
		begin := func(domains ...string) *sessionv1.BeginTurnResult {
			return must[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: "s", Reading: &sessionv1.Reading{Domains: domains}})
		}
		turn := begin("memory")
		for range 300 { // more entries than are read at a time
			must[*sessionv1.DispatchResult](w, call(turn.GetTurnId(), "do"))
		}
		must[*sessionv1.DispatchResult](w, call(turn.GetTurnId(), "look"))
		end := must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: turn.GetTurnId()})
		if diff := cmp.Diff([]string{"look"}, end.GetMisread()); diff != "" {
			t.Errorf("misread (-want +got):\n%s", diff)
		}
		w.pass(2 * DefaultIdleTTL)
		next := begin("web")
		if diff := cmp.Diff(append(slices.Clone(turn.GetLoaded()), "b", "look"), next.GetLoaded()); diff != "" {
			t.Errorf("loaded (-want +got):\n%s", diff)
		}
		if s := must[*sessionv1.GetSessionResult](w, &sessionv1.GetSession{SessionId: "s"}).GetSession(); s.GetMisreads() != 1 {
			t.Errorf("misreads of the session: %d", s.GetMisreads())
		}
	})
}

// V181: what a search has loaded outlives passivation also where no reading is given, however long ago the search was.
func TestFoundSurvives(t *testing.T) {
	inBubble(t, func(w *tenant) {
		found := w.tool("found", true, nil).Declaration
		found.Serves = capability.ParseDomains("web")
		w.extra = []capability.Declaration{found}
		w.publish()
		w.open()
		read := &sessionv1.BeginTurn{SessionId: "s", Reading: &sessionv1.Reading{}}
		first := must[*sessionv1.BeginTurnResult](w, read)
		r := must[*sessionv1.DispatchResult](w, call(first.GetTurnId(), "promote"))
		if diff := cmp.Diff([]string{"found"}, r.GetPromoted()); diff != "" {
			t.Fatal(diff)
		}
		must[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: "s", TurnId: first.GetTurnId()})
		for range 200 {
			must[*sessionv1.DispatchResult](w, call("", "look")) // each a turn of its own
		}
		w.pass(2 * DefaultIdleTTL)
		if diff := cmp.Diff(append(first.GetLoaded(), "found"), must[*sessionv1.BeginTurnResult](w, read).GetLoaded()); diff != "" {
			t.Errorf("loaded (-want +got):\n%s", diff)
		}
	})
}
