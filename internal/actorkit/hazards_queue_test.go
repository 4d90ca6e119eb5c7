package actorkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// blocked makes r busy until the returned function is called, so that a test can fill its queue. Blocking in Receive is
// against the rules of the kit; here it stands for a slow message.
func blocked(t *testing.T, r actorkit.Ref) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	tell(t, r, do(func(*actorkit.Context) any { <-gate; return nil }))
	synctest.Wait()
	return func() { close(gate) }
}

// No work is done after Stopping, however long children take to stop.
func TestH4NoWorkAfterStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		parent := spawn(t, s, "parent", props(j.log))
		child := spawnChild(t, parent, "child", props(nil))
		hold := make(chan struct{})
		in(t, child, func(c *actorkit.Context) { c.Go(func(context.Context) any { <-hold; return nil }) })
		release := blocked(t, parent)
		tell(t, parent, urgent(func(c *actorkit.Context) any { c.StopSelf(); return nil }))
		for i := range 50 {
			tell(t, parent, i)
		}
		release()
		synctest.Wait()
		wantCode(t, parent.Tell("more"), vakerr.ActorStopped)
		want := []string{"actorkit.Started {}", "actorkit.Stopping {}"}
		if got := j.all(); !slices.Equal(got, want) {
			t.Errorf("while the child stops the parent saw %q, want %q", got, want)
		}
		close(hold)
		synctest.Wait()
		if got := j.all(); !slices.Equal(got, []string{"actorkit.Stopped {}"}) {
			t.Errorf("at the end the parent saw %q, want Stopped", got)
		}
	})
}

// What is queued when an actor stops is accounted for: asks fail at once, the rest is counted.
func TestH5LeftoversAreNotLostInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		parent := spawn(t, s, "parent", props(nil))
		child := spawnChild(t, parent, "child", props(nil))
		release := blocked(t, child)
		const n = 100
		errs := make(chan error, n)
		for range n {
			tell(t, child, "told")
			go func() { _, err := ask(t, child, "asked"); errs <- err }()
		}
		foreign := s.Proto().Root.RequestFuture(actorkit.PIDOf(s, child), "asked through protoactor", time.Hour)
		synctest.Wait()
		begin := time.Now()
		in(t, parent, func(c *actorkit.Context) { c.Stop(child) })
		release()
		for range n {
			wantCode(t, <-errs, vakerr.ActorStopped)
		}
		if _, err := foreign.Result(); !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("the asker of another node got %v, want %v", err, actor.ErrDeadLetter)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the askers waited %v, want no time at all", waited)
		}
		if got := s.Stats().DeadLetters; got != 2*n+1 {
			t.Errorf("%d dead letters, want %d", got, 2*n+1)
		}
	})
}

// Senders that guess the name of an actor being spawned neither crash nor get in before Started.
func TestH6NamedSpawnRace(t *testing.T) {
	s := newSystem(t)
	root := s.Proto().Root
	const spawns = 2000
	stop := make(chan struct{})
	var senders sync.WaitGroup
	var next sync.Map // the path to attack, under key 0
	next.Store(0, "/victim#1")
	for range 2 {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					path, _ := next.Load(0)
					root.Send(s.Proto().NewLocalPID(path.(string)), "early")
				}
			}
		})
	}
	firsts := make(chan string, spawns)
	p := actorkit.Props{New: func() actorkit.Actor {
		first := true
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			if first {
				first = false
				firsts <- fmt.Sprintf("%T", msg)
				c.StopSelf()
			}
		})
	}}
	for i := range spawns {
		next.Store(0, fmt.Sprintf("/victim#%d", i+1))
		spawn(t, s, "victim", p)
	}
	for range spawns {
		if first := <-firsts; first != "actorkit.Started" {
			t.Fatalf("an actor received a %s first", first)
		}
	}
	close(stop)
	senders.Wait()
}

// A Control message overtakes whatever it travels in.
func TestH7ControlIsSeenThroughEnvelopes(t *testing.T) {
	ways := map[string]func(t *testing.T, s *actorkit.System, r actorkit.Ref, msg any){
		"tell": func(t *testing.T, _ *actorkit.System, r actorkit.Ref, msg any) { tell(t, r, msg) },
		"ask":  func(t *testing.T, _ *actorkit.System, r actorkit.Ref, msg any) { go ask(t, r, msg) },
		"protoactor envelope": func(_ *testing.T, s *actorkit.System, r actorkit.Ref, msg any) {
			s.Proto().Root.Send(actorkit.PIDOf(s, r), actor.WrapEnvelope(msg))
		},
		"protoactor request": func(_ *testing.T, s *actorkit.System, r actorkit.Ref, msg any) {
			s.Proto().Root.RequestFuture(actorkit.PIDOf(s, r), msg, time.Minute)
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				s := newSystem(t)
				r := spawn(t, s, "r", props(j.log))
				release := blocked(t, r)
				tell(t, r, 1)
				tell(t, r, 2)
				send(t, s, r, urgent(func(*actorkit.Context) any { j.log("urgent"); return 1 }))
				synctest.Wait()
				release()
				synctest.Wait()
				if got, want := j.all(), []string{"actorkit.Started {}", "urgent", "int 1", "int 2"}; !slices.Equal(got, want) {
					t.Errorf("order %q, want %q", got, want)
				}
			})
		})
	}
	t.Run("timer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			r := spawn(t, newSystem(t), "r", props(j.log))
			in(t, r, func(c *actorkit.Context) {
				c.After(time.Second, urgent(func(*actorkit.Context) any { j.log("urgent"); return 1 }))
			})
			release := blocked(t, r)
			tell(t, r, 1)
			time.Sleep(2 * time.Second)
			release()
			synctest.Wait()
			if got, want := j.all(), []string{"actorkit.Started {}", "urgent", "int 1"}; !slices.Equal(got, want) {
				t.Errorf("order %q, want %q", got, want)
			}
		})
	})
}

// A full queue rejects: the sender does not wait, the actor itself may be the sender, control passes, and afterwards
// nothing spins.
func TestH8FullQueueRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		s := newSystem(t)
		p := props(j.log)
		p.Mailbox = 3
		r := spawn(t, s, "r", p)
		var overflow []error
		in(t, r, func(c *actorkit.Context) {
			for i := range 5 {
				overflow = append(overflow, c.Self().Tell(i))
			}
			if err := c.Self().Tell(urgent(func(*actorkit.Context) any { j.log("urgent"); return nil })); err != nil {
				t.Errorf("control was rejected: %v", err)
			}
			c.After(0, "due") // own timers and results are never rejected
			c.Go(func(context.Context) any { return "result" })
			time.Sleep(time.Second) // both come while the queue is full
			wantCode(t, func() error { _, err := ask(t, c.Self(), "x"); return err }(), vakerr.QueueFull)
		})
		for i, err := range overflow {
			if i < 3 && err != nil {
				t.Errorf("message %d of a queue of 3: %v", i, err)
			}
			if i >= 3 {
				wantCode(t, err, vakerr.QueueFull)
			}
		}
		synctest.Wait()
		got := j.all()
		slices.Sort(got[len(got)-2:])
		want := []string{"actorkit.Started {}", "urgent", "int 0", "int 1", "int 2", "string due", "string result"}
		if !slices.Equal(got, want) {
			t.Errorf("saw %q, want %q", got, want)
		}
		if s.Stats().Rejected != 3 || actorkit.Busy(r) {
			t.Errorf("%d rejected, busy %v; want 3 and an idle mailbox", s.Stats().Rejected, actorkit.Busy(r))
		}
		tell(t, r, "room again")
	})
}

// batch looks like protoactor's MessageBatch, whose members and itself would be delivered.
type batch struct{}

func (batch) GetMessages() []any { return []any{1, 2} }

func TestH16BatchIsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		p := actortest.NewProbe(t, s)
		tell(t, p.Ref, batch{})
		s.Proto().Root.Send(actorkit.PIDOf(s, p.Ref), batch{})
		actortest.Expect[batch](t, p, time.Second)
		actortest.Expect[batch](t, p, time.Second)
		p.ExpectNone(t, time.Second)
	})
}

// Nobody listens on protoactor's event stream, so no handler can harm a sender and dead letters start no goroutine.
func TestH19NoEventStreamSubscribers(t *testing.T) {
	if n := newSystem(t).Proto().EventStream.Length(); n != 0 {
		t.Errorf("%d subscribers, want none", n)
	}
}

// Neither ours nor protoactor's log records show any part of a message or of a thrown value.
func TestH20LogsCarryNoContent(t *testing.T) {
	const secret = "hunter2"
	type message struct{ Password string }
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
		s := actortest.NewSystem(t, actorkit.Options{Logger: slog.New(handler)})
		parent := spawn(t, s, "parent", props(nil))
		thrower := func() actorkit.Actor {
			return actorkit.Func(func(c *actorkit.Context, msg any) {
				switch m := msg.(type) {
				case message:
					panic(m)
				case string:
					c.Go(func(context.Context) any { panic(errors.New(m)) })
				}
			})
		}
		for _, throws := range []any{message{secret}, secret} {
			child := spawnChild(t, parent, "child", actorkit.Props{New: thrower})
			go func() { _, _ = ask(t, child, throws) }()
			synctest.Wait()
		}
		// Content that protoactor itself would print: a dead letter, an unknown system message.
		s.Proto().Root.Send(s.Proto().NewLocalPID("nobody"), message{secret})
		process, _ := s.Proto().ProcessRegistry.Get(actorkit.PIDOf(s, parent))
		process.SendSystemMessage(nil, message{secret})
		synctest.Wait()
	})
	text := log.String()
	for _, part := range []string{"actor failed", "effect failed", "unknown system message"} {
		if !strings.Contains(text, part) {
			t.Errorf("the log lacks %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, secret) {
		t.Errorf("the log shows the content of a message:\n%s", text)
	}
}
