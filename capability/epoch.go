package capability

import (
	"slices"
	"strings"
)

// Epoch numbers publications. Epoch 0 is the empty set, the first publication is 1; numbers only rise and none is used
// twice, across restarts too.
type Epoch uint64

// Snapshot is one published set. It is immutable and lives as long as somebody holds it.
type Snapshot struct {
	Epoch Epoch
	Set   *Set
}

// Next returns the snapshot that publishes set after s, or s itself when nothing differs.
func (s Snapshot) Next(set *Set) (Snapshot, bool) {
	if set.Digest() == s.Set.Digest() {
		return s, false
	}
	return Snapshot{Epoch: s.Epoch + 1, Set: set}, true
}

// Delta names what differs between two sets, each list in order of ids. A capability that lost its usability is updated,
// not removed: it is still named, with its reason.
type Delta struct {
	Added   []ID `json:"added,omitempty"`
	Updated []ID `json:"updated,omitempty"`
	Removed []ID `json:"removed,omitempty"`
}

// Diff is the delta that leads from one set to the other.
func Diff(from, to *Set) Delta {
	var d Delta
	for c := range to.All() {
		old, known := from.Get(c.ID)
		switch {
		case !known:
			d.Added = append(d.Added, c.ID)
		case old.fingerprint != c.fingerprint || old.Resolution != c.Resolution:
			d.Updated = append(d.Updated, c.ID)
		}
	}
	for c := range from.All() {
		if _, still := to.Get(c.ID); !still {
			d.Removed = append(d.Removed, c.ID)
		}
	}
	return d
}

// Empty reports whether nothing differs.
func (d Delta) Empty() bool { return d.len() == 0 }

func (d Delta) len() int { return len(d.Added) + len(d.Updated) + len(d.Removed) }

// Only returns the part of the delta about the ids that keep returns true for, so that nobody learns of what is hidden
// from them.
func (d Delta) Only(keep func(ID) bool) Delta {
	pick := func(ids []ID) []ID {
		return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return !keep(id) })
	}
	return Delta{pick(d.Added), pick(d.Updated), pick(d.Removed)}
}

// String is one line for logs and the model's standing section.
func (d Delta) String() string {
	var parts []string
	add := func(word string, ids []ID) {
		if len(ids) == 0 {
			return
		}
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = id.String()
		}
		parts = append(parts, word+" "+strings.Join(names, ", "))
	}
	add("added", d.Added)
	add("updated", d.Updated)
	add("removed", d.Removed)
	if len(parts) == 0 {
		return "no change"
	}
	return strings.Join(parts, "; ")
}
