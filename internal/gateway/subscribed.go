package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxSubscribed bounds the resources of one subscriptions/listen.
const maxSubscribed = 256

// filter is what a client of the modern era wants to hear of.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	Updates   []string `json:"resourceSubscriptions,omitempty"`
}

// kinds are the lists whose changes are to be told.
func (f filter) kinds() []string {
	var all []string
	for kind, wanted := range map[string]bool{
		listTools: f.Tools, listPrompts: f.Prompts, listResources: f.Resources, listTemplates: f.Resources,
	} {
		if wanted {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	return all
}

// tagged is an outlet whose notifications say to which subscription they belong.
type tagged struct {
	outlet
	id json.RawMessage
}

func (t tagged) write(frame []byte)      { t.outlet.write(t.tag(frame)) }
func (t tagged) offer(frame []byte) bool { return t.outlet.offer(t.tag(frame)) }

func (t tagged) tag(frame []byte) []byte {
	var n struct {
		Method string                     `json:"method"`
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(frame, &n) != nil || n.Method == "" {
		return frame
	}
	if n.Params == nil {
		n.Params = map[string]json.RawMessage{}
	}
	n.Params["_meta"] = encode(map[string]json.RawMessage{mcp.MetaKeySubscriptionID: t.id})
	return notificationFrame(n.Method, encode(n.Params))
}

// subscribed holds the stream of a subscriptions/listen open until its client closes it or the connection ends.
func (h *Handler) subscribed(p *response, m message, at request) {
	if p.c.listening.Add(1) > maxHTTPListening {
		p.c.listening.Add(-1)
		p.finish(m, failure(vakerr.New(vakerr.TooMany, "too many subscriptions are open").WithRemedy("end some")).frame(m.ID), true)
		return
	}
	defer p.c.listening.Add(-1)
	ctx, cancel := context.WithCancelCause(p.r.Context())
	defer cancel(nil)
	defer context.AfterFunc(p.c.life, func() { cancel(context.Cause(p.c.life)) })()
	p.finish(m, h.subscription(ctx, at.endpoint, p.c.runtime.id, m, p), true)
}

// subscription tells out what a client asked to hear of, until ctx ends, and returns the last answer. It is a connection of its
// own to a session of the runtime.
func (f *front) subscription(ctx context.Context, at endpoint, runtimeID string, m message, out outlet) []byte {
	var in struct {
		Notifications filter `json:"notifications"`
	}
	if json.Unmarshal(m.Params, &in) != nil || len(in.Notifications.Updates) > maxSubscribed {
		return invalidParams("subscriptions/listen needs notifications, with at most %d resources", maxSubscribed).frame(m.ID)
	}
	to := tagged{out, m.ID}
	s, err := f.attach(ctx, at, runtimeID, to)
	if err != nil {
		return failure(err).frame(m.ID)
	}
	defer s.close(errDeleted)
	for _, kind := range in.Notifications.kinds() {
		if err := s.know(kind); err != nil {
			return failure(s.public(err)).frame(m.ID)
		}
	}
	established := in.Notifications
	established.Updates = s.subscribeAll(ctx, in.Notifications.Updates)
	defer s.unsubscribeAll(established.Updates)
	to.write(notificationFrame(string(mcp.MethodNotificationSubscriptionsAcknowledged), encode(map[string]any{"notifications": established})))
	s.listen(+1)
	<-ctx.Done()
	return asker{modern: true}.result(m.ID, false, encode(map[string]any{
		"_meta": map[string]json.RawMessage{mcp.MetaKeySubscriptionID: m.ID},
	}))
}

// prepareSubscription holds a subscriptions/listen on pipes open until its client cancels it or leaves.
func (s *session) prepareSubscription(m message, by asker) ([]byte, func() []byte) {
	ctx, cancel := context.WithCancelCause(s.life)
	s.mu.Lock()
	_, taken := s.subscribed[by.key]
	full := len(s.subscribed) >= maxListening
	if !taken && !full {
		s.subscribed[by.key] = cancel
	}
	s.mu.Unlock()
	switch {
	case taken:
		cancel(nil)
		return invalidRequest("a request with this id is in flight").frame(m.ID), nil
	case full:
		cancel(nil)
		return failure(vakerr.New(vakerr.TooMany, "%d subscriptions are open on this connection", maxListening)).frame(m.ID), nil
	}
	return nil, func() []byte {
		defer func() {
			s.mu.Lock()
			delete(s.subscribed, by.key)
			s.mu.Unlock()
			cancel(nil)
		}()
		answer := s.subscription(ctx, s.endpoint, s.runtime.id, m, by.to)
		if context.Cause(ctx) == errCancelled { //nolint:errorlint // this very value
			return nil
		}
		return answer
	}
}

// endSubscriptions ends every subscriptions/listen on pipes.
func (s *session) endSubscriptions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.subscribed {
		cancel(errCancelled)
	}
}

// maxListening bounds the subscriptions of one client on pipes.
const maxListening = 32

// maxHTTPListening bounds those of all clients of one principal at one endpoint.
const maxHTTPListening = 1024

// know reads a list, so that what changes from now on is news.
func (s *session) know(kind string) error {
	s.mu.Lock()
	moved := s.list.moved
	s.mu.Unlock()
	_, digest, err := s.definitions(s.life, kind)
	if err != nil {
		return err
	}
	s.noted(kind, digest, moved)
	return nil
}

// subscribeAll subscribes the connection to resources, until ctx ends, and returns those whose servers agreed.
func (s *session) subscribeAll(ctx context.Context, uris []string) []string {
	var established []string
	for _, uri := range uris {
		if s.track(ctx, askTimeout, mcp.MethodResourcesSubscribe, uri) {
			established = append(established, uri)
		}
	}
	return established
}

func (s *session) unsubscribeAll(uris []string) {
	until := time.Now().Add(leaveTime)
	for _, uri := range uris {
		if time.Now().After(until) {
			return // the server's pool forgets who has left
		}
		s.track(s.life, leaveTime, mcp.MethodResourcesUnsubscribe, uri)
	}
}

// leaveTime bounds how long servers are told that a subscription is over, and one of them how long it may take.
const leaveTime = 2 * time.Second

func (s *session) track(ctx context.Context, limit time.Duration, method mcp.MCPMethod, uri string) (done bool) {
	command := &sessionv1.Dispatch{
		Tenant: s.Tenant, SessionId: s.runtime.id, Name: s.Server, Method: string(method),
		ArgumentsJson: encode(map[string]string{"uri": uri}), Client: s.standing(),
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.within(ctx, func() error {
		answer, err := protocol.Call[*sessionv1.DispatchResult](ctx, s.door, command)
		done = err == nil && answer.GetRefusal() == nil
		return err
	})
	return err == nil && done
}
