package gateway

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// connection is a session carried over HTTP.
type connection struct {
	*session
	key       string // the client's Mcp-Session-Id: 130 random bits, and the only thing that leads here
	principal string // who may use it
	streams   *streams

	requests  atomic.Uint64 // of the modern era so far
	listening atomic.Int64  // subscriptions/listen that are open
	waiting   waiting

	inUse int       // requests that hold it; guarded by table.mu, as is
	last  time.Time // end of the last of them
}

// finish closes the session and its streams, and waits for what runs in it.
func (c *connection) finish(cause *vakerr.Error) {
	c.close(cause)
	c.streams.close()
}

// table is the sessions of a handler, by key.
type table struct {
	most int

	mu     sync.Mutex // guards what follows
	closed bool
	byKey  map[string]*connection
}

func newTable(most int) *table { return &table{most: most, byKey: map[string]*connection{}} }

// add enters a session, in use by the request that made it.
func (t *table) add(c *connection) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errStopping
	}
	if len(t.byKey) >= t.most {
		return vakerr.New(vakerr.TooMany, "%d MCP sessions are open", len(t.byKey)).
			WithRemedy("end sessions that are not used any more").WithRetryAfter(time.Minute)
	}
	c.inUse = 1
	t.byKey[c.key] = c
	return nil
}

// use returns the session of that key to whoever may have it, until release; nil for everybody else.
func (t *table) use(key string, by request) *connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byKey[key]
	if c == nil || c.principal != by.principal || c.Tenant != by.Tenant || c.Server != by.Server {
		return nil
	}
	c.inUse++
	return c
}

func (t *table) release(c *connection) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c.inUse--
	c.last = now
}

// remove takes a session out and reports whether it was still in.
func (t *table) remove(c *connection) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.byKey[c.key]
	delete(t.byKey, c.key)
	return found
}

// idle takes out and returns the sessions that were not used for ttl. A call that runs is use, also where its client left.
func (t *table) idle(now time.Time, ttl time.Duration) []*connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	var idle []*connection
	for key, c := range t.byKey {
		switch {
		case c.inUse > 0:
		case c.busy():
			c.last = now
		case now.Sub(c.last) > ttl:
			delete(t.byKey, key)
			idle = append(idle, c)
		}
	}
	return idle
}

// closeAll takes out and returns all sessions; none is added any more.
func (t *table) closeAll() []*connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	all := make([]*connection, 0, len(t.byKey))
	for _, c := range t.byKey {
		all = append(all, c)
	}
	clear(t.byKey)
	return all
}

// sweep ends sessions that nobody uses, until Close.
func (h *Handler) sweep() {
	ttl := h.options.SessionIdleTTL
	tick := time.NewTicker(min(max(ttl/4, time.Second), time.Minute))
	defer tick.Stop()
	for {
		select {
		case <-h.stop:
			return
		case now := <-tick.C:
			for _, c := range h.sessions.idle(now, ttl) {
				c.finish(errIdle)
				c.leave(c.life)
			}
		}
	}
}

var errIdle = vakerr.New(vakerr.SessionClosed, "the MCP session was not used for long").WithRemedy("send initialize again")
