package reconciler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workspace is a Scanner whose passes last as long as the test says.
type workspace struct {
	mu      sync.Mutex
	begun   []time.Duration // since the start of the test
	start   time.Time
	lasting time.Duration
	fails   error
	panics  bool
	watch   []string
	policy  *policy.Current
}

func (w *workspace) Scan(ctx context.Context) (World, error) {
	w.mu.Lock()
	w.begun = append(w.begun, time.Since(w.start))
	lasting, fails, panics, world := w.lasting, w.fails, w.panics, World{Watch: w.watch, Policy: w.policy}
	w.mu.Unlock()
	if lasting > 0 {
		select {
		case <-time.After(lasting):
		case <-ctx.Done():
		}
	}
	if panics {
		panic("by the test")
	}
	return world, fails
}

func (w *workspace) set(change func(w *workspace)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// passes are the times at which passes have begun.
func (w *workspace) passes() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.begun...)
}

// loop is a reconciler before a registry that accepts everything and never moves the epoch.
type loop struct {
	*testing.T
	workspace *workspace
	ref       actorkit.Ref
	system    *actorkit.System

	mu       sync.Mutex
	declared []*protocol.Declare
	failed   []*protocol.PassFailed
}

func start(t *testing.T, w *workspace, c Config) *loop {
	t.Helper()
	w.start = time.Now()
	l := &loop{T: t, workspace: w, system: actortest.NewSystem(t, actorkit.Options{})}
	registry, err := l.system.Spawn("registry", actorkit.Props{Kind: "registry", New: func() actorkit.Actor { return actorkit.Func(l.registry) }})
	if err != nil {
		t.Fatal(err)
	}
	c.Scanner, c.Registry = w, &protocol.Address{}
	c.Registry.Set(registry)
	if l.ref, err = l.system.Spawn("reconciler", Props(c)); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *loop) registry(c *actorkit.Context, msg any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := msg.(type) {
	case *protocol.Declare:
		l.declared = append(l.declared, m)
		c.Reply(&protocol.DeclareResult{Epoch: 1})
	case *protocol.PassFailed:
		l.failed = append(l.failed, m)
	}
}

func (l *loop) tell(msg any) {
	l.Helper()
	if err := l.ref.Tell(msg); err != nil {
		l.Fatal(err)
	}
}

// want compares the begins of all passes so far.
func (l *loop) want(what string, begun ...time.Duration) {
	l.Helper()
	synctest.Wait()
	got := l.workspace.passes()
	if len(got) != len(begun) {
		l.Fatalf("%s: passes began at %v, want %v", what, got, begun)
	}
	for i := range got {
		if got[i] != begun[i] {
			l.Fatalf("%s: passes began at %v, want %v", what, got, begun)
		}
	}
}

const second = time.Second

// V72, V73: a ticker of 10 s and hints that wait 250 ms for others cause the same pass.
func TestTicksAndHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, &workspace{}, Config{})
		l.want("at the start", 0)
		time.Sleep(10 * second)
		l.want("after a tick", 0, 10*second)
		time.Sleep(2 * second)
		for range 100 { // V77: a hint never blocks
			l.tell(protocol.Hint{Reason: "a file changed"})
		}
		time.Sleep(249 * time.Millisecond)
		l.want("before the debounce is over", 0, 10*second)
		time.Sleep(time.Millisecond)
		l.want("a hundred hints", 0, 10*second, 12250*time.Millisecond)
		time.Sleep(10 * second)
		l.want("the next tick counts from the last pass", 0, 10*second, 12250*time.Millisecond, 22250*time.Millisecond)
	})
}

// V78: ticks that came due during a long pass are not made up for, and a hint during it leads to one more pass.
func TestLongPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workspace{lasting: 35 * second}
		l := start(t, w, Config{})
		time.Sleep(30 * second)
		w.set(func(w *workspace) { w.lasting = 0 })
		l.want("while it runs", 0)
		time.Sleep(14 * second)
		l.want("ticks are not replayed", 0)
		time.Sleep(second)
		l.want("one tick after its end", 0, 45*second)

		w.set(func(w *workspace) { w.lasting = 5 * second })
		time.Sleep(10 * second)
		l.want("a long one again", 0, 45*second, 55*second)
		for range 3 {
			time.Sleep(second)
			l.tell(protocol.Hint{})
		}
		w.set(func(w *workspace) { w.lasting = 0 })
		time.Sleep(6 * second)
		begun := w.passes()
		if len(begun) != 4 || begun[3] < 60*second || begun[3] > 61*second {
			t.Fatalf("hints during a pass: passes began at %v", begun)
		}
		time.Sleep(5 * second) // the next tick is due a second later
		if begun := w.passes(); len(begun) != 4 {
			t.Errorf("three hints during a pass led to more than one: passes began at %v", begun)
		}
	})
}

// V76: passes of a quiet world declare the same, the very policy included, and count on.
func TestQuietPassesAreEqual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const passes = 25
		rules := &policy.Current{}
		l := start(t, &workspace{policy: rules}, Config{})
		time.Sleep((passes - 1) * DefaultTick)
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.declared) != passes {
			t.Fatalf("%d passes, want %d", len(l.declared), passes)
		}
		for i, m := range l.declared {
			if m.Policy != rules || len(m.Declarations)+len(m.Problems) != 0 || m.Loop.Passes != uint64(i+1) {
				t.Errorf("pass %d declared %+v", i+1, m)
			}
		}
	})
}

// V73: a configured tick and debounce count instead of the defaults.
func TestConfiguredTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, &workspace{}, Config{Tick: 3 * second, Debounce: second})
		time.Sleep(4 * second)
		l.tell(protocol.Hint{})
		time.Sleep(second)
		l.want("a tick and a hint", 0, 3*second, 5*second)
	})
}

// Freshen and Reload are answered by a pass that began after they asked.
func TestFreshenWaitsForAPassOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workspace{lasting: 2 * second}
		l := start(t, w, Config{})
		time.Sleep(second)
		for _, command := range []any{protocol.Freshen{}, &registryv1.Reload{}} {
			asked := time.Since(w.start)
			answer, err := actorkit.Ask[*registryv1.ReloadResult](t.Context(), l.ref, command)
			if err != nil || answer.GetEpoch() != 1 || answer.GetChanged() {
				t.Fatalf("%T: %v, %v", command, answer, err)
			}
			begun := w.passes()
			if last := begun[len(begun)-1]; last < asked {
				t.Errorf("%T asked at %s was answered by the pass of %s", command, asked, last)
			}
		}
	})
}

// V80, V75: a pass that fails, or breaks off, is told to the registry, answers those who wait, and the loop goes on.
func TestFailingPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workspace{fails: vakerr.New(vakerr.WorkspaceUnreadable, "the workspace is gone")}
		l := start(t, w, Config{})
		if _, err := actorkit.Ask[*registryv1.ReloadResult](t.Context(), l.ref, &registryv1.Reload{}); vakerr.CodeOf(err) != vakerr.WorkspaceUnreadable {
			t.Errorf("reload: %v", err)
		}
		w.set(func(w *workspace) { w.fails, w.panics = nil, true })
		_, err := actorkit.Ask[*registryv1.ReloadResult](t.Context(), l.ref, &registryv1.Reload{})
		if _, thrown := errors.AsType[*actorkit.PanicError](err); !thrown {
			t.Errorf("reload: %v", err)
		}
		w.set(func(w *workspace) { w.panics = false })
		time.Sleep(10 * second)
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.failed); n != 3 || l.failed[0].Reason != "the workspace is gone" || l.failed[2].Loop.Passes != 3 {
			t.Errorf("%d failures told: %+v", n, l.failed)
		}
		if n := len(l.declared); n != 1 || l.declared[0].Loop.Passes != 4 || l.declared[0].Loop.Watching != "polling" {
			t.Errorf("%d worlds declared after them: %+v", n, l.declared)
		}
	})
}

// V81: the loop ends with its actor, also in the middle of a pass, and lets nobody wait.
func TestStopDuringAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, &workspace{lasting: time.Hour}, Config{})
		answer := make(chan error, 1)
		go func() {
			_, err := actorkit.Ask[*registryv1.ReloadResult](context.WithoutCancel(t.Context()), l.ref, &registryv1.Reload{})
			answer <- err
		}()
		synctest.Wait()
		if err := l.system.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-answer; vakerr.CodeOf(err) != vakerr.ActorStopped {
			t.Errorf("who waited: %v", err)
		}
		if took := time.Since(l.workspace.start); took > second {
			t.Errorf("the stop took %s", took)
		}
	})
}
