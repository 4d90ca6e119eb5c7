package actortest

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/internal/actorkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProbeRecordsInOrderAndAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSystem(t, actorkit.Options{})
		p := NewProbe(t, s)
		for _, m := range []any{"a", 2} {
			if err := p.Tell(m); err != nil {
				t.Fatal(err)
			}
		}
		if got := Expect[string](t, p, time.Second); got != "a" {
			t.Errorf("first message %q, want a", got)
		}
		if got := Expect[int](t, p, time.Second); got != 2 {
			t.Errorf("second message %d, want 2", got)
		}
		p.ExpectNone(t, time.Hour)

		answers := make(chan error, 1)
		go func() {
			_, err := actorkit.Ask[int](t.Context(), p.Ref, "question")
			answers <- err
		}()
		_, replier := ExpectAsk[string](t, p, time.Second)
		refusal := errors.New("no")
		replier.Reply(refusal)
		if err := <-answers; !errors.Is(err, refusal) {
			t.Errorf("the asker got %v, want the answer", err)
		}
	})
}

// The helpers fail the test of their caller when what they expect does not come.
func TestExpectationsFail(t *testing.T) {
	tests := map[string]func(t testing.TB, p *Probe){
		"nothing came":     func(t testing.TB, p *Probe) { Expect[string](t, p, time.Second) },
		"another type":     func(t testing.TB, p *Probe) { _ = p.Tell(1); Expect[string](t, p, time.Second) },
		"something came":   func(t testing.TB, p *Probe) { _ = p.Tell(1); p.ExpectNone(t, time.Second) },
		"tell, not an ask": func(t testing.TB, p *Probe) { _ = p.Tell(1); ExpectAsk[int](t, p, time.Second) },
	}
	for name, expectation := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewProbe(t, NewSystem(t, actorkit.Options{}))
				r := &recorder{TB: t}
				done := make(chan struct{})
				go func() { // Fatalf ends the goroutine
					defer close(done)
					expectation(r, p)
				}()
				<-done
				if !r.failed {
					t.Error("the expectation held, want a failure")
				}
			})
		})
	}
}

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	runtime.Goexit()
}
