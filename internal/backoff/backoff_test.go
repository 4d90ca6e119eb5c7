package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// V52: the server pool's schedule is 5 s doubling per consecutive failure, capped at 5 min.
func TestServerPoolSchedule(t *testing.T) {
	p := Policy{Initial: 5 * time.Second, Max: 5 * time.Minute}
	var got []time.Duration
	for failures := range 10 {
		got = append(got, p.Delay(failures, 0))
	}
	s := time.Second
	want := []time.Duration{0, 5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s, 300 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits after 0..9 failures (-want +got):\n%s", diff)
	}
}

func TestDelay(t *testing.T) {
	tests := []struct {
		name     string
		policy   Policy
		failures int
		random   float64
		want     time.Duration
	}{
		{"zero policy", Policy{}, 3, 0.5, 0},
		{"no failure", Policy{Initial: time.Second}, 0, 0, 0},
		{"negative failures", Policy{Initial: time.Second}, -4, 0, 0},
		{"negative initial", Policy{Initial: -time.Second}, 2, 0, 0},
		{"default multiplier", Policy{Initial: time.Second}, 4, 0, 8 * time.Second},
		{"own multiplier", Policy{Initial: time.Second, Multiplier: 3}, 3, 0, 9 * time.Second},
		{"constant", Policy{Initial: time.Second, Multiplier: 1}, 50, 0, time.Second},
		{"multiplier is NaN", Policy{Initial: time.Second, Multiplier: math.NaN()}, 2, 0, 2 * time.Second},
		{"multiplier is infinite", Policy{Initial: time.Second, Max: time.Minute, Multiplier: math.Inf(1)}, 2, 0, time.Minute},
		{"initial above the ceiling", Policy{Initial: time.Hour, Max: time.Minute}, 1, 0, time.Minute},
		{"no ceiling, huge count", Policy{Initial: time.Second}, math.MaxInt, 0, math.MaxInt64},
		{"half jitter taken in half", Policy{Initial: 8 * time.Second, Jitter: 0.5}, 1, 0.5, 6 * time.Second},
		{"jitter of all", Policy{Initial: 8 * time.Second, Jitter: 1}, 1, 1, 0},
		{"jitter beyond its range", Policy{Initial: 8 * time.Second, Jitter: 7}, 1, 0.25, 6 * time.Second},
		{"random out of range", Policy{Initial: 8 * time.Second, Jitter: 0.5}, 1, -3, 8 * time.Second},
		{"jitter below the ceiling", Policy{Initial: time.Second, Max: 4 * time.Second, Jitter: 0.5}, 90, 0.5, 3 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.policy.Delay(tt.failures, tt.random); got != tt.want {
				t.Errorf("Delay(%d, %v) = %v, want %v", tt.failures, tt.random, got, tt.want)
			}
		})
	}
}

// The invariants of the package comment hold for every policy.
func TestDelayInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Initial:    time.Duration(rapid.Int64().Draw(t, "initial")),
			Max:        time.Duration(rapid.Int64().Draw(t, "max")),
			Multiplier: rapid.Float64().Draw(t, "multiplier"),
			Jitter:     rapid.Float64().Draw(t, "jitter"),
		}
		n := rapid.IntRange(-2, math.MaxInt-1).Draw(t, "failures")
		wait := p.Delay(n, rapid.Float64().Draw(t, "random"))
		if wait < 0 {
			t.Fatalf("%+v: negative wait %v", p, wait)
		}
		if p.Max > 0 && wait > p.Max {
			t.Fatalf("%+v: wait %v above the ceiling", p, wait)
		}
		if p.Delay(n, 0) > p.Delay(n+1, 0) {
			t.Fatalf("%+v: the wait shrinks from failure %d to %d", p, n, n+1)
		}
		if wait > p.Delay(n, 0) {
			t.Fatalf("%+v: jitter made the wait longer", p)
		}
	})
}
