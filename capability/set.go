package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
)

// Resolution is the registry's word on a capability: available, or retired with a reason. There is no third state and
// no way back within one set; a later set may say otherwise.
type Resolution struct {
	Retired bool
	Reason  string // why it was retired; empty while available
}

// Capability is a declaration with its resolution in one set.
type Capability struct {
	Declaration
	Resolution  Resolution
	fingerprint [sha256.Size]byte
}

// Usable reports whether it is declared, not revoked and not held back, which is all that the registry knows.
func (c *Capability) Usable() bool { return !c.Resolution.Retired && c.Hold == nil }

// Revocations maps a revoked capability to the operator's reason. A map that was published is never changed.
type Revocations map[ID]string

// Set is an immutable collection of capabilities, ordered by id, with one digest. The nil *Set is the empty set.
type Set struct {
	list   []Capability
	index  map[ID]int32
	digest string
}

// NewSet resolves declarations against the revocations in force. Two declarations of one id, or one that fails Check,
// are an error: readers settle collisions before (see Settle).
func NewSet(declared []Declaration, revoked Revocations) (*Set, error) {
	return (*Set)(nil).Renew(declared, revoked)
}

// Renew is NewSet for a world of which s is an earlier state: most of it is the same, and is not encoded again.
func (s *Set) Renew(declared []Declaration, revoked Revocations) (*Set, error) {
	before := s
	s = &Set{list: make([]Capability, 0, len(declared)), index: make(map[ID]int32, len(declared))}
	for _, d := range declared {
		if err := d.Check(); err != nil {
			return nil, err
		}
		c := Capability{Declaration: d}
		if old, known := before.Get(d.ID); known && old.Declaration.same(d) {
			c.fingerprint = old.fingerprint
		} else {
			var err error
			if c.fingerprint, err = d.fingerprint(); err != nil {
				return nil, err
			}
		}
		if reason, gone := revoked[d.ID]; gone {
			c.Resolution = Resolution{Retired: true, Reason: reason}
		}
		s.list = append(s.list, c)
	}
	slices.SortFunc(s.list, func(a, b Capability) int { return a.ID.Compare(b.ID) })
	for i := range s.list {
		id := s.list[i].ID
		if _, twice := s.index[id]; twice {
			return nil, fmt.Errorf("%s is declared twice", id)
		}
		s.index[id] = int32(i)
	}
	s.digest = s.computeDigest()
	return s, nil
}

func (s *Set) computeDigest() string {
	h := sha256.New()
	for i := range s.list {
		c := &s.list[i]
		h.Write(c.fingerprint[:])
		if c.Resolution.Retired {
			fmt.Fprintf(h, "retired %q", c.Resolution.Reason)
		}
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Len is the number of capabilities, retired ones included.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.list)
}

// Digest is the lower-case hex SHA-256 over everything a turn could notice, in order. Equal sets have equal digests.
func (s *Set) Digest() string {
	if s == nil {
		return emptyDigest
	}
	return s.digest
}

var emptyDigest = hex.EncodeToString(sha256.New().Sum(nil))

// Get returns the capability of that id. The caller must not change it.
func (s *Set) Get(id ID) (*Capability, bool) {
	if s == nil {
		return nil, false
	}
	i, ok := s.index[id]
	if !ok {
		return nil, false
	}
	return &s.list[i], true
}

// All yields every capability in order of ids. The caller must not change them.
func (s *Set) All() iter.Seq[*Capability] {
	return func(yield func(*Capability) bool) {
		for i := range s.Len() {
			if !yield(&s.list[i]) {
				return
			}
		}
	}
}

// OfKind yields the capabilities of one kind in order of names.
func (s *Set) OfKind(kind Kind) iter.Seq[*Capability] {
	return func(yield func(*Capability) bool) {
		for c := range s.All() {
			if c.ID.Kind == kind && !yield(c) {
				return
			}
		}
	}
}

// Consistent checks the invariants of a set: order, index and digest. Tests run it after every publication.
func (s *Set) Consistent() error {
	for i := range s.Len() {
		id := s.list[i].ID
		if i > 0 && s.list[i-1].ID.Compare(id) >= 0 {
			return fmt.Errorf("%s stands after %s", id, s.list[i-1].ID)
		}
		if s.index[id] != int32(i) {
			return fmt.Errorf("%s is indexed at %d and stands at %d", id, s.index[id], i)
		}
	}
	if s != nil && s.digest != s.computeDigest() {
		return fmt.Errorf("digest %s does not cover the content", s.digest)
	}
	return nil
}
