package supervision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// run has the owner run a function in its Receive, with its Supervisor.
type run func(c *actorkit.Context, s *Supervisor) any

// owner is an actor with a Supervisor, as users of the package write them.
type owner struct{ supervisor *Supervisor }

func (o *owner) Receive(c *actorkit.Context, msg any) {
	if o.supervisor.Handle(c, msg) {
		return
	}
	if f, ok := msg.(run); ok {
		c.Reply(f(c, o.supervisor))
	}
}

type fixture struct {
	*testing.T
	system  *actorkit.System
	owner   actorkit.Ref
	begin   time.Time
	changes []string // "3s a restarting"; written in the owner's Receive
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, system: actortest.NewSystem(t, actorkit.Options{}), begin: time.Now()}
	o := Options{Policy: testPolicy, Random: func() float64 { return 0 }}
	o.Changed = func(c *actorkit.Context, h Health, ref actorkit.Ref) {
		if ref.IsZero() == (h.State == Running) {
			t.Errorf("%s is %s, its ref is %v", h.Name, h.State, ref)
		}
		f.changes = append(f.changes, fmt.Sprintf("%v %s %s", c.Now().Sub(f.begin), h.Name, h.State))
	}
	var err error
	f.owner, err = f.system.Spawn("owner", actorkit.Props{New: func() actorkit.Actor { return &owner{New(o)} }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) in(do func(c *actorkit.Context, s *Supervisor)) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	if _, err := actorkit.Ask[string](ctx, f.owner, run(func(c *actorkit.Context, s *Supervisor) any { do(c, s); return "done" })); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) add(name string, p actorkit.Props) {
	f.Helper()
	f.in(func(c *actorkit.Context, s *Supervisor) {
		if err := s.Add(c, name, p); err != nil {
			f.Error(err)
		}
	})
}

func (f *fixture) ref(name string) (ref actorkit.Ref, err error) {
	f.in(func(c *actorkit.Context, s *Supervisor) { ref, err = s.Ref(c, name) })
	return ref, err
}

func (f *fixture) health() (rows []Health) {
	f.in(func(_ *actorkit.Context, s *Supervisor) { rows = s.Health() })
	return rows
}

func (f *fixture) seen() (changes []string) {
	f.in(func(*actorkit.Context, *Supervisor) { changes = slices.Clone(f.changes) })
	return changes
}

func (f *fixture) want(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// worker serves until it is told an error, which it throws, or "leave".
func worker(kind string) actorkit.Props {
	return actorkit.Props{Kind: kind, New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			switch m := msg.(type) {
			case error:
				panic(m)
			case string:
				c.StopSelf()
			}
		})
	}}
}

// failing fails in Started as long as broken says so.
func failing(broken *bool) actorkit.Props {
	return actorkit.Props{Kind: "failing", New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			if _, ok := msg.(actorkit.Started); ok && *broken {
				panic(vakerr.New(vakerr.ServerStartFailed, "it does not start"))
			}
		})
	}}
}

func test(t *testing.T, f func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newFixture(t)) })
}

// A failed child comes back after its wait, under the same name with another Ref; its siblings do not notice.
func TestFailedChildComesBack(t *testing.T) {
	test(t, func(f *fixture) {
		f.add("a", worker("worker"))
		f.add("b", worker("worker"))
		a, _ := f.ref("a")
		b, _ := f.ref("b")
		if err := a.Tell(errors.New("password=hunter2")); err != nil {
			f.Fatal(err)
		}
		synctest.Wait()
		lastError := "panic: an error of type *errors.errorString"
		f.want("health after the failure", f.health(), []Health{
			{Name: "a", Kind: "worker", State: Restarting, LastError: lastError, NextAttempt: f.begin.Add(time.Second)},
			{Name: "b", Kind: "worker"},
		})
		_, err := f.ref("a")
		if e := vakerr.From(err); e.Code != vakerr.ActorStopped || e.RetryAfter != time.Second {
			f.Errorf("error %v, retry after %v; want actor_stopped with the wait", err, e.RetryAfter)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		f.want("health after the wait", f.health(), []Health{
			{Name: "a", Kind: "worker", Restarts: 1, LastError: lastError}, {Name: "b", Kind: "worker"},
		})
		again, err := f.ref("a")
		if err != nil || again == a || again.Name() != "a" {
			f.Errorf("the new incarnation is %v (%v), the old one was %v", again, err, a)
		}
		if now, _ := f.ref("b"); now != b {
			f.Errorf("the sibling became %v, was %v", now, b)
		}
		f.want("changes", f.seen(), []string{"0s a running", "0s b running", "0s a restarting", "1s a running"})
	})
}

// The budget ends restarts, not attempts: a child that becomes startable again is started, however late.
func TestGivesUpAndRecovers(t *testing.T) {
	test(t, func(f *fixture) {
		broken := true
		f.add("a", failing(&broken))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		f.want("health when the budget is used up", f.health(), []Health{{
			Name: "a", Kind: "failing", State: GaveUp, Restarts: 3,
			LastError:   "panic: server_start_failed: it does not start",
			NextAttempt: f.begin.Add(6*time.Second + 5*time.Minute),
		}})
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		f.in(func(*actorkit.Context, *Supervisor) { broken = false })
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if got := f.health()[0]; got.State != Running || !got.NextAttempt.IsZero() {
			f.Errorf("health %+v, want running", got)
		}
		changes := f.seen()
		attempts := slices.DeleteFunc(slices.Clone(changes), func(s string) bool { return s[len(s)-7:] != "running" })
		f.want("attempts", attempts, []string{
			"0s a running", "1s a running", "3s a running", "6s a running",
			"5m6s a running", "15m6s a running", "30m6s a running",
		})
		if got := changes[len(changes)-2]; got != "15m6s a gave-up" {
			f.Errorf("before the last attempt %q, want a gave-up of 15m6s", got)
		}
	})
}

// A constructor that panics and a child that stops itself count as failures too.
func TestOtherFailures(t *testing.T) {
	test(t, func(f *fixture) {
		f.add("constructor", actorkit.Props{New: func() actorkit.Actor { panic("no") }})
		f.add("leaver", worker(""))
		leaver, _ := f.ref("leaver")
		_ = leaver.Tell("leave")
		synctest.Wait()
		next := f.begin.Add(time.Second)
		f.want("health", f.health(), []Health{
			{Name: "constructor", State: Restarting, NextAttempt: next, LastError: `internal_error: the constructor of actor "constructor" failed`},
			{Name: "leaver", State: Restarting, NextAttempt: next, LastError: "actor_stopped: it stopped by itself"},
		})
	})
}

// The successor starts when its predecessor has ended, effects included.
func TestSuccessorWaitsForTheEnd(t *testing.T) {
	test(t, func(f *fixture) {
		f.add("a", actorkit.Props{New: func() actorkit.Actor {
			return actorkit.Func(func(c *actorkit.Context, msg any) {
				if err, ok := msg.(error); ok {
					c.Go(func(context.Context) any { time.Sleep(time.Hour); return nil })
					panic(err)
				}
			})
		}})
		a, _ := f.ref("a")
		_ = a.Tell(errors.New("x"))
		time.Sleep(2 * time.Hour)
		f.want("changes", f.seen(), []string{"0s a running", "1h0m0s a restarting", "1h0m1s a running"})
	})
}

// Only a name that cannot be, or is in use, is an error of Add.
func TestAddRefuses(t *testing.T) {
	test(t, func(f *fixture) {
		f.add("a", worker(""))
		f.in(func(c *actorkit.Context, s *Supervisor) {
			if err := s.Add(c, "a", worker("dup")); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				f.Errorf("adding a name in use: %v", err)
			}
			if err := s.Add(c, "", worker("nameless")); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				f.Errorf("adding a bad name: %v", err)
			}
			if _, err := s.Ref(c, "unknown"); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				f.Errorf("looking up a name that is not supervised: %v", err)
			}
			f.want("health", s.Health(), []Health{{Name: "a"}})
		})
	})
}

// Handle leaves alone what is not the Supervisor's.
func TestHandleIsSelective(t *testing.T) {
	test(t, func(f *fixture) {
		f.in(func(c *actorkit.Context, s *Supervisor) {
			other := New(Options{})
			if err := s.Add(c, "a", worker("")); err != nil {
				f.Error(err)
			}
			stranger, err := c.Spawn("a", worker("")) // same name, but the owner's own
			if err != nil {
				f.Error(err)
			}
			for _, msg := range []any{actorkit.ChildStopped{Child: stranger, Name: "a"}, actorkit.Started{}, "x", due{of: other}} {
				if s.Handle(c, msg) {
					f.Errorf("it took a %T that is not its own", msg)
				}
			}
		})
	})
}

func TestGuardian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actortest.NewSystem(t, actorkit.Options{})
		g, err := s.Spawn("guardian", Guardian(Options{}, Part{"b", worker("x")}, Part{"a", worker("y")}))
		if err != nil {
			t.Fatal(err)
		}
		a, err := actorkit.Ask[actorkit.Ref](t.Context(), g, Lookup{"a"})
		if err != nil || a.Name() != "a" {
			t.Fatalf("lookup: %v, %v", a, err)
		}
		if err := a.Tell(errors.New("x")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := actorkit.Ask[actorkit.Ref](t.Context(), g, Lookup{"a"}); vakerr.CodeOf(err) != vakerr.ActorStopped {
			t.Errorf("lookup of a part that is down: %v", err)
		}
		time.Sleep(time.Second)
		rows, err := actorkit.Ask[[]Health](t.Context(), g, GetHealth{})
		want := []Health{{Name: "a", Kind: "y", Restarts: 1, LastError: "panic: an error of type *errors.errorString"}, {Name: "b", Kind: "x"}}
		if diff := cmp.Diff(want, rows); diff != "" || err != nil {
			t.Errorf("health, error %v (-want +got):\n%s", err, diff)
		}
		twice, err := s.Spawn("twice", Guardian(Options{}, Part{"a", worker("x")}, Part{"a", worker("y")}))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := twice.Tell(1); vakerr.CodeOf(err) != vakerr.ActorStopped {
			t.Errorf("a guardian with two parts of one name serves: %v", err)
		}
	})
}
