package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
)

const (
	// quiet is how long a client is left alone after it was told of a change.
	quiet = time.Second

	// lookAttempts is how often a list that could not be read is tried again, each after lookRetry; then the next
	// publication or call brings the next look.
	lookAttempts = 3
	lookRetry    = 5 * time.Second
)

// What a client lists, as kinds. The first three each have a notification of their own; templates go with resources.
const (
	listTools     = "tools"
	listPrompts   = turn.FeaturePrompts
	listResources = turn.FeatureResources
	listTemplates = turn.FeatureTemplates
)

// lists are the kinds by the method that asks for them, and the member of the result that holds them.
var lists = map[mcp.MCPMethod]struct{ kind, member string }{
	mcp.MethodToolsList: {listTools, "tools"}, mcp.MethodPromptsList: {listPrompts, "prompts"},
	mcp.MethodResourcesList: {listResources, "resources"}, mcp.MethodResourcesTemplatesList: {listTemplates, "resourceTemplates"},
}

// listing is what a client knows of its lists, and whether there is news. session.mu guards it.
type listing struct {
	known    map[string]string // by kind the digest of what it last listed or was last told of; what it never asked for is not in
	moved    uint64            // publications heard of
	seen     uint64            // moved, as of the lists that known are the digests of
	ears     int               // streams on which it could be told
	watching bool              // a goroutine looks
}

// prepareList answers one of lists.
func (s *session) prepareList(m message, by asker) ([]byte, func() []byte) {
	return nil, func() []byte { return s.listed(m, by) }
}

// listed answers one of lists with the definitions as the session renders them.
func (s *session) listed(m message, by asker) []byte {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if len(m.Params) > 0 && json.Unmarshal(m.Params, &p) != nil || p.Cursor != nil && *p.Cursor != "" {
		return invalidParams("there is no such cursor: the list has one page").frame(m.ID)
	}
	s.mu.Lock()
	moved := s.list.moved
	s.mu.Unlock()
	list := lists[mcp.MCPMethod(m.Method)]
	definitions, digest, err := s.definitions(s.life, list.kind)
	if err != nil {
		return failure(s.public(err)).frame(m.ID)
	}
	if !by.modern { // whose clients ask to be told in another way
		s.noted(list.kind, digest, moved)
	}
	return by.result(m.ID, true, []byte(`{"`+list.member+`":`), definitions, []byte(`}`))
}

// noted enters that the client knows a list with that digest, as of moved publications: what was published meanwhile may be
// missing in it.
func (s *session) noted(kind, digest string, moved uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list.known) == 0 {
		s.list.known = map[string]string{}
		s.list.seen = moved
	}
	s.list.seen = min(s.list.seen, moved)
	s.list.known[kind] = digest
	s.lookLocked()
}

// definitions is a list as the session could use it now, and its digest.
func (s *session) definitions(ctx context.Context, kind string) (definitions []byte, digest string, err error) {
	if kind == listTools {
		tools, err := s.tools(ctx)
		return tools.GetToolsJson(), tools.GetDigest(), err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	command := &sessionv1.ListFeatures{Tenant: s.Tenant, SessionId: s.runtime.id, Kind: kind, Server: s.Server}
	var features *sessionv1.ListFeaturesResult
	err = s.within(ctx, func() (err error) {
		features, err = protocol.Call[*sessionv1.ListFeaturesResult](ctx, s.door, command)
		return err
	})
	return features.GetFeaturesJson(), features.GetDigest(), err
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
	return !s.closed && l.ears > 0 && len(l.known) > 0 && l.seen != l.moved && len(s.calls) == 0
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
		digests, err := s.look()
		if err != nil {
			failures++
			wait = lookRetry
		} else {
			for _, notification := range s.news(digests, moved) {
				s.unasked.write(notification)
				wait = quiet
			}
		}
		s.rest(wait)
	}
}

// look reads the digests of the lists that the client knows, in its turn among the sessions that do.
func (s *session) look() (map[string]string, error) {
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	case <-s.life.Done():
		return nil, context.Cause(s.life)
	}
	s.mu.Lock()
	kinds := slices.Sorted(maps.Keys(s.list.known))
	s.mu.Unlock()
	digests := map[string]string{}
	for _, kind := range kinds {
		_, digest, err := s.definitions(s.life, kind)
		if err != nil {
			return nil, err
		}
		digests[kind] = digest
	}
	return digests, nil
}

// news enters the digests that were current at moved and returns what the client is to be told. A call that began meanwhile
// puts it off: the look is repeated when the burst is over.
func (s *session) news(digests map[string]string, moved uint64) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) > 0 || s.closed {
		return nil
	}
	s.list.seen = moved
	var told [][]byte
	for _, kind := range slices.Sorted(maps.Keys(digests)) {
		if digests[kind] == s.list.known[kind] {
			continue
		}
		s.list.known[kind] = digests[kind]
		if frame := changedFrame(kind); !slices.ContainsFunc(told, func(f []byte) bool { return string(f) == string(frame) }) {
			told = append(told, frame)
		}
	}
	return told
}

// changedFrame is the notification that a list has changed.
func changedFrame(kind string) []byte {
	if kind == listTemplates {
		kind = listResources
	}
	return []byte(`{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`)
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
