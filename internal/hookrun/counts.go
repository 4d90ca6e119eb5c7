package hookrun

import (
	"maps"
	"sync"

	"github.com/vak-actors/vak-actors/internal/hook"
)

// Counts is what a hook has done since the runner was made.
type Counts struct {
	Deliveries  uint64
	Blocks      uint64
	Failures    uint64
	LastFailure string // empty: the last delivery was none

	order uint64 // of the last delivery, for forgetting the oldest
}

// maxCounted bounds the hooks that are counted: files are edited for weeks, and each new name would stay for ever.
const maxCounted = 512

// tally counts deliveries by the hook's name.
type tally struct {
	mu     sync.Mutex // guards what follows
	byHook map[string]Counts
	last   uint64
}

func (t *tally) add(d Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byHook == nil {
		t.byHook = map[string]Counts{}
	}
	t.last++
	c := t.byHook[d.Hook.Name]
	c.Deliveries++
	c.order, c.LastFailure = t.last, d.Failure
	if d.Verdict == hook.Block {
		c.Blocks++
	}
	if d.Failure != "" {
		c.Failures++
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

// Counts returns the counts by hook name, of the 512 hooks that ran last.
func (r *Runner) Counts() map[string]Counts {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	return maps.Clone(r.tally.byHook)
}
