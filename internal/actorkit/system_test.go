package actorkit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestNames(t *testing.T) {
	s := newSystem(t)
	for _, bad := range []string{"", strings.Repeat("x", 257), "a\nb", "\x7f"} {
		_, err := s.Spawn(bad, props(nil))
		wantCode(t, err, vakerr.InvalidRequest)
	}
	parent := spawn(t, s, "tenant/a#b", props(nil))
	child := spawnChild(t, parent, "session/ü#9", props(nil))
	if parent.Name() != "tenant/a#b" || child.Name() != "session/ü#9" {
		t.Errorf("names %q and %q, want those given", parent.Name(), child.Name())
	}
	if got, want := child.String(), "/tenant/a#b#1/session/ü#9#2"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
	if nobody := (actorkit.Ref{}); !nobody.IsZero() || nobody.Name() != "" || nobody.String() != "nobody" || child.IsZero() {
		t.Error("the zero Ref, and only that, is nobody")
	}
	in(t, child, func(c *actorkit.Context) {
		if c.Self() != child {
			t.Errorf("Self is %v, want %v", c.Self(), child)
		}
	})
}

// Messages of one sender arrive in order, none twice, none lost.
func TestOrder(t *testing.T) {
	const senders, messages = 4, 5000
	s := newSystem(t)
	last := make([]int, senders)
	p := actorkit.Props{Mailbox: senders*messages + 1, New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			switch m := msg.(type) {
			case [2]int:
				if m[1] != last[m[0]]+1 {
					t.Errorf("sender %d: %d after %d", m[0], m[1], last[m[0]])
				}
				last[m[0]] = m[1]
			case do:
				c.Reply(m(c))
			}
		})
	}}
	r := spawn(t, s, "r", p)
	done := make(chan error, senders)
	for sender := range senders {
		go func() {
			var err error
			for i := range messages {
				err = errors.Join(err, r.Tell([2]int{sender, i + 1}))
			}
			done <- err
		}()
	}
	for range senders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	in(t, r, func(*actorkit.Context) {
		for sender, n := range last {
			if n != messages {
				t.Errorf("sender %d: %d of %d messages arrived", sender, n, messages)
			}
		}
	})
}

// A failed child is stopped by default; a Strategy may resume it, except before it has started or when it panics itself.
func TestStrategy(t *testing.T) {
	tests := []struct {
		name     string
		strategy actorkit.Strategy
		child    actorkit.Props
		lives    bool
	}{
		{"default", nil, panicOn[string](nil), false},
		{"resume", actorkit.ResumeChildren, panicOn[string](nil), true},
		{"resume, failed in Started", actorkit.ResumeChildren, panicOn[actorkit.Started](nil), false},
		{"stop", func(actorkit.Failure) actorkit.Directive { return actorkit.Stop }, panicOn[string](nil), false},
		{"panics", func(actorkit.Failure) actorkit.Directive { panic("no idea") }, panicOn[string](nil), false},
		{"knows who and why", func(f actorkit.Failure) actorkit.Directive {
			if f.Name == "child" && f.Child.Name() == "child" && f.Kind == "fragile" && f.Reason.Value == "at string" {
				return actorkit.Resume
			}
			return actorkit.Stop
		}, panicOn[string](nil), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				p := props(j.from("parent"))
				p.Supervisor = tt.strategy
				parent := spawn(t, newSystem(t), "parent", p)
				child := spawnChild(t, parent, "child", tt.child)
				_ = child.Tell("boom") // refused when it failed in Started
				synctest.Wait()
				notes := j.all()
				if tt.lives {
					if _, err := ask(t, child, do(func(*actorkit.Context) any { return 1 })); err != nil || len(notes) > 0 {
						t.Errorf("error %v, parent saw %q; want a child that goes on", err, notes)
					}
					return
				}
				wantCode(t, child.Tell("x"), vakerr.ActorStopped)
				if len(notes) != 1 || !strings.HasPrefix(notes[0], "parent: ChildStopped child panic: ") {
					t.Errorf("the parent saw %q, want ChildStopped with the reason", notes)
				}
			})
		})
	}
}

// A parent stops only children of its own.
func TestStopIsForOwnChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		a, b := spawn(t, s, "a", props(nil)), spawn(t, s, "b", props(nil))
		child := spawnChild(t, a, "child", props(nil))
		in(t, b, func(c *actorkit.Context) { c.Stop(child); c.Stop(a); c.Stop(actorkit.Ref{}) })
		synctest.Wait()
		if live := s.Stats().Live; live != 3 {
			t.Errorf("%d actors live, want all 3", live)
		}
		in(t, a, func(c *actorkit.Context) { c.Stop(child) })
		synctest.Wait()
		in(t, a, func(c *actorkit.Context) { c.Stop(child) }) // gone: nothing to do
		if live := s.Stats().Live; live != 2 {
			t.Errorf("%d actors live, want 2", live)
		}
	})
}

// An effect that ignores its cancellation makes Shutdown fail in time, naming the root; the other roots stop.
func TestShutdownDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actorkit.NewSystem(actorkit.Options{})
		early := spawn(t, s, "early", props(nil))
		stuck := spawn(t, s, "stuck", props(nil))
		hold := make(chan struct{})
		in(t, stuck, func(c *actorkit.Context) { c.Go(func(context.Context) any { <-hold; return nil }) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		err := s.Shutdown(ctx)
		wantCode(t, err, vakerr.DeadlineExceeded)
		if time.Since(begin) != 5*time.Second || !strings.Contains(err.Error(), stuck.String()) {
			t.Errorf("after %v: %v; want the deadline and the name of the root", time.Since(begin), err)
		}
		synctest.Wait()
		wantCode(t, early.Tell("x"), vakerr.ActorStopped)
		close(hold)
		synctest.Wait()
		if live := s.Stats().Live; live != 0 {
			t.Errorf("%d actors live, want none: they were all told to stop", live)
		}
		actorkit.CloseWorkers(s)
	})
}

// Context.Tell to nobody is counted.
func TestUndeliverableTellIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		r := spawn(t, s, "r", props(nil))
		in(t, r, func(c *actorkit.Context) { c.Tell(actorkit.Ref{}, "x") })
		if got := s.Stats().DeadLetters; got != 1 {
			t.Errorf("%d dead letters, want 1", got)
		}
		wantCode(t, r.Tell(nil), vakerr.InvalidRequest)
	})
}

type precious struct{ lost chan error }

func (p precious) Undelivered(why error) { p.lost <- why }

// A message that must not be lost hears that its actor stopped before it.
func TestUndeliveredIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		r := spawn(t, s, "r", props(nil))
		release := blocked(t, r)
		p := precious{make(chan error, 1)}
		tell(t, r, p)
		stopped := make(chan struct{})
		go func() { defer close(stopped); _ = s.Shutdown(t.Context()) }()
		synctest.Wait()
		release()
		wantCode(t, <-p.lost, vakerr.ActorStopped)
		<-stopped
	})
}

// Actors that block against the rules do not keep others from running, and the workers they needed go away.
func TestWorkersAreElastic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		var releases []func()
		for i := range 300 {
			releases = append(releases, blocked(t, spawn(t, s, fmt.Sprint(i), props(nil))))
		}
		p := actortest.NewProbe(t, s)
		tell(t, p.Ref, "still served")
		actortest.Expect[string](t, p, time.Second)
		for _, release := range releases {
			release()
		}
		synctest.Wait()
		if parked, _ := s.Workers(); parked != 64 {
			t.Errorf("%d workers parked after a burst of 300, want 64", parked)
		}
	})
}
