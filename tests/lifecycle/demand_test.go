package lifecycle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// parallel runs f n times at once and returns when all have returned.
func parallel(n int, f func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { f(i) })
	}
	group.Wait()
}

// V40, V41, V61, V79, V131: nothing but demand starts a server. No process is ever there, and none has come and gone: a fault
// server writes down its start.
func TestNothingButDemandStartsAServer(t *testing.T) {
	w := emptyWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
	servers := []fault{w.fault("a", nil), w.fault("b", nil, `isolation = "session"`), w.fault("c", []string{"-exit-now", "1"})}
	w.write("vak.toml", toml(configs(servers)...))
	w.start(hostOptions())
	wantChildren(t, 0, "the start")
	a := w.open()
	for what, act := range map[string]func(){
		"report":       func() { w.report() },
		"find":         func() { ask[*registryv1.FindResult](w, &registryv1.Find{Query: "echo a text"}) },
		"servers list": func() { ask[*poolv1.ListServersResult](w, &poolv1.ListServers{}) },
		"servers logs": func() { ask[*poolv1.GetServerLogsResult](w, &poolv1.GetServerLogs{Name: "a"}) },
		"the tools":    func() { ask[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: a.id}) },
		"one server":   func() { ask[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: a.id, Server: "a"}) },
		"reload":       func() { w.reload() },
		"an edit":      func() { w.write(skillFile("greet"), skill("greet", "Say hi.")); w.reload() },
		"a revocation": func() { w.revoke("mcp:a", true); w.restore("mcp:a") },
		"mcp list":     func() { u := a.begin(); u.want(u.call("mcp", object{"action": "list"}), "a\nb\nc"); u.end() },
		"find_tools":   func() { u := a.begin(); u.want(u.call("find_tools", object{"query": "echo"})); u.end() },
		"another format": func() {
			ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: w.open().id, Format: "anthropic"})
		},
	} {
		act()
		wantChildren(t, 0, what)
	}
	prompt := a.begin()
	for _, s := range servers {
		if !strings.Contains(prompt.GetPromptSection(), "- "+s.name) {
			t.Errorf("the prompt does not name %s: %s", s.name, prompt.GetPromptSection())
		}
		if n := s.started(); n > 0 {
			t.Errorf("V131: server %s was started %d times without a demand", s.name, n)
		}
	}
	prompt.want(prompt.mcp("a", "echo", object{"text": "hello"}), "hello")
	wantChildren(t, 1, "the first call")
}

// V42: one connection serves all sessions of a workspace.
func TestSessionsShareAConnection(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	agents := w.openMany(50)
	counts := make([]string, len(agents))
	parallel(len(agents), func(i int) {
		u := agents[i].begin()
		counts[i] = u.mcp("s", "counter", nil).text
		u.end()
	})
	slices.Sort(counts)
	if distinct := len(slices.Compact(counts)); distinct != len(agents) {
		t.Errorf("%d sessions counted on to %d numbers: they do not share one server", len(agents), distinct)
	}
	if n := s.started(); n != 1 {
		t.Errorf("V42: %d sessions started the server %d times", len(agents), n)
	}
	wantChildren(t, 1, "the calls of 50 sessions")
}

// V43, V109: with isolation = "session" each session has a server of its own, and no other's state; while it is idle it
// has none.
func TestIsolatedSessions(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil, `isolation = "session"`, `idle_ttl = "1s"`)
	w.write("vak.toml", toml(s.config))
	for _, a := range w.openMany(5) {
		u := a.begin()
		u.want(u.mcp("s", "counter", nil), "1")
		u.want(u.mcp("s", "counter", nil), "2")
	}
	if n := s.started(); n != 5 {
		t.Errorf("5 sessions started the server %d times", n)
	}
	wantChildren(t, 5, "the calls of 5 isolated sessions")
	eventually(t, "idle sessions keep no connection", func() bool {
		state := w.state("s")
		return len(children(t)) == 0 && state.GetState() == "cold" && state.GetConnections() == 0
	})
	if n := w.state("s").GetStarts(); n != 5 {
		t.Errorf("the pool counts %d starts, want 5", n)
	}
}

// V40, V42: however many want a server that does not run, it is started once.
func TestConcurrentDemandsStartOne(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", []string{"-slow-start", "100ms"}, "max_in_flight = 100")
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	answers := make([]answer, 100)
	parallel(len(answers), func(i int) { answers[i] = u.mcp("s", "echo", object{"text": fmt.Sprint("text", i)}) })
	for i, a := range answers {
		u.want(a, fmt.Sprint("text", i))
	}
	if n := s.started(); n != 1 {
		t.Errorf("100 first calls started the server %d times", n)
	}
	if n := s.called(); n != 100 {
		t.Errorf("100 calls reached the server as %d", n)
	}
	eventually(t, "the ledger holds all calls", func() bool { return len(recorded[ledger.CallFinished](u.agent)) == 100 })
}

// V43, V45, V46, V71: a connection that nobody uses is shut down, which is told of it by name; that starts nothing again, and what was learned stays, over a
// restart of the daemon too.
func TestIdleStop(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil, `idle_ttl = "50ms"`)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	u.end()
	eventually(t, "the idle server has been shut down", func() bool { return len(children(t)) == 0 })
	eventually(t, "the pool shows an idle server", func() bool { return w.state("s").GetState() == "idle" })
	known := func(when string) {
		t.Helper()
		w.reload()
		u := a.begin()
		if !strings.Contains(u.GetPromptSection(), "- s: add, ask, asked, big") {
			t.Errorf("V46: the catalog is not known any more %s: %s", when, u.GetPromptSection())
		}
		u.end()
		w.report()
		wantChildren(t, 0, "looking at an evicted server "+when)
	}
	known("after the eviction")
	w.restart()
	known("after the restart")
	if n := s.started(); n != 1 {
		t.Errorf("V45: eviction led to a start: %d in all", n)
	}
	u = a.begin()
	u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
	if n := s.started(); n != 2 {
		t.Errorf("the next demand led to %d starts in all, want 2", n)
	}
}

// V58, V59, V109: a server that was killed is not answered through; whoever calls next, and with however many others, it
// is started again, once.
func TestKilledServerAnswersTheNextCall(t *testing.T) {
	const callers = 8
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	turns := make([]*aTurn, callers)
	for i, a := range w.openMany(callers) {
		turns[i] = a.begin()
	}
	for n := range 20 {
		answers := make([]answer, callers)
		parallel(callers, func(i int) { answers[i] = turns[i].mcp("s", "echo", object{"text": fmt.Sprint(n, " of ", i)}) })
		for i, got := range answers {
			turns[i].want(got, fmt.Sprint(n, " of ", i))
		}
		if starts := s.started(); starts != n+1 {
			t.Fatalf("V59: %d kills led to %d starts", n, starts)
		}
		s.kill()
	}
	eventually(t, "no dead child is kept", func() bool { return len(children(t)) == 0 })
}

// A stop leaves no orphan: not of a server that ignores its end, nor what it started itself.
func TestStopLeavesNoOrphan(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", []string{"-deaf", "-grandchild"})
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	got := u.mcp("s", "grandchild", nil)
	u.want(got)
	var grandchild int
	if _, err := fmt.Sscan(got.text, &grandchild); err != nil || !runs(grandchild) {
		t.Fatalf("there is no grandchild: %q", got.text)
	}
	w.stop()
	if server := s.pids()[0]; runs(server) || runs(grandchild) {
		t.Errorf("the stop left the server (%v) or its child (%v)", runs(server), runs(grandchild))
	}
	left, err := os.ReadDir(w.outside("data/groups"))
	if err != nil || len(left) > 0 {
		t.Errorf("the stop left %d records of processes: %v", len(left), err)
	}
	if n := len(faulttest.Lines(t, s.starts)); n != 1 {
		t.Errorf("the stop started the server again: %d starts", n)
	}
}
