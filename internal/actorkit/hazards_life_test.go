package actorkit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The tests of this file and of hazards_queue_test.go are named after hazards of protoactor's core; each provokes what
// would go wrong with protoactor alone. Package comment: those that need no test because the feature is not offered.

// panicOn is an actor that panics at messages of one type.
func panicOn[M any](log func(string)) actorkit.Props {
	return actorkit.Props{Kind: "fragile", New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			if _, hit := msg.(M); hit {
				panic(fmt.Sprintf("at %T", msg))
			}
			doer{log}.Receive(c, msg)
		})
	}}
}

// A panic while stopping hides the end from the parent, or leaves a zombie.
func testPanicWhileStopping[M any](t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		parent := spawn(t, s, "parent", props(j.log))
		child := spawnChild(t, parent, "child", panicOn[M](nil))
		in(t, parent, func(c *actorkit.Context) { c.Stop(child) })
		synctest.Wait()
		want := []string{"actorkit.Started {}", "ChildStopped child <nil>"}
		if diff := cmp.Diff(want, j.all()); diff != "" {
			t.Errorf("the parent saw (-want +got):\n%s", diff)
		}
		wantCode(t, child.Tell("x"), vakerr.ActorStopped)
		if got := s.Stats(); got.Live != 1 || got.Panics != 1 {
			t.Errorf("stats %+v, want the parent alive and one panic", got)
		}
	})
}

func TestH1PanicInStopped(t *testing.T)  { testPanicWhileStopping[actorkit.Stopped](t) }
func TestH2PanicInStopping(t *testing.T) { testPanicWhileStopping[actorkit.Stopping](t) }

// A parent whose child panics in Stopped still ends itself (with protoactor alone it waits for ever).
func TestH1ParentOfPanickingChildStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t) // its cleanup fails the test when the parent does not stop
		parent := spawn(t, s, "parent", props(nil))
		spawnChild(t, parent, "child", panicOn[actorkit.Stopped](nil))
		spawnChild(t, parent, "child", panicOn[actorkit.Stopping](nil))
	})
}

// A Restart that arrives while the actor stops does not bring it back.
func TestH3RestartWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		r := spawn(t, s, "root", props(nil))
		child := spawnChild(t, r, "child", props(j.log))
		hold := make(chan struct{})
		in(t, child, func(c *actorkit.Context) {
			c.Go(func(context.Context) any { <-hold; return nil })
		})
		pid := actorkit.PIDOf(s, child)
		process, _ := s.Proto().ProcessRegistry.Get(pid)
		in(t, r, func(c *actorkit.Context) { c.Stop(child) })
		synctest.Wait()
		process.SendSystemMessage(pid, &actor.Restart{}) // it waits for its effect
		synctest.Wait()
		close(hold)
		synctest.Wait()
		process.SendSystemMessage(pid, &actor.Restart{}) // it has ended
		synctest.Wait()
		want := []string{"actorkit.Started {}", "actorkit.Stopping {}", "actorkit.Stopped {}"}
		if diff := cmp.Diff(want, j.all()); diff != "" {
			t.Errorf("the child saw (-want +got):\n%s", diff)
		}
		if live := s.Stats().Live; live != 1 {
			t.Errorf("%d actors live, want the parent only", live)
		}
	})
}

// An actor that asks for its own stop and fails in the same breath ends once.
func TestH3StopSelfThenPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		parent := spawn(t, s, "parent", props(j.from("parent")))
		child := spawnChild(t, parent, "child", props(j.from("child")))
		tell(t, child, do(func(c *actorkit.Context) any { c.StopSelf(); panic("and more") }))
		synctest.Wait()
		got := j.all()
		if len(got) != 3 || got[0] != "child: actorkit.Stopping {}" || got[1] != "child: actorkit.Stopped {}" ||
			!strings.HasPrefix(got[2], "parent: ChildStopped child") {
			t.Errorf("saw %q, want one Stopping, one Stopped, one ChildStopped", got)
		}
	})
}

// A failing or escalating root actor ends the process in protoactor; here it goes on, and its children with it.
func TestH11RootFailureIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		root := spawn(t, s, "root", panicOn[string](nil))
		child := spawnChild(t, root, "child", props(j.log))
		tell(t, root, "boom")
		synctest.Wait()
		if _, err := ask(t, root, do(func(*actorkit.Context) any { return 1 })); err != nil {
			t.Errorf("the root does not go on: %v", err)
		}
		if _, err := ask(t, child, do(func(*actorkit.Context) any { return 1 })); err != nil {
			t.Errorf("its child does not go on: %v", err)
		}
		if got := j.all(); len(got) != 1 {
			t.Errorf("the child saw %q, want Started only", got)
		}
	})
}

// A root that fails before it is built must not serve.
func TestH11RootFailingInStartedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		root := spawn(t, s, "root", panicOn[actorkit.Started](nil))
		synctest.Wait()
		wantCode(t, root.Tell("x"), vakerr.ActorStopped)
	})
}

// Two incarnations of one name never mix, even when the second is spawned while the first is still ending.
func TestH12SameNameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		parent := spawn(t, s, "parent", props(j.log))
		hold := make(chan struct{})
		first := spawnChild(t, parent, "child", props(nil))
		in(t, first, func(c *actorkit.Context) { c.Go(func(context.Context) any { <-hold; return nil }) })
		in(t, parent, func(c *actorkit.Context) { c.Stop(first) })
		second := spawnChild(t, parent, "child", props(nil))
		if first == second || first.String() == second.String() || first.Name() != second.Name() {
			t.Errorf("incarnations %v and %v: want one name, two paths", first, second)
		}
		close(hold)
		synctest.Wait()
		if _, err := ask(t, second, do(func(*actorkit.Context) any { return 1 })); err != nil {
			t.Errorf("the second incarnation went with the first: %v", err)
		}
		in(t, parent, func(c *actorkit.Context) { c.StopSelf() })
		synctest.Wait()
		wantCode(t, second.Tell("x"), vakerr.ActorStopped) // no orphan survives the parent
		if live := s.Stats().Live; live != 0 {
			t.Errorf("%d actors live, want none", live)
		}
	})
}

// A directory that fails keeps its children when its parent resumes it.
func TestH13ResumeKeepsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		p := props(nil)
		p.Supervisor = actorkit.ResumeChildren
		top := spawn(t, s, "top", p)
		directory := spawnChild(t, top, "directory", panicOn[string](nil))
		session := spawnChild(t, directory, "session", props(nil))
		tell(t, directory, "boom")
		synctest.Wait()
		for _, r := range []actorkit.Ref{directory, session} {
			if _, err := ask(t, r, do(func(*actorkit.Context) any { return 1 })); err != nil {
				t.Errorf("after the failure of the directory: %v", err)
			}
		}
	})
}

// A constructor that panics is an error of Spawn and harms neither the parent nor the caller.
func TestH14ConstructorPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		bad := actorkit.Props{New: func() actorkit.Actor { panic("no") }}
		_, err := s.Spawn("bad", bad)
		wantCode(t, err, vakerr.Internal)
		none := actorkit.Props{New: func() actorkit.Actor { return nil }}
		_, err = s.Spawn("none", none)
		wantCode(t, err, vakerr.Internal)
		parent := spawn(t, s, "parent", props(nil))
		in(t, parent, func(c *actorkit.Context) {
			_, err := c.Spawn("bad", bad)
			wantCode(t, err, vakerr.Internal)
		})
		if live := s.Stats().Live; live != 1 {
			t.Errorf("%d actors live, want the parent only", live)
		}
	})
}

// A Ref that is kept does not keep the dead actor.
func TestH15RefDoesNotPinTheActor(t *testing.T) {
	s := newSystem(t)
	parent := spawn(t, s, "parent", props(nil))
	probe := actortest.NewProbe(t, s)
	ref, state := spawnHeavy(t, parent, probe)
	in(t, parent, func(c *actorkit.Context) { c.Stop(ref) })
	actortest.Expect[stoppedNote](t, probe, time.Minute)
	for range 200 {
		if runtime.GC(); state.Value() == nil {
			runtime.KeepAlive(ref)
			return
		}
		in(t, parent, func(*actorkit.Context) {}) // lets the parent see the end
	}
	t.Errorf("the state of %v is still reachable", ref)
}

type heavy struct{ state [1 << 20]byte }

func spawnHeavy(t *testing.T, parent actorkit.Ref, probe *actortest.Probe) (actorkit.Ref, weak.Pointer[heavy]) {
	h := &heavy{}
	w := weak.Make(h)
	ref := spawnChild(t, parent, "heavy", actorkit.Props{New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			h.state[0]++
			if _, last := msg.(actorkit.Stopped); last {
				c.Tell(probe.Ref, stoppedNote{})
			}
		})
	}})
	return ref, w
}

type stoppedNote struct{}

// Shutdown stops everything, the last root first, and may be called again.
func TestH18Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		a := spawn(t, s, "a", props(j.from("a")))
		spawnChild(t, a, "child", props(j.from("a/child")))
		spawn(t, s, "b", props(j.from("b")))
		for range 2 {
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"b: actorkit.Stopping {}", "b: actorkit.Stopped {}",
			"a: actorkit.Stopping {}", "a/child: actorkit.Stopping {}", "a/child: actorkit.Stopped {}", "a: actorkit.Stopped {}",
		}
		if diff := cmp.Diff(want, j.all()); diff != "" {
			t.Errorf("order of the stop (-want +got):\n%s", diff)
		}
		if parked, closed := s.Workers(); parked != 0 || !closed {
			t.Errorf("%d workers parked, closed %v", parked, closed)
		}
		_, err := s.Spawn("late", props(nil))
		wantCode(t, err, vakerr.ShuttingDown)
		wantCode(t, a.Tell("late"), vakerr.ActorStopped)
	})
}

// The parent learns why a child ended, with the stack of the place.
func TestH21ReasonAndStackReachTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		reasons := make(chan error, 1)
		parent := spawn(t, s, "parent", actorkit.Props{New: func() actorkit.Actor {
			return actorkit.Func(func(c *actorkit.Context, msg any) {
				if m, ok := msg.(actorkit.ChildStopped); ok {
					reasons <- m.Reason
					return
				}
				doer{}.Receive(c, msg)
			})
		}})
		child := spawnChild(t, parent, "child", props(nil))
		broken := vakerr.New(vakerr.LedgerCorrupt, "the chain is broken")
		tell(t, child, do(func(*actorkit.Context) any { throwsInvariant(broken); return nil }))
		err := <-reasons
		var p *actorkit.PanicError
		if !errors.As(err, &p) || !errors.Is(err, broken) {
			t.Fatalf("reason %v, want a PanicError of %v", err, broken)
		}
		if !strings.Contains(string(p.Stack), "throwsInvariant") {
			t.Errorf("the stack does not name the place:\n%s", p.Stack)
		}
	})
}

func throwsInvariant(err error) { panic(err) }
