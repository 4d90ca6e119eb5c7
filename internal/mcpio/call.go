package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// CallOptions are the optional parts of a call. The zero value is a plain call.
type CallOptions struct {
	// Meta is the _meta object to send. A progressToken in it is replaced or removed: tokens belong to the connection.
	Meta json.RawMessage
	// OnProgress gets the params of each progress notification of this call, in order; their progressToken is ours. It is
	// called from the read loop and must only post. It is not called after CallTool has returned.
	OnProgress func(params json.RawMessage)
	// Timeout replaces Spec.CallTimeout if it is not 0.
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
	id := c.nextID.Add(1)
	meta, err := callMeta(opt, id)
	if err != nil {
		return nil, err
	}
	if opt.OnProgress != nil {
		defer c.onProgress(id, opt.OnProgress)()
	}
	params, err := callParams(name, args, meta)
	if err != nil {
		return nil, err
	}
	timeout := opt.Timeout
	orDuration(&timeout, c.spec.CallTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.roundTrip(ctx, id, "tools/call", params)
}

// Request sends any request and returns the raw result. params is a JSON object or empty.
//
// Errors: vakerr.ServerRejected (an RPCError is in the chain), ServerProtocol, TooLarge, DeadlineExceeded, Canceled,
// QueueFull (the server does not read), Unauthenticated (a StatusError is in the chain), ServerDied and, after Close,
// ServerStopped.
func (c *Conn) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if len(params) > 0 && !isObject(params) {
		return nil, vakerr.New(vakerr.InvalidRequest, "the params of %s are no JSON object", method)
	}
	ctx, cancel := context.WithTimeout(ctx, c.spec.CallTimeout)
	defer cancel()
	return c.roundTrip(ctx, c.nextID.Add(1), method, params)
}

// callParams puts parts that are valid JSON together, without reading them again.
func callParams(name string, args, meta json.RawMessage) (json.RawMessage, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "the name of the tool cannot be written as JSON").WithCause(err)
	}
	out := make([]byte, 0, len(quoted)+len(args)+len(meta)+40)
	out = append(append(out, `{"name":`...), quoted...)
	if len(args) > 0 {
		out = append(append(out, `,"arguments":`...), args...)
	}
	if len(meta) > 0 {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}'), nil
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(raw)
}

// callMeta is the _meta of a call: that of the options, with the token of this connection or none.
func callMeta(opt CallOptions, id int64) (json.RawMessage, error) {
	if len(opt.Meta) == 0 && opt.OnProgress == nil {
		return nil, nil
	}
	meta := map[string]json.RawMessage{}
	if len(opt.Meta) > 0 {
		if err := json.Unmarshal(opt.Meta, &meta); err != nil || meta == nil {
			return nil, vakerr.New(vakerr.InvalidRequest, "_meta is no JSON object").WithCause(err)
		}
	}
	delete(meta, "progressToken")
	if opt.OnProgress != nil {
		meta["progressToken"] = strconv.AppendInt(nil, id, 10)
	}
	return json.Marshal(meta)
}

// onProgress routes the progress of request id to f until the returned function is called.
func (c *Conn) onProgress(id int64, f func(json.RawMessage)) (stop func()) {
	token := strconv.FormatInt(id, 10)
	c.progressMu.Lock()
	defer c.progressMu.Unlock()
	c.progress[token] = f
	return func() {
		c.progressMu.Lock()
		defer c.progressMu.Unlock()
		delete(c.progress, token)
	}
}

// roundTrip sends one request and returns its result. params is nil or a valid JSON object; ctx has a deadline.
func (c *Conn) roundTrip(ctx context.Context, id int64, method string, params json.RawMessage) (json.RawMessage, error) {
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
	resp, err := c.link.send(ctx, c.frame(id, method, params))
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
func (c *Conn) frame(id int64, method string, params json.RawMessage) transport.JSONRPCRequest {
	req := transport.JSONRPCRequest{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Method: method}
	if c.hello.era == EraModern {
		params = c.modernParams(params)
		req.Header = modernHeader(method, params)
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
