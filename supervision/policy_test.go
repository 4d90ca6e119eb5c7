package supervision

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testPolicy = Policy{
	Budget:  Budget{Restarts: 3, Window: time.Minute},
	Backoff: backoff.Policy{Initial: time.Second, Max: 3 * time.Second},
	Retry:   backoff.Policy{Initial: 5 * time.Minute, Max: 15 * time.Minute},
}

func TestStep(t *testing.T) {
	type step struct {
		ran  time.Duration
		want Verdict
	}
	restart := func(d time.Duration) Verdict { return Verdict{After: d} }
	giveUp := func(d time.Duration) Verdict { return Verdict{GiveUp: true, After: d} }
	s, m := time.Second, time.Minute
	tests := []struct {
		name   string
		policy Policy
		steps  []step
	}{
		{"waits grow to their ceiling, then it gives up and tries more slowly, up to a ceiling", testPolicy, []step{
			{0, restart(s)},
			{0, restart(2 * s)},
			{0, restart(3 * s)},
			{0, giveUp(5 * m)},
			{0, giveUp(10 * m)},
			{s, giveUp(15 * m)},
			{59 * s, giveUp(15 * m)},
		}},
		{"a window of good health brings the budget back", testPolicy, []step{
			{0, restart(s)},
			{0, restart(2 * s)},
			{m, restart(s)},
			{0, restart(2 * s)},
			{0, restart(3 * s)},
			{0, giveUp(5 * m)},
			{m, restart(s)},
		}},
		{"rare failures stay within the budget, the wait stays at its ceiling", testPolicy, []step{
			{30 * s, restart(s)}, {30 * s, restart(2 * s)}, {30 * s, restart(3 * s)}, {30 * s, restart(3 * s)}, {30 * s, restart(3 * s)},
		}},
		{"no budget", Policy{Budget: Budget{Window: m}, Retry: testPolicy.Retry}, []step{{0, giveUp(5 * m)}, {0, giveUp(10 * m)}}},
		{"defaults", Policy{}, []step{
			{0, restart(100 * time.Millisecond)},
			{0, restart(200 * time.Millisecond)},
			{0, restart(400 * time.Millisecond)},
			{0, restart(800 * time.Millisecond)},
			{0, restart(1600 * time.Millisecond)},
			{0, giveUp(m)},
			{0, giveUp(2 * m)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h History
			now := time.Unix(1e9, 0)
			for i, st := range tt.steps {
				var got Verdict
				now = now.Add(st.ran)
				h, got = tt.policy.Step(h, Failure{At: now, Ran: st.ran}, 0)
				if got != st.want {
					t.Errorf("failure %d after running %v: %+v, want %+v", i+1, st.ran, got, st.want)
				}
				now = now.Add(got.After)
			}
		})
	}
}

// Whatever happens: there is a next attempt within the ceilings, the history is bounded, never changed in place, and no
// window holds more restarts than the budget allows.
func TestStepInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := testPolicy
		p.Budget.Restarts = rapid.IntRange(0, 6).Draw(t, "restarts")
		p.Backoff.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
		var h History
		var restarts []time.Time
		now := time.Unix(1e9, 0)
		for range rapid.IntRange(1, 60).Draw(t, "failures") {
			ran := time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "ran"))
			now = now.Add(ran)
			random := rapid.Float64Range(0, 0.999).Draw(t, "random")
			before := append([]time.Time(nil), h.restarts...)
			next, v := p.Step(h, Failure{At: now, Ran: ran}, random)
			if diff := cmp.Diff(before, h.restarts); diff != "" {
				t.Fatalf("Step changed the history it was given:\n%s", diff)
			}
			if again, w := p.Step(h, Failure{At: now, Ran: ran}, random); w != v || !cmp.Equal(again, next, cmp.AllowUnexported(History{})) {
				t.Fatal("Step is not a function of its arguments")
			}
			h = next
			if len(h.restarts) > p.Budget.Restarts {
				t.Fatalf("the history holds %d times, the budget is %d", len(h.restarts), p.Budget.Restarts)
			}
			ceiling := p.Backoff.Max
			if v.GiveUp {
				ceiling = p.Retry.Max
			}
			if v.After < 0 || v.After > ceiling {
				t.Fatalf("%+v: the wait is not within 0 and %v", v, ceiling)
			}
			if !v.GiveUp {
				restarts = append(restarts, now)
			}
			now = now.Add(v.After)
		}
		for i := range restarts {
			if j := i + p.Budget.Restarts; j < len(restarts) && restarts[j].Sub(restarts[i]) < p.Budget.Window {
				t.Fatalf("restarts %d to %d lie within %v, more than the budget of %d", i, j, restarts[j].Sub(restarts[i]), p.Budget.Restarts)
			}
		}
	})
}

func TestHealthAsJSON(t *testing.T) {
	rows := []Health{
		{Name: "a", Kind: "k"},
		{Name: "b", Kind: "k", State: GaveUp, Restarts: 3, LastError: "e", NextAttempt: time.Unix(0, 0).UTC()},
	}
	got, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"a","kind":"k","state":"running","restarts":0},` +
		`{"name":"b","kind":"k","state":"gave-up","restarts":3,"last_error":"e","next_attempt":"1970-01-01T00:00:00Z"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if Restarting.String() != "restarting" || Status(9).String() != "status(9)" {
		t.Errorf("names %q, %q", Restarting, Status(9))
	}
}
