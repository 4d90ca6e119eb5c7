package mcpio

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// stream is the GET stream of a legacy server.
type stream struct {
	l      *httpLink
	opened bool   // once, on this session
	last   string // id of the last event

	once  sync.Once
	tried chan struct{} // closed once the server has answered, or could not be asked
}

// attempt opens the stream and reads it to its end. It returns false if the server offers none.
func (s *stream) attempt(ctx context.Context) (again bool) {
	req, err := s.l.request(ctx, http.MethodGet, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	if s.last != "" {
		req.Header.Set("Last-Event-ID", s.last)
	}
	resp, err := s.l.client.Do(req)
	s.once.Do(func() { close(s.tried) })
	if err != nil {
		return !errors.Is(err, errRedirect)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound && s.opened:
		s.l.c.fail(s.l.sessionLost())
		return false
	case resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusNotImplemented,
		resp.StatusCode == http.StatusTooManyRequests:
		return true
	case resp.StatusCode != http.StatusOK || !isEventStream(resp):
		return false
	}
	s.opened = true
	for events := newEventReader(resp.Body, s.l.c.spec.Limits.Frame); ; {
		e, err := events.next()
		if err != nil {
			return true
		}
		if e.id != nil {
			s.last = string(e.id)
		}
		if !e.route(s.l.router(0)) && len(e.data) > 0 {
			s.l.answered(e.data)
		}
	}
}
