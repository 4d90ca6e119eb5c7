package gateway

import (
	"context"
	"encoding/json"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

const (
	// quiet is how long a client is left alone after it was told of a change.
	quiet = time.Second

	// lookAttempts is how often a list that could not be read is tried again, each after lookRetry; then the next
	// publication or call brings the next look.
	lookAttempts = 3
	lookRetry    = 5 * time.Second
)

// listing is what a client knows of its tools, and whether there is news. session.mu guards it.
type listing struct {
	known    string // digest of what it last listed or was last told of; empty: it never asked
	moved    uint64 // publications heard of
	seen     uint64 // moved, as of the list that known is the digest of
	ears     int    // streams on which it could be told
	watching bool   // a goroutine looks
}

// listTools answers tools/list with the definitions as the session renders them.
func (s *session) listTools(m message) []byte {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if len(m.Params) > 0 && json.Unmarshal(m.Params, &p) != nil || p.Cursor != nil && *p.Cursor != "" {
		return invalidParams("there is no such cursor: the list has one page").frame(m.ID)
	}
	s.mu.Lock()
	moved := s.list.moved
	s.mu.Unlock()
	tools, err := s.tools(s.life)
	if err != nil {
		return failure(s.public(err)).frame(m.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.known = tools.GetDigest()
	s.list.seen = moved // what was published meanwhile may be missing in this list
	s.lookLocked()
	return resultFrame(m.ID, []byte(`{"tools":`), tools.GetToolsJson(), []byte(`}`))
}

// tools is what the session could call now.
func (s *session) tools(ctx context.Context) (*sessionv1.ListToolsResult, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	command := &sessionv1.ListTools{Tenant: s.Tenant, SessionId: s.runtime.id, Surface: s.Surface, Server: s.Server}
	var tools *sessionv1.ListToolsResult
	err := s.within(ctx, func() (err error) {
		tools, err = protocol.Call[*sessionv1.ListToolsResult](ctx, s.door, command)
		return err
	})
	return tools, err
}

// lists reports whether the client could have name from its list. It is asked after a refusal only.
func (s *session) lists(ctx context.Context, name string) bool {
	var tools []struct {
		Name string `json:"name"`
	}
	answer, err := s.tools(ctx)
	if err != nil || json.Unmarshal(answer.GetToolsJson(), &tools) != nil {
		return false
	}
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// changed hears of a publication.
func (s *session) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.moved++
	s.lookLocked()
}

// listen counts the streams on which the client can be told something.
func (s *session) listen(streams int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list.ears += streams
	s.lookLocked()
}

// due reports whether it is worth looking at the list now.
func (s *session) dueLocked() bool {
	l := s.list
	return !s.closed && l.ears > 0 && l.known != "" && l.seen != l.moved && len(s.calls) == 0
}

// lookLocked starts the watch where there is something to look for and nobody looks.
func (s *session) lookLocked() {
	if s.list.watching || !s.dueLocked() {
		return
	}
	s.list.watching = true
	s.work.Go(s.watch)
}

// watch looks at the list until there is nothing more to look for, and tells the client what differs. However many
// publications arrive meanwhile, they cost one more look.
func (s *session) watch() {
	for failures := 0; ; {
		s.mu.Lock()
		if !s.dueLocked() || failures == lookAttempts {
			s.list.watching = false
			s.mu.Unlock()
			return
		}
		moved := s.list.moved
		s.mu.Unlock()

		wait := time.Duration(0)
		switch digest, err := s.look(); {
		case err != nil:
			failures++
			wait = lookRetry
		case s.news(digest, moved):
			s.notify(listChanged)
			wait = quiet
		}
		s.rest(wait)
	}
}

// look reads the list's digest, in its turn among the sessions that do.
func (s *session) look() (string, error) {
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	case <-s.life.Done():
		return "", context.Cause(s.life)
	}
	tools, err := s.tools(s.life)
	return tools.GetDigest(), err
}

// news enters the digest that was current at moved and reports whether the client is to be told. A call that began
// meanwhile puts it off: the look is repeated when the burst is over.
func (s *session) news(digest string, moved uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) > 0 || s.closed {
		return false
	}
	s.list.seen = moved
	if digest == s.list.known {
		return false
	}
	s.list.known = digest
	return true
}

// rest waits, or less when the connection ends.
func (s *session) rest(d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.life.Done():
	}
}

var listChanged = []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
