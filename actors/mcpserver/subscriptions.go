package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/internal/mcpio"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxSubscriptions bounds the resources of one server that clients are subscribed to, and the clients of one resource.
const maxSubscriptions = 1024

// renewTime bounds how long a server that was started again is told what it had been told before.
const renewTime = 5 * time.Second

// The requests that subscribe a client, and the notification it then gets.
const (
	subscribeMethod   = "resources/subscribe"
	unsubscribeMethod = "resources/unsubscribe"
	updatedMethod     = "notifications/resources/updated"
)

// subscriptions says which clients want to hear of which resources of a server. It outlives the connection: a server that
// is started again is told anew. Clients that have left are forgotten when there is no room.
type subscriptions struct {
	clients *protocol.Clients

	mu    sync.Mutex // guards byURI
	byURI map[string][]string
}

// note keeps what a request that the server has accepted means.
func (s *subscriptions) note(r protocol.ServerRequest) {
	uri := uriOf(r.Params)
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.DeleteFunc(slices.Clone(s.byURI[uri]), func(n string) bool { return n == r.ClientName || s.clients.Find(n) == nil })
	if r.Method == subscribeMethod {
		names = append(names, r.ClientName)
	}
	if len(names) == 0 {
		delete(s.byURI, uri)
		return
	}
	if s.byURI == nil {
		s.byURI = map[string][]string{}
	}
	s.byURI[uri] = names
}

// admit says whether a request fits the bounds, and whether the server is to hear of it: it knows one subscriber, this
// program, and is told to forget a resource when nobody wants to hear of it any more.
func (s *subscriptions) admit(r protocol.ServerRequest) (send bool, err error) {
	uri := uriOf(r.Params)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byURI) >= maxSubscriptions || len(s.byURI[uri]) >= maxSubscriptions {
		s.sweepLocked()
	}
	others := slices.ContainsFunc(s.byURI[uri], func(n string) bool { return n != r.ClientName && s.clients.Find(n) != nil })
	switch {
	case r.Client == nil:
		return false, vakerr.New(vakerr.InvalidRequest, "whoever asks cannot be told of updates").
			WithRemedy("subscribe from a client of the MCP endpoint")
	case r.Method == unsubscribeMethod:
		return !others, nil
	case len(s.byURI[uri]) >= maxSubscriptions, len(s.byURI) >= maxSubscriptions && s.byURI[uri] == nil:
		return false, vakerr.New(vakerr.TooMany, "there are %d subscriptions to this server", maxSubscriptions).
			WithRemedy("end subscriptions that are not needed")
	}
	return true, nil
}

// sweepLocked forgets clients that have left.
func (s *subscriptions) sweepLocked() {
	for uri, names := range s.byURI {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return s.clients.Find(n) == nil })
		if s.byURI[uri] = names; len(names) == 0 {
			delete(s.byURI, uri)
		}
	}
}

// updated passes a notification of the server on. It does not block.
func (s *subscriptions) updated(method string, params json.RawMessage) {
	if method != updatedMethod {
		return
	}
	s.mu.Lock()
	names := slices.Clone(s.byURI[uriOf(params)])
	s.mu.Unlock()
	for _, n := range names {
		if client := s.clients.Find(n); client != nil {
			client.Tell(method, params)
		}
	}
}

// renew tells a server that was started again what it had been told before.
func (s *subscriptions) renew(ctx context.Context, conn *mcpio.Conn) {
	s.mu.Lock()
	var wanted []string
	for uri, names := range s.byURI {
		if slices.ContainsFunc(names, func(n string) bool { return s.clients.Find(n) != nil }) {
			wanted = append(wanted, uri)
		} else {
			delete(s.byURI, uri)
		}
	}
	s.mu.Unlock()
	for _, uri := range wanted {
		if ctx.Err() != nil {
			return
		}
		params, err := json.Marshal(map[string]string{"uri": uri})
		if err != nil {
			continue
		}
		_, _ = conn.Request(ctx, subscribeMethod, params, mcpio.CallOptions{}) // one that has the resource no more tells nothing of it
	}
}

func uriOf(params json.RawMessage) string {
	var p struct {
		URI string `json:"uri"`
	}
	_ = json.Unmarshal(params, &p) // a URI that cannot be read is none that a server knows
	return p.URI
}
