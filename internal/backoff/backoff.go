// Package backoff decides how long to wait before the next attempt after a number of failures in a row.
//
// It is pure: it keeps no state, reads no clock and draws no random number; the caller counts the failures and passes
// the random number in. A server pool, the supervisors and the lease keeper all use this one formula:
//
//	wait = min(Max, Initial * Multiplier^(failures-1)), less a random share of at most Jitter
//
// Invariants, for every policy and input: 0 <= wait <= Max; without jitter the wait never shrinks when the number of
// failures grows; jitter only ever shortens a wait, so Max is a real ceiling and Initial*(1-Jitter) a real floor.
package backoff

import (
	"math"
	"time"
)

// Policy is one schedule of waits. The zero value waits for nothing.
type Policy struct {
	Initial    time.Duration // wait after the first failure; zero or less: no wait at all
	Max        time.Duration // ceiling of every wait; zero or less: no ceiling but the largest Duration
	Multiplier float64       // growth per further failure; below 1, or not a number: DefaultMultiplier
	Jitter     float64       // share of the wait that chance may take away, 0 to 1; outside of it: the nearer bound
}

// DefaultMultiplier is the growth of a policy that names none.
const DefaultMultiplier = 2.0

// Delay returns the wait after the given number of failures in a row; 1 is the first. Fewer than one failure waits for
// nothing. random is a number in [0,1): 0 takes the whole wait, values towards 1 take away up to the Jitter share of it.
func (p Policy) Delay(failures int, random float64) time.Duration {
	if failures < 1 || p.Initial <= 0 {
		return 0
	}
	ceiling := p.Max
	if ceiling <= 0 {
		ceiling = math.MaxInt64
	}
	wait := p.grown(failures, ceiling)
	taken := time.Duration(float64(wait) * clamp(p.Jitter) * clamp(random))
	return max(0, wait-max(0, taken))
}

// grown is the wait before jitter. Comparing in float64 before converting back keeps a huge power from overflowing.
func (p Policy) grown(failures int, ceiling time.Duration) time.Duration {
	factor := p.Multiplier
	if !(factor >= 1) { // also catches NaN
		factor = DefaultMultiplier
	}
	wait := float64(p.Initial) * math.Pow(factor, float64(failures-1))
	if !(wait < float64(ceiling)) {
		return ceiling
	}
	return time.Duration(wait)
}

// clamp brings x into [0,1]; NaN becomes 0.
func clamp(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}
