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

	modern   bool // the stream cannot be resumed
	noEvents bool // the client takes JSON only: it misses what is said before the answer

	mu     sync.Mutex // guards what follows
	st     *stream    // nil: nothing was written yet
	ended  bool
	follow sync.WaitGroup // the goroutine that writes the events
}

// write implements outlet. It does not block.
func (p *response) write(frame []byte) { p.offer(frame) }

// offer implements outlet: the frame stands before the answer.
func (p *response) offer(frame []byte) bool {
	st := p.stream()
	if st != nil {
		st.send(frame)
	}
	return st != nil
}

// stream begins the stream of events. It returns nil when the request was answered, and to a client that takes none.
func (p *response) stream() *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.noEvents {
		return nil
	}
	if p.st == nil {
		p.st = p.c.streams.add()
		st := p.st
		p.follow.Go(func() { p.h.follow(p.w, p.r, p.c, st, 0, p.modern) })
	}
	return p.st
}

// serve has the request worked on and writes the answer. In the legacy era the work goes on when the client leaves.
func (p *response) serve(m message, by asker, json bool) {
	answer, work := p.c.acceptFrom(m, by)
	if work != nil {
		slow := time.AfterFunc(keepAlive, func() { p.stream() })
		answer = work()
		slow.Stop()
	}
	p.finish(m, answer, json)
}

// finish writes the answer, on the stream where one was begun or the client takes no JSON.
func (p *response) finish(m message, answer []byte, json bool) {
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
		status := http.StatusOK
		if p.modern {
			status = statusOfAnswer(m, answer)
		}
		writeJSON(p.w, status, answer)
		return
	}
	if answer != nil {
		st.send(answer)
	}
	st.end()
	p.c.streams.bound()
	p.follow.Wait()
}
