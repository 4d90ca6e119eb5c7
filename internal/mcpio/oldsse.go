package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// sseLink speaks the HTTP+SSE transport of 2024-11-05: one stream by which everything comes, and an address that the stream
// names first, to which everything is posted. When the stream ends, so does the connection.
type sseLink struct {
	c      *Conn
	base   *http.Transport
	client *http.Client
	reply  *responder
	post   string // the address that was named; same host as the stream

	mu    sync.Mutex // guards what follows
	open  map[int64]chan *transport.JSONRPCResponse
	ended bool
	owned sync.WaitGroup
}

var _ link = (*sseLink)(nil)

var errNoEndpoint = errors.New("the stream names no address for messages first")

// openSSE opens the stream and waits for the address. ctx bounds the wait.
func openSSE(ctx context.Context, c *Conn) (*sseLink, error) {
	at, err := url.Parse(c.spec.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, vakerr.New(vakerr.ConfigInvalid, "the URL of server %q is no http or https URL", c.spec.Name).
			WithRemedy("correct its url").WithCause(err)
	}
	l := &sseLink{c: c, base: newBase(), open: map[int64]chan *transport.JSONRPCResponse{}}
	l.client = &http.Client{
		Transport:     &gate{base: l.base, headers: c.spec.Headers, max: c.spec.Limits.Frame, to: func(int64) router { return routed{c, l.reply, 0} }},
		CheckRedirect: sameHost,
	}
	l.reply = newResponder(c, func(frame []byte) { //nolint:contextcheck // an answer belongs to the connection
		ctx, cancel := context.WithTimeout(c.life, noticeTimeout)
		defer cancel()
		_ = l.write(ctx, frame) // the server waits for its own deadline
	})
	req, err := http.NewRequestWithContext(c.life, http.MethodGet, c.spec.URL, http.NoBody) //nolint:contextcheck // so does the stream
	if err != nil {
		return nil, vakerr.From(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	type opened struct {
		resp *http.Response
		err  error
	}
	got := make(chan opened, 1)
	go func() {
		resp, err := l.client.Do(req)
		got <- opened{resp, err}
	}()
	var o opened
	select {
	case o = <-got:
	case <-ctx.Done():
		c.endLife() // so that the request ends
		if o = <-got; o.err == nil {
			_ = o.resp.Body.Close()
		}
		return nil, c.contextError(ctx, "the stream")
	}
	if o.err != nil {
		l.base.CloseIdleConnections()
		return nil, vakerr.New(vakerr.ServerDied, "server %q cannot be reached at %s", c.spec.Name, c.redact.String(at.Host)).
			WithRemedy("check that the server runs and that its url is right").WithCause(o.err)
	}
	return l, l.begin(ctx, at, o.resp)
}

// begin reads the address and leaves the rest of the stream to a goroutine.
func (l *sseLink) begin(ctx context.Context, at *url.URL, resp *http.Response) error {
	fail := func(err error) error {
		_ = resp.Body.Close()
		l.base.CloseIdleConnections()
		return err
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return fail(l.c.statusError("the stream", &StatusError{Status: resp.StatusCode, Challenge: oneLine(l.c.redact.String(resp.Header.Get("WWW-Authenticate")), maxErrorText)}))
	case resp.StatusCode != http.StatusOK || !isEventStream(resp):
		return fail(l.noEndpoint(fmt.Errorf("HTTP status %d", resp.StatusCode)))
	}
	events := newEventReader(resp.Body, l.c.spec.Limits.Frame)
	stop := context.AfterFunc(ctx, func() { _ = resp.Body.Close() })
	first, err := events.next()
	for err == nil && first.name == "" && len(first.data) == 0 { // a comment
		first, err = events.next()
	}
	if !stop() || err != nil {
		return fail(l.noEndpoint(err))
	}
	to, err := at.Parse(string(first.data))
	if first.name != "endpoint" || err != nil || to.Host != at.Host || to.Scheme != at.Scheme {
		return fail(l.noEndpoint(errNoEndpoint)) // another host would get the credentials of this one
	}
	l.post = to.String()
	l.owned.Go(func() { l.read(events, resp.Body) })
	l.owned.Go(func() { l.reply.run(l.c.life) })
	return nil
}

func (l *sseLink) noEndpoint(cause error) error {
	return vakerr.New(vakerr.ServerProtocol, "server %q does not speak HTTP+SSE at its url", l.c.spec.Name).
		WithRemedy("give the address of its stream, which often ends in /sse, or its Streamable HTTP address").WithCause(cause)
}

// read hands out what comes until the stream ends.
func (l *sseLink) read(events *eventReader, body io.ReadCloser) {
	stop := context.AfterFunc(l.c.life, func() { _ = body.Close() })
	defer func() { stop(); _ = body.Close() }()
	for {
		e, err := events.next()
		if err != nil {
			l.end(err)
			return
		}
		if !e.route(routed{l.c, l.reply, 0}) {
			l.answered(e.data)
		}
	}
}

// end fails what waits for an answer that cannot come any more.
func (l *sseLink) end(cause error) {
	l.c.fail(vakerr.New(vakerr.ServerDied, "server %q ended the stream", l.c.spec.Name).
		WithRemedy("repeat the request; the server is connected again").WithCause(cause))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for id, c := range l.open {
		close(c)
		delete(l.open, id)
	}
}

func (l *sseLink) answered(data []byte) {
	var resp transport.JSONRPCResponse
	var id struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(data, &resp) != nil || json.Unmarshal(data, &id) != nil {
		return
	}
	number, err := strconv.ParseInt(string(numericID(id.ID)), 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[number]; c != nil {
		delete(l.open, number)
		c <- &resp
	}
}

func (l *sseLink) send(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	id, _ := req.ID.Value().(int64) // all of ours are
	frame, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	answer := make(chan *transport.JSONRPCResponse, 1)
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil, &exchangeError{cause: io.EOF}
	}
	l.open[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, id)
	}()
	if err := l.write(ctx, frame); err != nil {
		return nil, err
	}
	select {
	case resp, ok := <-answer:
		if !ok {
			return nil, &exchangeError{cause: io.EOF, sent: true}
		}
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// write posts one message.
func (l *sseLink) write(ctx context.Context, frame []byte) error {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { sent.Store(info.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.post, bytes.NewReader(frame))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return &exchangeError{cause: err, sent: sent.Load()}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection is used again
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return &StatusError{Status: resp.StatusCode}
	}
	return nil
}

func (l *sseLink) sendError(_ context.Context, method string, err error) error {
	var status *StatusError
	var below *exchangeError
	switch {
	case errors.As(err, &status) && status.Status == http.StatusNotFound:
		l.c.fail(vakerr.New(vakerr.ServerDied, "server %q has ended the session", l.c.spec.Name).
			WithRemedy("repeat the request; the server is connected again"))
		return l.c.Err()
	case errors.As(err, &status):
		return l.c.statusError(method, status)
	case errors.As(err, &below):
		death := l.c.Err()
		if death == nil {
			death = vakerr.New(vakerr.ServerDied, "server %q does not take messages", l.c.spec.Name).
				WithRemedy("repeat the request").WithCause(below.cause)
		}
		return l.c.lostError(method, below.sent, vakerr.From(death))
	}
	return vakerr.From(err)
}

func (l *sseLink) notify(method string, params map[string]any) {
	frame, err := json.Marshal(notification(method, params))
	if err != nil {
		return
	}
	l.reply.reply(frame)
}

func (l *sseLink) initialized(context.Context) { l.notify("notifications/initialized", nil) }

func (l *sseLink) cancel(params map[string]any) { l.notify("notifications/cancelled", params) }

func (l *sseLink) adopt(string) {}

func (l *sseLink) listen(Era) {}

func (l *sseLink) close(context.Context) error {
	l.owned.Wait() // the life of the connection has ended, and the stream with it
	l.base.CloseIdleConnections()
	return nil
}

func (l *sseLink) gone() bool      { return false }
func (l *sseLink) pid() int        { return 0 }
func (l *sseLink) stderr() []byte  { return nil }
func (l *sseLink) junk() JunkStats { return JunkStats{} }
