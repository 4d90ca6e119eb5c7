package childproc

import (
	"slices"
	"sync"
	"time"
)

// Child describes one live child for status displays.
type Child struct {
	PID     int
	Owner   string
	Command string // without arguments, which may hold secrets
	Started time.Time
}

// registry holds the children that were started and not yet reaped.
type registry struct {
	mu       sync.Mutex // guards children
	children map[int]Child
}

var live = registry{children: map[int]Child{}}

func (r *registry) add(c Child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.children[c.PID] = c
}

func (r *registry) remove(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, pid)
}

// Count is the number of live children of this process that were started here.
func Count() int {
	live.mu.Lock()
	defer live.mu.Unlock()
	return len(live.children)
}

// Live lists those children, oldest first.
func Live() []Child {
	live.mu.Lock()
	defer live.mu.Unlock()
	all := make([]Child, 0, len(live.children))
	for _, c := range live.children {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Child) int {
		if n := a.Started.Compare(b.Started); n != 0 {
			return n
		}
		return a.PID - b.PID
	})
	return all
}
