package schema

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// Cache keeps the schemas used last, by the digest of their text. It is safe for concurrent use.
type Cache struct {
	max int

	mu     sync.Mutex // guards what follows
	byText map[[sha256.Size]byte]*list.Element
	recent list.List // of entry; the one used last stands in front
}

type entry struct {
	key    [sha256.Size]byte
	schema *Schema
}

// NewCache returns a cache of at most limit schemas, and at least one.
func NewCache(limit int) *Cache {
	return &Cache{max: max(limit, 1), byText: map[[sha256.Size]byte]*list.Element{}}
}

// Get returns the compiled schema of that text, compiling it when it is not there.
func (c *Cache) Get(raw json.RawMessage) *Schema {
	key := sha256.Sum256(raw)
	if s := c.find(key); s != nil {
		return s
	}
	s := Compile(raw) // outside the lock: one slow schema must not hold up the others

	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byText[key]; ok {
		return e.Value.(entry).schema
	}
	c.byText[key] = c.recent.PushFront(entry{key, s})
	for c.recent.Len() > c.max {
		oldest := c.recent.Remove(c.recent.Back()).(entry)
		delete(c.byText, oldest.key)
	}
	return s
}

func (c *Cache) find(key [sha256.Size]byte) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byText[key]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(entry).schema
}

// Len is the number of schemas kept.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}
