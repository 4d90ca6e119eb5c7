package mcpio

import (
	"bytes"
	"encoding/json"
	"sync"
)

// results is the shelf of a stdio connection: the results of the requests somebody waits for.
type results struct {
	mu      sync.Mutex // guards waiting
	waiting map[int64]json.RawMessage
}

func newResults() *results { return &results{waiting: map[int64]json.RawMessage{}} }

// expect makes room for the result of request id; take ends that.
func (r *results) expect(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[id] = nil
}

// take removes the room of request id and returns what lies in it.
func (r *results) take(id int64) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.waiting[id]
	delete(r.waiting, id)
	return result
}

// put implements shelf.
func (r *results) put(id int64, result []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waiting := r.waiting[id]; !waiting {
		return false
	}
	r.waiting[id] = bytes.Clone(result)
	return true
}
