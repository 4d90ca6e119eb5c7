package gateway

import (
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
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

func (t tagged) write(frame []byte) { t.outlet.write(t.tag(frame)) }
func (t tagged) offer(frame []byte) { t.outlet.offer(t.tag(frame)) }

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

// subscribed holds the stream of a subscriptions/listen open until its client closes it or the handler ends. It is a
// connection of its own to the runtime's session behind the stateless requests.
func (h *Handler) subscribed(p *response, m message, at request) {
	var in struct {
		Notifications filter `json:"notifications"`
	}
	if json.Unmarshal(m.Params, &in) != nil || len(in.Notifications.Updates) > maxSubscribed {
		refuseMessage(p.w, m.ID, invalidParams("subscriptions/listen needs notifications, with at most %d resources", maxSubscribed))
		return
	}
	out := tagged{p, m.ID}
	s, err := h.attach(p.r.Context(), at.endpoint, p.c.runtime.id, out)
	if err != nil {
		refuse(p.w, statusOf(err), err)
		return
	}
	defer s.close(errDeleted)
	for _, kind := range in.Notifications.kinds() {
		if err := s.know(kind); err != nil {
			refuse(p.w, statusOf(err), err)
			return
		}
	}
	established := in.Notifications
	established.Updates = s.subscribeAll(in.Notifications.Updates)
	defer s.unsubscribeAll(established.Updates)
	out.write(notificationFrame(string(mcp.MethodNotificationSubscriptionsAcknowledged), encode(map[string]any{"notifications": established})))
	s.listen(+1)
	select {
	case <-p.r.Context().Done():
	case <-h.stop:
	case <-p.c.life.Done():
	}
	p.finish(m, asker{modern: true}.result(m.ID, false, encode(map[string]any{
		"_meta": map[string]json.RawMessage{mcp.MetaKeySubscriptionID: m.ID},
	})), false)
}

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

// subscribeAll subscribes the connection to resources and returns those whose servers agreed.
func (s *session) subscribeAll(uris []string) []string {
	var established []string
	for _, uri := range uris {
		if s.subscription(mcp.MethodResourcesSubscribe, uri) {
			established = append(established, uri)
		}
	}
	return established
}

func (s *session) unsubscribeAll(uris []string) {
	for _, uri := range uris {
		s.subscription(mcp.MethodResourcesUnsubscribe, uri)
	}
}

func (s *session) subscription(method mcp.MCPMethod, uri string) (done bool) {
	command := &sessionv1.Dispatch{
		Tenant: s.Tenant, SessionId: s.runtime.id, Name: s.Server, Method: string(method),
		ArgumentsJson: encode(map[string]string{"uri": uri}), Client: s.standing(),
	}
	err := s.within(s.life, func() error {
		answer, err := protocol.Call[*sessionv1.DispatchResult](s.life, s.door, command)
		done = err == nil && answer.GetRefusal() == nil
		return err
	})
	return err == nil && done
}
