package mcpio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// deleteTimeout bounds giving a session back.
const deleteTimeout = 2 * time.Second

var errBodyTooLarge = errors.New("the body is too large")

// exchange is what the gate saw of one request; it travels in the context, since mcp-go keeps the status to itself.
type exchange struct {
	call   int64              // id of the request
	cancel context.CancelFunc // ends the request

	elsewhere *transport.JSONRPCResponse // the answer, where it came on another stream; guarded by httpLink.mu

	sent atomic.Bool // the request was written completely
	over atomic.Bool // the answer was too large; mcp-go does not pass on why reading a stream failed

	mu        sync.Mutex // guards the fields below
	status    int        // of a refusal; 0 if it was none
	body      []byte
	challenge string
}

type exchangeKey struct{}

func (e *exchange) refuse(status int, body []byte, challenge string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.body, e.challenge = status, body, challenge
}

func (e *exchange) refusal() (status int, body []byte, challenge string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status, e.body, e.challenge
}

// gate is the http.RoundTripper under one connection. It adds the configured headers, notes refusals, bounds bodies, and
// takes notifications and requests of the server out of the streams that mcp-go reads.
type gate struct {
	base    http.RoundTripper
	headers map[string]string
	max     int // bytes of a message
	to      func(callID int64) router
}

// RoundTrip implements http.RoundTripper.
func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if req.Method == http.MethodDelete {
		ctx, cancel = context.WithTimeout(ctx, deleteTimeout)
	}
	defer cancel()
	req = req.Clone(ctx)
	for name, value := range g.headers {
		req.Header.Set(name, value)
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return g.refused(req, resp), nil
	}
	if req.Method == http.MethodGet && req.Context().Value(exchangeKey{}) == nil {
		return resp, nil // our own stream, which bounds and routes what it reads
	}
	ex, noted := req.Context().Value(exchangeKey{}).(*exchange)
	callID := int64(0)
	if noted {
		callID = ex.call
	}
	if isEventStream(resp) {
		resp.Body = newEventFilter(resp.Body, g.max, g.to(callID))
	} else {
		resp.Body = &boundedBody{body: resp.Body, left: g.max}
	}
	if noted {
		resp.Body = &notedBody{ReadCloser: resp.Body, ex: ex}
	}
	return resp, nil
}

// notedBody tells the exchange when the body turned out too large.
type notedBody struct {
	io.ReadCloser
	ex *exchange
}

func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, errBodyTooLarge) {
		b.ex.over.Store(true)
	}
	return n, err
}

// refused notes a refusal for the sender of the request and keeps its body readable.
func (g *gate) refused(req *http.Request, resp *http.Response) *http.Response {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if ex, ok := req.Context().Value(exchangeKey{}).(*exchange); ok {
		ex.refuse(resp.StatusCode, body, resp.Header.Get("WWW-Authenticate"))
	}
	return resp
}

// boundedBody fails with errBodyTooLarge where io.LimitReader would pretend that the body ends.
type boundedBody struct {
	body io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		n, err := b.body.Read(make([]byte, 1))
		if n > 0 {
			return 0, errBodyTooLarge
		}
		return 0, err
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
