package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/builtin"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Caller is how a call uses the pool. Its methods block; they run on the call's goroutine.
type Caller struct {
	Pool    *protocol.Address
	Clients *protocol.Clients
}

var _ builtin.Servers = Caller{}

// List implements builtin.Servers.
func (r Caller) List(ctx context.Context, c op.Call, name string) ([]capability.ObservedTool, error) {
	server, err := configOf(c, name)
	if err != nil {
		return nil, err
	}
	lease, err := r.lease(ctx, c, name, server, true)
	if err != nil {
		return nil, err
	}
	defer lease.Release(true)
	var tools []capability.ObservedTool
	for _, t := range lease.Observation.Catalog {
		if policy.EnablesTool(server, t.Name) {
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// Call implements builtin.Servers. The gate is passed once more when the server is ready, right before the request.
func (r Caller) Call(ctx context.Context, c op.Call, name, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	return r.send(ctx, c, name, protocol.ServerRequest{Method: toolsCall, Tool: tool, Params: arguments})
}

// Request implements builtin.Servers.
func (r Caller) Request(ctx context.Context, c op.Call, name, method string, params json.RawMessage) (json.RawMessage, error) {
	return r.send(ctx, c, name, protocol.ServerRequest{Method: method, Params: params})
}

func (r Caller) send(ctx context.Context, c op.Call, name string, request protocol.ServerRequest) (json.RawMessage, error) {
	server, err := configOf(c, name)
	if err != nil {
		return nil, err
	}
	lease, err := r.lease(ctx, c, name, server, false)
	if err != nil {
		return nil, err
	}
	answered := false
	defer func() { lease.Release(answered) }()
	if err := c.Commit(); err != nil {
		return nil, err
	}
	request.Session, request.Client, request.ClientName, request.Extra = c.Session, r.Clients.Find(c.Client), c.Client, c.Extra
	result, err := lease.Connection.Send(ctx, request)
	answered = err == nil || vakerr.CodeOf(err) == vakerr.ServerRejected
	return result, err
}

func configOf(c op.Call, name string) (*capability.Server, error) {
	declared, ok := c.Bound.Server(name)
	if !ok {
		return nil, vakerr.New(vakerr.UnknownServer, "there is no server of that name in this turn")
	}
	return declared.Config.(*capability.Server), nil
}

// lease asks the pool for a connection that is alive. One that died unnoticed is asked for once more: the same demand
// starts the server again.
func (r Caller) lease(ctx context.Context, c op.Call, name string, server *capability.Server, list bool) (*protocol.Lease, error) {
	until, _ := ctx.Deadline()
	for again := false; ; again = true {
		lease, err := actorkit.Ask[*protocol.Lease](ctx, r.Pool.Ref(), &protocol.Acquire{
			Server: name, Config: server, Session: c.Session, List: list, Again: again, Until: until,
		})
		if err != nil {
			return nil, err
		}
		err = lease.Connection.Alive(ctx)
		if err == nil {
			return lease, nil
		}
		lease.Release(false)
		if again || ctx.Err() != nil {
			return nil, err
		}
	}
}
