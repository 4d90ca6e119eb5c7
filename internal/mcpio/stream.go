package mcpio

import (
	"context"
	"errors"
	"net/http"
)

// stream is the GET stream of a legacy server.
type stream struct {
	l      *httpLink
	opened bool   // once, on this session
	last   string // id of the last event
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
		e.route(s.l.router(0))
	}
}
