package protocol

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vak-actors/vak-actors/capability"
)

// Acquire is demand for a server: it starts it where it does not run. Sender: a call. Receiver: the pool. Reply: *Lease,
// or an error of the start. Not safe to repeat: each Lease is to be released.
type Acquire struct {
	Server  string
	Config  *capability.Server // as the caller's epoch declares it
	Session string             // the key of isolation = "session"
	List    bool               // the caller wants the catalog known, too
	Again   bool               // an earlier lease of the same call led to a connection that was dead
	Until   time.Time          // the demand is refused when it still waits then; zero: it waits as long as it takes
}

// Connection is what a call may do with a leased connection. It is safe for concurrent use.
type Connection interface {
	// Alive reports why the connection cannot be used any more; nil while it can.
	Alive(ctx context.Context) error
	// Send sends one request and returns the raw result. An *RPCError is in the chain of an error that the server
	// answered with.
	Send(ctx context.Context, r ServerRequest) (json.RawMessage, error)
}

// ServerRequest is a request to a server on behalf of a session.
type ServerRequest struct {
	Method  string          // tools/call or another
	Tool    string          // of tools/call
	Params  json.RawMessage // an object: the arguments of tools/call, or else the params
	Extra   json.RawMessage // an object with any of _meta, inputResponses and requestState; empty: none
	Session string
	Client  Client // nil: nobody answers what the server asks

	ClientName string // under which Clients knows Client
}

// Lease lets its holder send requests on a running connection until it calls Release, once. answered says that the
// server answered, with a result or an error of its own.
type Lease struct {
	Connection  Connection
	Observation *capability.Observation // what is known of the catalog; never nil when Acquire.List was set
	Release     func(answered bool)
}

// ServerDefinition is the digest of what decides how a server is reached: its configuration without what was observed
// of it. Two epochs with equal definitions share connections.
func ServerDefinition(s *capability.Server) string {
	bare := *s
	bare.Observation = nil
	text, err := json.Marshal(&bare)
	if err != nil {
		panic(err) // strings, numbers and maps of strings only
	}
	return capability.ContentDigest(text)
}
