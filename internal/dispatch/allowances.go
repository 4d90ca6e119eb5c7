package dispatch

import (
	"sync"

	"github.com/vak-actors/vak-actors/internal/policy"
)

// maxAllowances bounds the rules that answers leave to one session.
const maxAllowances = 256

// Allowances are the rules that answers left to one session; its calls share them. The zero value has none.
type Allowances struct {
	mu      sync.Mutex // guards learned: calls run in parallel
	learned *policy.Learned
}

// Add notes rules that hold for the session from now on. It reports false, and notes none, when there are enough.
func (a *Allowances) Add(rules []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	more := a.learned.With(rules...)
	if more.Len() > maxAllowances {
		return false
	}
	a.learned = more
	return true
}

// Rules lists them in order.
func (a *Allowances) Rules() []string { return a.known().Rules() }

func (a *Allowances) known() *policy.Learned {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.learned
}
