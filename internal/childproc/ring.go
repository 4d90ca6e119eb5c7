package childproc

import "sync"

// ring keeps the latest limit bytes written to it. Write never blocks and never fails.
type ring struct {
	mu   sync.Mutex // guards the fields below
	buf  []byte     // grows up to limit, then is overwritten from next on
	next int        // where the next byte goes once buf is full; 0 before
	max  int
}

func newRing(limit int) *ring { return &ring{max: limit} }

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	written := len(p)
	if len(p) > r.max {
		p = p[len(p)-r.max:]
	}
	if room := r.max - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % r.max
		p = p[n:]
	}
	return written, nil
}

// bytes returns a copy of what is kept, oldest first.
func (r *ring) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]byte, 0, len(r.buf))
	out = append(out, r.buf[r.next:]...)
	return append(out, r.buf[:r.next]...)
}
