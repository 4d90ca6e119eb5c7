package gateway

import (
	"net/http"
	"sync"
	"time"
)

// response answers one request over HTTP. It is one JSON object, unless something has to be said before the answer,
// or the answer takes long: then it becomes a stream of events, which the client may leave and resume.
type response struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request
	c *connection

	mu     sync.Mutex // guards what follows
	st     *stream    // nil: nothing was written yet
	ended  bool
	follow sync.WaitGroup // the goroutine that writes the events
}

// write implements outlet. It does not block.
func (p *response) write(frame []byte) { p.offer(frame) }

// offer implements outlet: the frame stands before the answer.
func (p *response) offer(frame []byte) {
	if st := p.stream(); st != nil {
		st.send(frame)
	}
}

// stream begins the stream of events. It returns nil when the request was answered.
func (p *response) stream() *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	if p.st == nil {
		p.st = p.c.streams.add()
		st := p.st
		p.follow.Go(func() { p.h.follow(p.w, p.r, p.c, st, 0) })
	}
	return p.st
}

// serve has the request worked on and writes the answer. The work goes on when the client leaves.
func (p *response) serve(m message, json bool) {
	answer, work := p.c.accept(m, p)
	if work != nil {
		slow := time.AfterFunc(keepAlive, func() { p.stream() })
		answer = work()
		slow.Stop()
	}
	if !json {
		p.stream()
	}
	p.mu.Lock()
	p.ended = true
	st := p.st
	p.mu.Unlock()
	if st == nil {
		if answer == nil { // the client cancelled it, and has most likely left
			answer = failure(errCancelled).frame(m.ID)
		}
		writeJSON(p.w, http.StatusOK, answer)
		return
	}
	if answer != nil {
		st.send(answer)
	}
	st.end()
	p.c.streams.bound()
	p.follow.Wait()
}
