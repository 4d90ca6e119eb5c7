package protocol

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// DefaultTenant is the tenant of a daemon that serves one user, and of every request that names none.
const DefaultTenant = "default"

// Door is how fronts reach the actors: they send a message and wait for its result, and learn when a tenant's epoch
// moves. It is safe for concurrent use. host implements it.
type Door interface {
	// Ask delivers a command of messages/vak (session, registry, pool or ledger) to the actor that handles it and
	// returns the result message that its comment names. Errors are *vakerr.Error. ctx needs a deadline or a caller
	// that cancels it.
	Ask(ctx context.Context, command proto.Message) (proto.Message, error)

	// Attend enters the client that a call is made for; a Dispatch carries the name, until leave is called.
	Attend(client Client) (name string, leave func())

	// Subscribe calls changed after each publication of the tenant, from one goroutine at a time; changed must not
	// block. It returns the function that ends the subscription and waits for a call that runs.
	Subscribe(tenant string, changed func()) (cancel func(), err error)
}

// Call asks through a door and returns the result in its type.
func Call[R proto.Message](ctx context.Context, door Door, command proto.Message) (R, error) {
	var none R
	answer, err := door.Ask(ctx, command)
	if err != nil {
		return none, err
	}
	result, ok := answer.(R)
	if !ok {
		return none, vakerr.New(vakerr.Internal, "%T was answered with %T", command, answer)
	}
	return result, nil
}
