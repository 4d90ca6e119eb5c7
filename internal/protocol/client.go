package protocol

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
)

// Client is the MCP client a call was made for, as far as the server of the call may turn to it while the call runs. It is
// safe for concurrent use.
type Client interface {
	// Ask passes on a request of the server (sampling/createMessage, elicitation/create or roots/list) and returns the
	// client's result. An error that the client answered with is an *RPCError. It blocks until ctx ends at the latest.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Tell passes on a notification (notifications/progress, with a token that means nothing to the client, or
	// notifications/message). It does not block; the client owns params.
	Tell(method string, params json.RawMessage)
	// Capabilities is the object of capabilities that the client declared; empty: none.
	Capabilities() json.RawMessage
	// TakesQuestions reports whether the client takes the result input_required, and calls again with what it asks for.
	TakesQuestions() bool
	// WantsProgress reports whether the client asked for progress of this call.
	WantsProgress() bool
	// LogLevel is the least level of log messages that the client wants; empty: it did not say.
	LogLevel() string
}

// RPCError is an error response of JSON-RPC, on its way between a client and a server.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *RPCError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Clients are the clients whose calls run, by the name that a Dispatch carries. The zero value is ready for use.
type Clients struct {
	mu   sync.RWMutex // guards byID
	byID map[string]Client
}

// Attend enters a client for one call and returns the name under which Find knows it until leave. Nobody can guess it: who
// sends a Dispatch can name no client but its own.
func (c *Clients) Attend(client Client) (name string, leave func()) {
	name = rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[string]Client{}
	}
	c.byID[name] = client
	return name, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.byID, name)
	}
}

// Find is the client of that name; nil where there is none any more.
func (c *Clients) Find(name string) Client {
	if name == "" {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[name]
}
