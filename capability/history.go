package capability

import (
	"encoding/hex"
	"slices"
)

// Marks is what is left of a set when the set itself is gone: enough to name what differs from a later one. It is small
// and can be stored.
type Marks map[ID]string

// Marks returns the marks of s.
func (s *Set) Marks() Marks {
	m := make(Marks, s.Len())
	for c := range s.All() {
		m[c.ID] = c.mark()
	}
	return m
}

func (c *Capability) mark() string {
	mark := hex.EncodeToString(c.fingerprint[:8])
	if c.Resolution.Retired {
		return mark + "-" + c.Resolution.Reason
	}
	return mark
}

// DiffMarks is Diff from a set of which only the marks are known.
func DiffMarks(from Marks, to *Set) Delta {
	var d Delta
	for c := range to.All() {
		switch mark, known := from[c.ID]; {
		case !known:
			d.Added = append(d.Added, c.ID)
		case mark != c.mark():
			d.Updated = append(d.Updated, c.ID)
		}
	}
	for id := range from {
		if _, still := to.Get(id); !still {
			d.Removed = append(d.Removed, id)
		}
	}
	slices.SortFunc(d.Removed, ID.Compare)
	return d
}

// Bounds of a History: how many publications it remembers, and how many ids they name together. It has to fit a value of
// the ledger's store, however many capabilities come and go at once.
const (
	maxHistory    = 256
	maxHistoryIDs = 8192
)

// Step is one publication: the epoch it led to and what it changed.
type Step struct {
	Epoch Epoch `json:"epoch"`
	Delta Delta `json:"delta"`
}

// History remembers what the last publications changed, so that a session that slept through some is told what differs
// without anybody keeping old sets for it. It is immutable; the nil *History is empty.
type History struct {
	steps []Step // oldest first, without gaps
}

// NewHistory takes steps up, oldest first. Steps before a gap in the numbers are dropped.
func NewHistory(steps []Step) *History {
	h := &History{}
	for _, s := range steps {
		h = h.With(s)
	}
	return h
}

// With returns the history that continues with s. Only the last 256 steps are kept, and fewer where they name very many
// ids; a step that names too many by itself is not remembered, as if it had left a gap.
func (h *History) With(s Step) *History {
	kept := h.Steps()
	if len(kept) > 0 && kept[len(kept)-1].Epoch+1 != s.Epoch {
		kept = nil
	}
	kept = append(slices.Clone(kept), s)
	named := 0
	for i, step := range slices.Backward(kept) {
		if named += step.Delta.len(); named > maxHistoryIDs || len(kept)-i > maxHistory {
			return &History{steps: kept[i+1:]}
		}
	}
	return &History{steps: kept}
}

// Steps returns the remembered steps, oldest first. The caller must not change them.
func (h *History) Steps() []Step {
	if h == nil {
		return nil
	}
	return h.steps
}

// Between sums up what changed from one epoch to a later one. It returns false when that is not remembered any more.
func (h *History) Between(from, to Epoch) (Delta, bool) {
	if from == to {
		return Delta{}, true
	}
	steps := h.Steps()
	first := slices.IndexFunc(steps, func(s Step) bool { return s.Epoch == from+1 })
	if first < 0 || from > to || steps[len(steps)-1].Epoch < to {
		return Delta{}, false
	}
	net := make(map[ID]change)
	for _, s := range steps[first : first+int(to-from)] {
		fold(net, s.Delta)
	}
	return sum(net), true
}

// change is what became of one id between two epochs.
type change struct{ before, after bool } // was it there before, is it there after

func fold(net map[ID]change, d Delta) {
	note := func(ids []ID, beforeStep, after bool) {
		for _, id := range ids {
			c, seen := net[id]
			if !seen {
				c.before = beforeStep
			}
			c.after = after
			net[id] = c
		}
	}
	note(d.Added, false, true)
	note(d.Updated, true, true)
	note(d.Removed, true, false)
}

func sum(net map[ID]change) Delta {
	var d Delta
	for id, c := range net {
		switch {
		case c.before && c.after:
			d.Updated = append(d.Updated, id)
		case c.after:
			d.Added = append(d.Added, id)
		case c.before:
			d.Removed = append(d.Removed, id)
		}
	}
	for _, ids := range [][]ID{d.Added, d.Updated, d.Removed} {
		slices.SortFunc(ids, ID.Compare)
	}
	return d
}
