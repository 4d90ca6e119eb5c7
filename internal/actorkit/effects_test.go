package actorkit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestEffectPostsItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		r := spawn(t, newSystem(t), "r", props(j.log))
		in(t, r, func(c *actorkit.Context) {
			c.Go(func(context.Context) any { time.Sleep(2 * time.Second); return "slow" })
			c.Go(func(context.Context) any { time.Sleep(time.Second); return "fast" })
			c.Go(func(context.Context) any { return nil })
		})
		in(t, r, func(*actorkit.Context) {}) // not blocked by them
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if got, want := j.all(), []string{"actorkit.Started {}", "string fast", "string slow"}; !slices.Equal(got, want) {
			t.Errorf("saw %q, want %q", got, want)
		}
	})
}

// A panic inside an effect is told to the actor that started it, and to nobody else.
func TestEffectPanics(t *testing.T) {
	for name, work := range map[string]func(context.Context) any{
		"panic":  func(context.Context) any { panic(errBroken) },
		"goexit": func(context.Context) any { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSystem(t)
				got := make(chan actorkit.EffectPanicked, 1)
				var started actorkit.Effect
				spawn(t, s, "r", actorkit.Props{New: func() actorkit.Actor {
					return actorkit.Func(func(c *actorkit.Context, msg any) {
						switch m := msg.(type) {
						case actorkit.Started:
							started = c.Go(work)
						case actorkit.EffectPanicked:
							if m.Effect != started {
								t.Error("the message names another effect")
							}
							got <- m
						}
					})
				}})
				reason := (<-got).Reason
				if len(reason.Stack) == 0 || name == "panic" && !errors.Is(reason, errBroken) {
					t.Errorf("reason %v with %d bytes of stack", reason, len(reason.Stack))
				}
				if live := s.Stats().Live; live != 1 {
					t.Errorf("%d actors live, want 1", live)
				}
			})
		})
	}
}

var errBroken = errors.New("broken")

func TestEffectCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 2)
		r := spawn(t, newSystem(t), "r", props(nil))
		wait := func(ctx context.Context) any { <-ctx.Done(); causes <- context.Cause(ctx); return nil }
		in(t, r, func(c *actorkit.Context) {
			c.Go(wait).Cancel(errBroken)
			c.Go(wait)
		})
		if cause := <-causes; !errors.Is(cause, errBroken) {
			t.Errorf("cause %v, want the one given", cause)
		}
		synctest.Wait()
		if len(causes) != 0 {
			t.Error("the other effect was cancelled as well")
		}
		in(t, r, func(c *actorkit.Context) { c.StopSelf() })
		wantCode(t, <-causes, vakerr.ActorStopped)
		actorkit.Effect{}.Cancel(nil)
	})
}

// The stop cancels effects, waits for them, and drops what they bring.
func TestStopWaitsForEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		r := spawn(t, newSystem(t), "r", props(j.log))
		in(t, r, func(c *actorkit.Context) {
			c.Go(func(ctx context.Context) any {
				<-ctx.Done()
				time.Sleep(time.Second)
				j.log("effect ends")
				return "too late"
			})
			c.StopSelf()
		})
		synctest.Wait()
		begin := time.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := j.all(), []string{"actorkit.Started {}", "actorkit.Stopping {}", "effect ends", "actorkit.Stopped {}"}; !slices.Equal(got, want) {
			t.Errorf("from %v saw %q, want %q", begin, got, want)
		}
	})
}

// Nothing new begins once an actor is stopping.
func TestNothingBeginsWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		r := spawn(t, s, "r", actorkit.Props{New: func() actorkit.Actor {
			return actorkit.Func(func(c *actorkit.Context, msg any) {
				switch msg.(type) {
				case actorkit.Stopping, actorkit.Stopped:
					if e := c.Go(func(context.Context) any { t.Error("an effect began"); return nil }); e != (actorkit.Effect{}) {
						t.Error("an effect was promised")
					}
					if c.After(0, 1).Stop() {
						t.Error("a timer was set")
					}
					_, err := c.Spawn("child", props(nil))
					wantCode(t, err, vakerr.ActorStopped)
				}
				doer{}.Receive(c, msg)
			})
		}})
		in(t, r, func(c *actorkit.Context) { c.StopSelf() })
	})
}

func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		begin := time.Now()
		r := spawn(t, newSystem(t), "r", props(func(s string) { j.log(s + " at " + time.Since(begin).String()) }))
		in(t, r, func(c *actorkit.Context) {
			c.After(2*time.Second, "second")
			c.After(time.Second, "first")
			stopped := c.After(time.Second, "stopped")
			if !stopped.Stop() || stopped.Stop() || (actorkit.Timer{}).Stop() {
				t.Error("Stop must report whether it kept the message from coming")
			}
			c.After(time.Hour, "never: the actor stops before")
		})
		time.Sleep(3 * time.Second)
		in(t, r, func(c *actorkit.Context) {
			if got := c.Now().Sub(begin); got != 3*time.Second {
				t.Errorf("Now is %v after the begin, want the bubble's 3s", got)
			}
			c.StopSelf()
		})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := []string{
			"actorkit.Started {} at 0s", "string first at 1s", "string second at 2s",
			"actorkit.Stopping {} at 3s", "actorkit.Stopped {} at 3s",
		}
		if got := j.all(); !slices.Equal(got, want) {
			t.Errorf("saw %q, want %q", got, want)
		}
	})
}

// Stop also holds for a timer whose message is queued already.
func TestTimerStoppedWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		r := spawn(t, newSystem(t), "r", props(j.log))
		in(t, r, func(c *actorkit.Context) {
			timer := c.After(time.Second, "due")
			time.Sleep(2 * time.Second) // a slow message
			if !timer.Stop() {
				t.Error("the message has not been delivered, so Stop must succeed")
			}
		})
		synctest.Wait()
		if got := j.all(); len(got) != 1 {
			t.Errorf("saw %q, want Started only", got)
		}
	})
}
