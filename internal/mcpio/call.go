package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// CallOptions are the optional parts of a request. The zero value is a plain one, made for nobody.
type CallOptions struct {
	// Owner tells whose requests are whose, as a server may turn to the client of one: a session.
	Owner string
	// Client is who the request is made for; nil: nobody who could answer the server.
	Client Client
	// Extra is what the params carry besides: an object with any of _meta, inputResponses and requestState. What of _meta
	// belongs to another connection, progressToken and the keys of the protocol itself, is left out.
	Extra json.RawMessage
	// Timeout replaces Spec.CallTimeout if it is not 0. The time in which the client answers the server does not count.
	Timeout time.Duration
}

// CallTool calls a tool and returns the CallToolResult as the server wrote it; a result with isError is a result. args is a
// JSON object or empty. If ctx ends first, the server is told to cancel.
//
// Errors, beside those of Request: vakerr.OutcomeUnknown if the connection ended after the call was sent.
func (c *Conn) CallTool(ctx context.Context, name string, args json.RawMessage, opt CallOptions) (json.RawMessage, error) {
	if len(args) > 0 && !isObject(args) {
		return nil, vakerr.New(vakerr.InvalidArguments, "the arguments of tool %q are no JSON object", clip(name, maxToolName))
	}
	params, err := callParams(name, args)
	if err != nil {
		return nil, err
	}
	return c.perform(ctx, "tools/call", params, opt)
}

// Request sends any request and returns the raw result. params is a JSON object or empty.
//
// Errors: vakerr.ServerRejected (an RPCError is in the chain), ServerProtocol, TooLarge, DeadlineExceeded, Canceled,
// QueueFull (the server does not read), Unauthenticated (a StatusError is in the chain), ServerDied and, after Close,
// ServerStopped.
func (c *Conn) Request(ctx context.Context, method string, params json.RawMessage, opt CallOptions) (json.RawMessage, error) {
	if len(params) > 0 && !isObject(params) {
		return nil, vakerr.New(vakerr.InvalidRequest, "the params of %s are no JSON object", method)
	}
	return c.perform(ctx, method, params, opt)
}

// perform sends a request until it has a result: a modern server may want input first, which a client of the other era is
// asked for in between.
func (c *Conn) perform(ctx context.Context, method string, params json.RawMessage, opt CallOptions) (json.RawMessage, error) {
	timeout := opt.Timeout
	orDuration(&timeout, c.spec.CallTimeout)
	ctx, clock, cancel := withTimer(ctx, timeout)
	defer cancel()
	c.raiseLevel(ctx, opt.Client)
	extra := opt.Extra
	for round := 0; ; round++ {
		result, err := c.attempt(ctx, clock, method, params, extra, opt)
		if err != nil || c.hello.era != EraModern || !wantsInput(result) || opt.Client != nil && opt.Client.TakesQuestions() {
			return result, err
		}
		if round == maxRounds {
			return nil, vakerr.New(vakerr.ServerRejected, "server %q asked for input %d times in one request", c.spec.Name, maxRounds).
				WithRemedy("report it to the author of the server")
		}
		if extra, err = c.input(ctx, clock, result, extra, opt.Client); err != nil {
			return nil, err
		}
	}
}

// attempt sends a request once.
func (c *Conn) attempt(ctx context.Context, clock *callTimer, method string, params, extra json.RawMessage, opt CallOptions) (json.RawMessage, error) {
	id := c.nextID.Add(1)
	params, err := withExtra(params, extra, id, opt.Client)
	if err != nil {
		return nil, err
	}
	if opt.Owner != "" {
		c.calls.enter(&activeCall{id, opt.Owner, opt.Client, ctx, clock})
		defer func() { c.calls.leave(id, ctx.Err() != nil) }()
	}
	return c.roundTrip(ctx, id, method, params, opt.Client)
}

// callParams puts parts that are valid JSON together, without reading them again.
func callParams(name string, args json.RawMessage) (json.RawMessage, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "the name of the tool cannot be written as JSON").WithCause(err)
	}
	out := make([]byte, 0, len(quoted)+len(args)+40)
	out = append(append(out, `{"name":`...), quoted...)
	if len(args) > 0 {
		out = append(append(out, `,"arguments":`...), args...)
	}
	return append(out, '}'), nil
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}

// withExtra puts what a caller adds, and the token of this connection where progress is wanted, into params.
func withExtra(params, extra json.RawMessage, id int64, client Client) (json.RawMessage, error) {
	progress := client != nil && client.WantsProgress()
	if len(extra) == 0 && !progress {
		return params, nil
	}
	var added struct {
		Meta      map[string]json.RawMessage `json:"_meta,omitempty"`
		Responses json.RawMessage            `json:"inputResponses,omitempty"`
		State     json.RawMessage            `json:"requestState,omitempty"`
	}
	if len(extra) > 0 && json.Unmarshal(extra, &added) != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "what a request carries besides is no JSON object with an object _meta")
	}
	maps.DeleteFunc(added.Meta, func(key string, _ json.RawMessage) bool {
		return key == "progressToken" || strings.HasPrefix(key, "io.modelcontextprotocol/")
	})
	if progress {
		if added.Meta == nil {
			added.Meta = map[string]json.RawMessage{}
		}
		added.Meta["progressToken"] = strconv.AppendInt(nil, id, 10)
	}
	more, err := json.Marshal(added)
	if err != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "what a request carries besides is no JSON").WithCause(err)
	}
	return joined(params, more), nil
}

// joined is an object with the members of both; either may be empty.
func joined(a, b json.RawMessage) json.RawMessage {
	inner := func(o json.RawMessage) []byte {
		o = bytes.TrimSpace(o)
		if len(o) < 2 {
			return nil
		}
		return bytes.TrimSpace(o[1 : len(o)-1])
	}
	first, second := inner(a), inner(b)
	out := make([]byte, 0, len(first)+len(second)+3)
	out = append(append(out, '{'), first...)
	if len(first) > 0 && len(second) > 0 {
		out = append(out, ',')
	}
	return append(append(out, second...), '}')
}

// roundTrip sends one request and returns its result. params is nil or a valid JSON object; ctx has an end. client is who
// the request is made for, of whom a modern server is told; nil: nobody.
func (c *Conn) roundTrip(ctx context.Context, id int64, method string, params json.RawMessage, client Client) (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, c.contextError(ctx, method)
	}
	if len(params) > c.spec.Limits.Frame {
		return nil, vakerr.New(vakerr.TooLarge, "%s to server %q is larger than %d bytes", method, c.spec.Name, c.spec.Limits.Frame).
			WithRemedy("send less at a time")
	}
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	resp, err := c.link.send(ctx, c.frame(id, method, params, client))
	switch {
	case err == nil:
		c.touch()
		return c.result(method, resp)
	case ctx.Err() != nil && !errors.Is(err, transport.ErrTransportClosed):
		c.cancelRemote(id, method)
		return nil, c.contextError(ctx, method)
	}
	return nil, c.link.sendError(ctx, method, err)
}

// frame is the request of this era.
func (c *Conn) frame(id int64, method string, params json.RawMessage, client Client) transport.JSONRPCRequest {
	req := transport.JSONRPCRequest{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method}
	if c.hello.era == EraModern {
		params = c.modernParams(params, client)
		req.Header = c.modernHeader(method, params)
	}
	if params != nil {
		req.Params = params
	}
	return req
}

func (c *Conn) result(method string, resp *transport.JSONRPCResponse) (json.RawMessage, error) {
	if resp.Error != nil {
		var data json.RawMessage
		if resp.Error.Data != nil {
			data, _ = json.Marshal(resp.Error.Data)
		}
		return nil, c.rpcError(method, resp.Error.Code, resp.Error.Message, data)
	}
	switch {
	case len(resp.Result) > c.spec.Limits.Result:
		return nil, c.tooLarge(method)
	case len(resp.Result) == 0:
		return nil, vakerr.New(vakerr.ServerProtocol, "server %q answered %s with neither a result nor an error", c.spec.Name, method).
			WithRemedy("report it to the author of the server")
	case !utf8.Valid(resp.Result):
		return bytes.ToValidUTF8(resp.Result, []byte("\uFFFD")), nil
	}
	return resp.Result, nil
}

// cancelRemote tells the server that nobody waits for request id any more. A greeting must not be cancelled.
func (c *Conn) cancelRemote(id int64, method string) {
	if method != "initialize" {
		c.link.cancel(map[string]any{"requestId": id, "reason": "the caller gave up"})
	}
}
