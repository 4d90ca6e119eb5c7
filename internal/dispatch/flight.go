package dispatch

import (
	"sync/atomic"

	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Flight lets whoever made a call judge it while its effect runs. The zero Flight is that of a call before its effect. Its
// methods are safe for concurrent use.
type Flight struct {
	judge atomic.Pointer[func() *vakerr.Error]
}

// Forbidden is why the mode in force now does not let the call run; nil where it does, and before its effect: then the call
// is judged on its way.
func (f *Flight) Forbidden() *vakerr.Error {
	if judge := f.judge.Load(); judge != nil {
		return (*judge)()
	}
	return nil
}

// fly shows what the call is judged on from here on. It comes before the gate, so that a policy is either seen there or
// finds the flight.
func (r *run) fly() {
	subjects, consents := r.subjects, r.consents
	judge := func() *vakerr.Error {
		current := r.Gate.View().Policy
		decision, about := decide(r.confined(current), subjects, consents)
		if decision.Effect == policy.Allow {
			return nil
		}
		return vakerr.New(vakerr.PermissionDenied, "%s was cancelled while it ran, for the mode became stricter: %s", about.Rule(), decision.Reason).
			WithRemedy("do without it; the call may have had its effect")
	}
	r.flight.judge.Store(&judge)
}
