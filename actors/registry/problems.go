package registry

import (
	"slices"
	"sync"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// catalogs remembers what is wrong with what servers were seen to have, for the catalogs of the last set that it was asked
// about.
type catalogs struct {
	mu         sync.Mutex // guards what follows, while it is worked out too: reports are made in effects, and one is enough
	set        *capability.Set
	known      map[*capability.Observation][]capability.Problem
	collisions []capability.Problem
}

// problems is what is wrong in a set. The first answer for a catalog may take a millisecond for ten tools.
func (s *catalogs) problems(set *capability.Set) []capability.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != set {
		before := s.known
		s.set, s.known = set, make(map[*capability.Observation][]capability.Problem)
		for c := range set.OfKind(capability.KindMCP) {
			o := c.Config.(*capability.Server).Observation
			if o == nil {
				continue
			}
			found, known := before[o]
			if !known {
				found = turn.CatalogProblems(c)
			}
			s.known[o] = found
		}
		s.collisions = turn.CollisionProblems(set)
	}
	all := slices.Clone(s.collisions)
	for _, found := range s.known {
		all = append(all, found...)
	}
	return all
}
