package hookrun

import (
	"sync"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
)

// counts is what a hook has done since the runner was made.
type counts struct {
	capability.Deliveries
	order uint64 // of the last delivery, for forgetting the oldest
}

// maxCounted bounds the hooks that are counted: files are edited for weeks, and each new name would stay for ever.
const maxCounted = 512

// tally counts deliveries by the hook's name.
type tally struct {
	mu     sync.Mutex // guards what follows
	byHook map[string]counts
	last   uint64
}

func (t *tally) add(d Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byHook == nil {
		t.byHook = map[string]counts{}
	}
	t.last++
	c := t.byHook[d.Hook.Name]
	c.Asked++
	c.order, c.LastFailure = t.last, d.Failure
	if d.Verdict == hook.Block {
		c.Blocked++
	}
	if d.Failure != "" {
		c.Failed++
	}
	t.byHook[d.Hook.Name] = c
	if len(t.byHook) > maxCounted {
		t.forgetOldestLocked()
	}
}

func (t *tally) forgetOldestLocked() {
	var oldest string
	at := t.last + 1
	for name, c := range t.byHook {
		if c.order < at {
			oldest, at = name, c.order
		}
	}
	delete(t.byHook, oldest)
}

// Counts returns the deliveries by hook name, of the 512 hooks that ran last.
func (r *Runner) Counts() map[string]capability.Deliveries {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	all := make(map[string]capability.Deliveries, len(r.tally.byHook))
	for name, c := range r.tally.byHook {
		all[name] = c.Deliveries
	}
	return all
}
