package turn

import (
	"slices"
	"sync"
)

// Indexes shares the last indexes between those who find the same tools: most epochs change something else, and most callers
// differ in something else. The zero value is ready; it is safe for concurrent use.
type Indexes struct {
	mu     sync.Mutex // guards recent; held while an index is made, so that it is made once
	recent []*Index
}

const maxIndexes = 4

// Of returns an index of docs. It may compute for tens of milliseconds, for thousands of tools.
func (s *Indexes) Of(docs []Doc) *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.recent {
		if x.holds(docs) {
			s.recent = slices.Insert(slices.Delete(s.recent, i, i+1), 0, x)
			return x
		}
	}
	x := NewIndex(docs)
	s.recent = slices.Insert(s.recent, 0, x)
	s.recent = s.recent[:min(len(s.recent), maxIndexes)]
	return x
}
