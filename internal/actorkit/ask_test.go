package actorkit_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestAskOutcomes(t *testing.T) {
	refusal := errors.New("refused")
	tests := []struct {
		name     string
		answer   do
		want     int
		wantErr  error
		wantCode vakerr.Code
	}{
		{name: "answer", answer: func(c *actorkit.Context) any { c.Reply(7); return 8 }, want: 7},
		{name: "error", answer: func(*actorkit.Context) any { return refusal }, wantErr: refusal},
		{name: "wrong type", answer: func(*actorkit.Context) any { return "seven" }, wantCode: vakerr.Internal},
		{name: "nil", answer: func(*actorkit.Context) any { return nil }, wantCode: vakerr.Internal},
		{name: "panic", answer: func(*actorkit.Context) any { panic("x") }, wantCode: vakerr.Internal},
		{name: "panic with the replier captured", answer: func(c *actorkit.Context) any { c.Replier(); panic("x") }, wantCode: vakerr.Internal},
		{name: "goexit", answer: func(*actorkit.Context) any { runtime.Goexit(); return nil }, wantCode: vakerr.Internal},
		{name: "answer, then panic", answer: func(c *actorkit.Context) any { c.Reply(7); panic("x") }, want: 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := spawn(t, newSystem(t), "r", props(nil))
				begin := time.Now()
				got, err := actorkit.Ask[int](t.Context(), r, tt.answer)
				if got != tt.want || time.Since(begin) != 0 {
					t.Errorf("answer %d after %v, want %d at once", got, time.Since(begin), tt.want)
				}
				switch {
				case tt.wantCode != "":
					wantCode(t, err, tt.wantCode)
				case !errors.Is(err, tt.wantErr):
					t.Errorf("error %v, want %v", err, tt.wantErr)
				}
			})
		})
	}
}

func TestAskFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		gone := spawn(t, s, "gone", props(nil))
		in(t, gone, func(c *actorkit.Context) { c.StopSelf() })
		synctest.Wait()
		alive := spawn(t, s, "alive", props(nil))
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the caller hung up"))

		_, err := ask(t, gone, 1)
		wantCode(t, err, vakerr.ActorStopped)
		_, err = ask(t, actorkit.Ref{}, 1)
		wantCode(t, err, vakerr.ActorStopped)
		_, err = ask(t, alive, nil)
		wantCode(t, err, vakerr.InvalidRequest)
		_, err = ask(t, alive, "a message it does not answer")
		wantCode(t, err, vakerr.Internal)
		_, err = actorkit.Ask[int](ended, alive, do(func(*actorkit.Context) any { t.Error("handled"); return 1 }))
		wantCode(t, err, vakerr.Canceled)
		if cause := context.Cause(ended); !errors.Is(err, cause) {
			t.Errorf("error %v does not keep the cause %v", err, cause)
		}
	})
}

// An asker that gives up gets its error in time, and work nobody waits for is not begun.
func TestAskDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := spawn(t, newSystem(t), "r", props(nil))
		release := blocked(t, r)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := actorkit.Ask[int](ctx, r, do(func(*actorkit.Context) any { t.Error("handled after its asker gave up"); return 1 }))
		wantCode(t, err, vakerr.DeadlineExceeded)
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("gave up after %v, want 3s", waited)
		}
		release()
		synctest.Wait()
	})
}

// An asker whose context ended for a typed reason is told that reason.
func TestAskEndsForAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := spawn(t, newSystem(t), "r", props(nil))
		release := blocked(t, r)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(vakerr.New(vakerr.ShuttingDown, "the daemon stops"))
		_, err := actorkit.Ask[int](ctx, r, do(func(*actorkit.Context) any { return 1 }))
		wantCode(t, err, vakerr.ShuttingDown)
		release()
		synctest.Wait()
	})
}

// A captured ask may be answered later, from anywhere, and never outlives the actor.
func TestReplier(t *testing.T) {
	capture := func(t *testing.T, r actorkit.Ref, answer chan error) (replier actorkit.Replier) {
		captured := make(chan actorkit.Replier, 1)
		go func() {
			_, err := actorkit.Ask[int](t.Context(), r, captureMsg(captured))
			answer <- err
		}()
		return <-captured
	}
	capturer := actorkit.Props{New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			if to, ok := msg.(captureMsg); ok {
				first, second := c.Replier(), c.Replier()
				if first != second {
					t.Error("two repliers for one ask")
				}
				to <- first
				return
			}
			doer{}.Receive(c, msg)
		})
	}}
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		r := spawn(t, s, "r", capturer)
		answer := make(chan error, 1)
		replier := capture(t, r, answer)
		in(t, r, func(*actorkit.Context) {}) // the actor goes on meanwhile
		time.Sleep(time.Hour)
		if !replier.Wanted() {
			t.Error("the asker waits, but its answer is not wanted")
		}
		replier.Reply(1)
		replier.Reply(2)
		if err := <-answer; err != nil || replier.Wanted() {
			t.Errorf("error %v, wanted %v; want the answer", err, replier.Wanted())
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := make(chan actorkit.Replier, 1)
		_, err := actorkit.Ask[int](ctx, r, captureMsg(late))
		wantCode(t, err, vakerr.DeadlineExceeded)
		(<-late).Reply(1) // nobody hears it, but the actor owes it no more
		if open := actorkit.OpenAsks(r); open != 0 {
			t.Errorf("%d asks are held after all were answered", open)
		}

		capture(t, r, answer)
		in(t, r, func(c *actorkit.Context) { c.StopSelf() })
		wantCode(t, <-answer, vakerr.ActorStopped)
		actorkit.Replier{}.Reply(1)
	})
}

type captureMsg chan actorkit.Replier

// Reply and Replier mean the ask being handled, and nothing outside of one.
func TestReplyWithoutAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		r := spawn(t, s, "r", props(nil))
		probe := actortest.NewProbe(t, s)
		tell(t, r, do(func(c *actorkit.Context) any {
			c.Reply("nobody")
			c.Tell(probe.Ref, c.Replier().Wanted())
			return nil
		}))
		if actortest.Expect[bool](t, probe, time.Second) {
			t.Error("a told message has a replier that is wanted")
		}
	})
}

// An answer that was captured by one actor and adopted by another is owed by the other alone.
func TestAdoptedAnswerIsOwedByTheAdopter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := newSystem(t)
		of := func(f actorkit.Func) actorkit.Props {
			return actorkit.Props{Kind: "test", New: func() actorkit.Actor { return f }}
		}
		adopter := spawn(t, sys, "adopter", of(func(c *actorkit.Context, msg any) {
			switch m := msg.(type) {
			case actorkit.Replier:
				c.Adopt(m)
			case string:
				c.StopSelf()
			}
		}))
		front := spawn(t, sys, "front", of(func(c *actorkit.Context, msg any) {
			switch msg {
			case "question":
				c.Tell(adopter, c.Replier())
			case "stop":
				c.StopSelf()
			}
		}))
		answer := make(chan error, 1)
		go func() {
			_, err := actorkit.Ask[int](t.Context(), front, "question")
			answer <- err
		}()
		synctest.Wait()
		tell(t, front, "stop")
		synctest.Wait()
		select {
		case err := <-answer:
			t.Fatalf("the answer was failed by the actor that passed it on: %v", err)
		default:
		}
		tell(t, adopter, "stop")
		wantCode(t, <-answer, vakerr.ActorStopped)
	})
}
