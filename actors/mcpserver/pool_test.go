package mcpserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/backoff"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	faulttest.Cleanup()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// bench is a pool over a gate that shows what the test declares, with a registry that only listens.
type bench struct {
	*testing.T
	gate     *turn.Gate
	pool     actorkit.Ref
	registry *actortest.Probe
	observed *protocol.Observed // what a probe taught last; nil: nothing
	starts   string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	system := actortest.NewSystem(t, actorkit.Options{})
	b := &bench{T: t, gate: turn.NewGate(turn.View{}), registry: actortest.NewProbe(t, system), starts: filepath.Join(t.TempDir(), "starts")}
	registry := &protocol.Address{}
	registry.Set(b.registry.Ref)
	var err error
	b.pool, err = system.Spawn("pool", Props(Config{
		Tenant: "t", Gate: b.gate, Registry: registry, Backoff: backoff.Policy{Initial: time.Hour, Max: time.Hour},
		Connector: Connector{Workspace: t.TempDir(), Version: "test"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// server is a declaration of the fault server.
func (b *bench) server(flags ...string) *capability.Server {
	command, args := faulttest.Command(b.T, append([]string{"-start-log", b.starts}, flags...)...)
	return &capability.Server{
		Transport: capability.TransportStdio, Command: command, Args: args, Isolation: capability.IsolationShared,
		IdleTTL: time.Hour, StartTimeout: 20 * time.Second, CallTimeout: 20 * time.Second, MaxInFlight: 4,
	}
}

// declare publishes servers by their names.
func (b *bench) declare(servers map[string]*capability.Server) {
	b.Helper()
	var all []capability.Declaration
	for name, s := range servers {
		all = append(all, capability.Declaration{ID: capability.ID{Kind: capability.KindMCP, Name: name}, Config: s})
	}
	b.publish(all...)
}

// publish makes an epoch of these declarations, and waits until the pool has acted on it.
func (b *bench) publish(all ...capability.Declaration) {
	b.Helper()
	set, err := capability.NewSet(all, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.gate.Publish(turn.View{Snapshot: capability.Snapshot{Epoch: b.gate.View().Snapshot.Epoch + 1, Set: set}})
	if err := b.pool.Tell(&registryv1.EpochPublished{}); err != nil {
		b.Fatal(err)
	}
	if _, err := ask[*poolv1.ListServersResult](b, &poolv1.ListServers{}); err != nil { // the pool has acted on it now
		b.Fatal(err)
	}
}

func (b *bench) started() int { return len(faulttest.Lines(b.T, b.starts)) }

func ask[R any](b *bench, m any) (R, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	return actorkit.Ask[R](ctx, b.pool, m)
}

// state is the row of one server.
func (b *bench) state(name string) *poolv1.Server {
	b.Helper()
	r, err := ask[*poolv1.ListServersResult](b, &poolv1.ListServers{})
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(r.GetServers(), func(s *poolv1.Server) bool { return s.GetName() == name })
	if i < 0 {
		b.Fatalf("%s is not listed: %v", name, r)
	}
	return r.GetServers()[i]
}

// probe probes a server, and answers for the registry when that was asked to settle: not before is the probe answered.
func (b *bench) probe(name string) (*poolv1.ProbeServerResult, error) {
	b.Helper()
	type answer struct {
		result *poolv1.ProbeServerResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		r, err := actorkit.Ask[*poolv1.ProbeServerResult](b.Context(), b.pool, &poolv1.ProbeServer{Name: name})
		answered <- answer{r, err}
	}()
	for b.observed = nil; ; {
		switch m := b.registry.Next(b, 30*time.Second); msg := m.Msg.(type) {
		case *protocol.Observed:
			b.observed = msg
		case protocol.Settle:
			select {
			case a := <-answered:
				b.Fatalf("answered before what it taught was published: %+v", a)
			default:
			}
			m.Replier.Reply(protocol.Settled{})
			a := <-answered
			return a.result, a.err
		}
	}
}

// becomes waits for a state.
func (b *bench) becomes(name, state string) {
	b.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for range 2000 {
		if b.state(name).GetState() == state {
			return
		}
		<-ticker.C
	}
	b.Fatalf("%s is %s, want %s", name, b.state(name).GetState(), state)
}

// V40, V41, V131: listing starts nothing; a probe is demand, and names the tools. What was learned goes to the registry.
func TestProbeAndStop(t *testing.T) {
	b := newBench(t)
	b.declare(map[string]*capability.Server{"s": b.server()})
	if s := b.state("s"); s.GetState() != "cold" || s.GetTools() != -1 || b.started() != 0 {
		t.Fatalf("before a demand: %v, %d starts", s, b.started())
	}
	probed, err := b.probe("s")
	if err != nil || !slices.Contains(probed.GetTools(), "echo") || probed.GetServer().GetState() != "ready" || probed.GetServer().GetPid() == 0 {
		t.Fatalf("%v, %v", probed, err)
	}
	if o := b.observed; o == nil || o.Server != "s" || len(o.Observation.Catalog) != len(probed.GetTools()) {
		t.Errorf("told the registry: %+v", o)
	}
	stopped, err := ask[*poolv1.StopServerResult](b, &poolv1.StopServer{Name: "s"})
	if err != nil || !stopped.GetWasRunning() {
		t.Errorf("%v, %v", stopped, err)
	}
	b.becomes("s", "cold")
	if again, err := b.probe("s"); err != nil || again.GetServer().GetStarts() != 2 || b.started() != 2 {
		t.Errorf("the next demand: %v, %v, %d starts", again, err, b.started())
	}
}

// Trust that was taken back, and a change that waits: the running server ends, and no probe starts it.
func TestHeldServer(t *testing.T) {
	b := newBench(t)
	config := b.server()
	b.declare(map[string]*capability.Server{"s": config})
	if _, err := b.probe("s"); err != nil {
		t.Fatal(err)
	}
	b.publish(capability.Declaration{
		ID: capability.ID{Kind: capability.KindMCP, Name: "s"}, Config: config, Hold: &capability.Hold{Reason: "it waits", Remedy: "look at it"},
	})
	b.becomes("s", "cold")
	_, err := ask[*poolv1.ProbeServerResult](b, &poolv1.ProbeServer{Name: "s"})
	if vakerr.CodeOf(err) != vakerr.CapabilityHeld || b.started() != 1 {
		t.Errorf("a probe of what is held: %v, %d starts", err, b.started())
	}
}

// What a failed probe teaches is published, too, before anybody is told that it failed.
func TestFailedProbeIsPublishedFirst(t *testing.T) {
	b := newBench(t)
	b.declare(map[string]*capability.Server{"s": b.server("-exit-now", "3")})
	if _, err := b.probe("s"); vakerr.CodeOf(err) != vakerr.ServerStartFailed {
		t.Errorf("%v", err)
	}
	if b.observed == nil || b.observed.Observation.Failure == "" {
		t.Errorf("told the registry: %+v", b.observed)
	}
}

func TestUnknownServer(t *testing.T) {
	b := newBench(t)
	b.declare(nil)
	for _, m := range []any{&poolv1.ProbeServer{Name: "x"}, &poolv1.StopServer{Name: "x"}, &poolv1.GetServerLogs{Name: "x"}} {
		if _, err := ask[any](b, m); vakerr.CodeOf(err) != vakerr.UnknownServer {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// V50, V53: what failed is not tried again within its backoff, and its last words are kept.
func TestLastWords(t *testing.T) {
	b := newBench(t)
	s := b.server("-exit-now", "3")
	b.declare(map[string]*capability.Server{"s": s})
	for range 3 {
		_, err := ask[*protocol.Lease](b, &protocol.Acquire{Server: "s", Config: s})
		if code := vakerr.CodeOf(err); code != vakerr.ServerStartFailed && code != vakerr.ServerBackingOff {
			t.Fatalf("%v", err)
		}
		if !strings.Contains(err.Error(), "next attempt in 3600 s") {
			t.Errorf("V53: %v", err)
		}
	}
	if b.started() != 1 {
		t.Errorf("V50: it was started %d times", b.started())
	}
}

// Sessions share a connection, unless the server's isolation says otherwise; who holds a lease keeps it from being closed
// when the server is not declared any more, and when the last one is given back it is gone.
func TestLeases(t *testing.T) {
	b := newBench(t)
	shared, own := b.server(), b.server("-tools", "3")
	own.Isolation = capability.IsolationSession
	b.declare(map[string]*capability.Server{"shared": shared, "own": own})
	lease := func(name string, s *capability.Server, session string) *protocol.Lease {
		t.Helper()
		l, err := ask[*protocol.Lease](b, &protocol.Acquire{Server: name, Config: s, Session: session, List: true})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	x, y := lease("shared", shared, "a"), lease("shared", shared, "b")
	if x.Connection != y.Connection || b.started() != 1 {
		t.Errorf("two sessions do not share: %d starts", b.started())
	}
	p, q := lease("own", own, "a"), lease("own", own, "b")
	if p.Connection == q.Connection || b.started() != 3 {
		t.Errorf("two sessions share what is not to be shared: %d starts", b.started())
	}
	if result, err := x.Connection.Send(t.Context(), protocol.ServerRequest{Method: toolsCall, Tool: "echo", Params: []byte(`{"text":"hi"}`)}); err != nil || !strings.Contains(string(result), "hi") {
		t.Errorf("%s, %v", result, err)
	}
	if n := b.state("shared").GetInFlight(); n != 2 {
		t.Errorf("%d in flight, want 2", n)
	}

	b.declare(map[string]*capability.Server{"own": own})
	if err := x.Connection.Alive(t.Context()); err != nil {
		t.Errorf("a call lost its connection to a change: %v", err)
	}
	x.Release(true)
	x.Release(true) // once is enough
	y.Release(true)
	b.declare(map[string]*capability.Server{"own": own, "shared": shared})
	b.becomes("shared", "cold")
	for _, l := range []*protocol.Lease{p, q} {
		l.Release(true)
	}
}
