package supervision

import (
	"time"

	"github.com/vak-actors/vak-actors/internal/backoff"
)

// Budget bounds how often a child may be restarted: at most Restarts times within any Window.
type Budget struct {
	Restarts int           // 0 or less: the first failure uses it up
	Window   time.Duration // also how long a child must live to be considered well again
}

// Policy says when a failed child is started again. Fields with their zero value take the default named there.
type Policy struct {
	Budget  Budget         // default when Window is 0: 5 restarts within 1 minute
	Backoff backoff.Policy // waits before restarts within the budget; default when Initial is 0: 100 ms doubling to 10 s, jitter 0.2
	Retry   backoff.Policy // waits between attempts once it gave up; default when Initial is 0: 1 minute doubling to 15 minutes, jitter 0.2
}

func (p Policy) withDefaults() Policy {
	if p.Budget.Window <= 0 {
		p.Budget = Budget{Restarts: 5, Window: time.Minute}
	}
	if p.Backoff.Initial <= 0 {
		p.Backoff = backoff.Policy{Initial: 100 * time.Millisecond, Max: 10 * time.Second, Jitter: 0.2}
	}
	if p.Retry.Initial <= 0 {
		p.Retry = backoff.Policy{Initial: time.Minute, Max: 15 * time.Minute, Jitter: 0.2}
	}
	return p
}

// History is what Step remembers of one child. The zero value is a child that has not failed yet. It is never changed in
// place, and bounded by the budget.
type History struct {
	restarts []time.Time // failures answered by a restart within the last window, oldest first
	inRow    int         // failures since the child was last well
	gaveUp   int         // how often in a row it gave up; above 0 the child gets single attempts, no budget
}

// Failure is one end of a child that nobody asked for.
type Failure struct {
	At  time.Time
	Ran time.Duration // since it was started
}

// Verdict says what follows a failure. There is always a next attempt.
type Verdict struct {
	GiveUp bool          // the budget is used up; After is a wait of the slower schedule
	After  time.Duration // until the next attempt
}

// Step decides about one more failure. random is in [0,1) and only serves the jitter.
func (p Policy) Step(h History, f Failure, random float64) (History, Verdict) {
	p = p.withDefaults()
	if f.Ran >= p.Budget.Window {
		h = History{} // it was well: whatever came before is forgotten
	}
	if h.gaveUp > 0 {
		return p.giveUp(h, random)
	}
	recent := within(h.restarts, f.At.Add(-p.Budget.Window))
	if len(recent) >= p.Budget.Restarts {
		return p.giveUp(h, random)
	}
	next := History{restarts: append(recent, f.At), inRow: h.inRow + 1}
	return next, Verdict{After: p.Backoff.Delay(next.inRow, random)}
}

func (p Policy) giveUp(h History, random float64) (History, Verdict) {
	next := History{gaveUp: h.gaveUp + 1}
	return next, Verdict{GiveUp: true, After: p.Retry.Delay(next.gaveUp, random)}
}

// within returns a copy of those times that are after the limit.
func within(times []time.Time, limit time.Time) []time.Time {
	for len(times) > 0 && !times[0].After(limit) {
		times = times[1:]
	}
	return append([]time.Time(nil), times...)
}
