package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	noticeTimeout = 5 * time.Second // for a notification or an answer of ours
	maxErrorBody  = 64 << 10        // bytes of the body of a refusal
)

// httpLink runs mcp-go's Streamable HTTP transport on a gate of ours. It has a http.Transport of its own, so that closing it
// leaves no connection of this server behind and touches none of another.
type httpLink struct {
	c       *Conn
	base    *http.Transport
	client  *http.Client
	tr      *transport.StreamableHTTP
	reply   *responder
	version atomic.Value // string; of the protocol, "" before it is agreed

	mu      sync.Mutex // guards what follows; nothing is spawned while close waits
	closing bool
	open    map[int64]*exchange // requests without an answer
	owned   sync.WaitGroup
}

var _ link = (*httpLink)(nil)

func openHTTP(c *Conn) (*httpLink, error) {
	u, err := url.Parse(c.spec.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, vakerr.New(vakerr.ConfigInvalid, "the URL of server %q is no http or https URL", c.spec.Name).
			WithRemedy("correct its url").WithCause(err)
	}
	l := &httpLink{c: c, base: newBase(), open: map[int64]*exchange{}}
	l.version.Store("")
	l.client = &http.Client{
		Transport: &gate{base: l.base, headers: c.spec.Headers, max: c.spec.Limits.Frame, to: l.router}, CheckRedirect: sameHost,
	}
	l.tr, err = transport.NewStreamableHTTP(c.spec.URL,
		transport.WithHTTPBasicClient(l.client), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, vakerr.New(vakerr.ConfigInvalid, "the URL of server %q cannot be used", c.spec.Name).
			WithRemedy("correct its url").WithCause(err)
	}
	l.reply = newResponder(c, l.post)
	l.spawn(func() { l.reply.run(c.life) })
	return l, nil
}

func newBase() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

var errRedirect = errors.New("redirect to elsewhere")

// sameHost allows a redirect within the host that keeps the method. Anything else would carry credentials to a stranger, or
// lose the body.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	upgraded := req.URL.Scheme == first.URL.Scheme || req.URL.Scheme == "https"
	if len(via) > 3 || req.URL.Host != first.URL.Host || !upgraded || req.Method != first.Method {
		return errRedirect
	}
	return nil
}

// spawn runs f as a goroutine of the link; not once the link is closing.
func (l *httpLink) spawn(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closing {
		l.owned.Go(f)
	}
}

func (l *httpLink) send(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	id, _ := req.ID.Value().(int64) // all of ours are
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ex := &exchange{call: id, cancel: cancel}
	l.begin(ex)
	defer l.end(ex)
	ctx = context.WithValue(ctx, exchangeKey{}, ex)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { ex.sent.Store(info.Err == nil) },
	})
	session := l.tr.GetSessionId()
	resp, err := l.tr.SendRequest(ctx, req)
	status, body, challenge := ex.refusal()
	switch elsewhere := l.end(ex); {
	case elsewhere != nil && err != nil:
		return elsewhere, nil
	case status != 0:
		return l.refused(status, body, challenge, session)
	case err != nil && ex.over.Load():
		return nil, errBodyTooLarge
	case err != nil:
		return nil, &exchangeError{cause: err, sent: ex.sent.Load()}
	case session != "" && resp.Error != nil && resp.Error.Code == codeNoSession && strings.Contains(strings.ToLower(resp.Error.Message), "session"):
		return nil, errSessionLost // some say so with status 200
	}
	return resp, nil
}

func (l *httpLink) begin(ex *exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[ex.call] = ex
}

// end forgets an exchange and returns the answer that came on another stream; nil for none.
func (l *httpLink) end(ex *exchange) *transport.JSONRPCResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, ex.call)
	return ex.elsewhere
}

// answered takes an answer that came on the standing stream: a server that closed the stream of a request may answer there.
func (l *httpLink) answered(data []byte) {
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
	if ex := l.open[number]; ex != nil && ex.elsewhere == nil {
		ex.elsewhere = &resp
		ex.cancel()
	}
}

// refused makes of a status what it means: an error response where the body is one, the end of the session, or a refusal.
func (l *httpLink) refused(status int, body []byte, challenge, session string) (*transport.JSONRPCResponse, error) {
	var resp transport.JSONRPCResponse
	answered := json.Unmarshal(body, &resp) == nil && resp.Error != nil && resp.Error.Code != 0
	says := bytes.Contains(bytes.ToLower(body), []byte("session"))
	if answered && status != http.StatusNotFound && resp.Error.Code != codeNoSession && resp.Error.Code != codeInvalidRequest && resp.Error.Code != -32000 {
		says = false // an error about something else that has a session in it
	}
	gone := status == http.StatusNotFound || says && (status == http.StatusBadRequest || status == http.StatusUnauthorized && challenge == "")
	switch {
	case session != "" && gone && status == http.StatusUnauthorized:
		return nil, errSessionLost
	case status == http.StatusUnauthorized || status == http.StatusForbidden: // whatever the body says
	case answered && resp.Error.Code == codeMethodNotFound:
		return &resp, nil
	case session != "" && gone: // some say so in a JSON-RPC error as well
		return nil, errSessionLost
	case answered:
		return &resp, nil
	}
	return nil, &StatusError{Status: status, Challenge: oneLine(l.c.redact.String(challenge), maxErrorText)}
}

var errSessionLost = errors.New("the server does not know the session any more")

// exchangeError is a failure below HTTP.
type exchangeError struct {
	cause error
	sent  bool // the request was written
}

func (e *exchangeError) Error() string { return e.cause.Error() }
func (e *exchangeError) Unwrap() error { return e.cause }

func (l *httpLink) sendError(_ context.Context, method string, err error) error {
	var status *StatusError
	var below *exchangeError
	switch {
	case errors.As(err, &status):
		return l.c.statusError(method, status)
	case errors.Is(err, errSessionLost):
		l.c.fail(l.sessionLost())
		return l.sessionLost() // a request of an unknown session is not carried out
	case errors.Is(err, errRedirect):
		return vakerr.New(vakerr.ServerProtocol, "server %q redirects to another address", l.c.spec.Name).
			WithRemedy("check where it redirects to, and set its url to that").WithCause(err)
	case errors.Is(err, errBodyTooLarge):
		return l.c.tooLarge(method)
	case errors.As(err, &below):
		l.c.suspect.Store(true)
		return l.c.lostError(method, below.sent, l.death(below))
	}
	return vakerr.From(err)
}

func (l *httpLink) sessionLost() *vakerr.Error {
	return vakerr.New(vakerr.ServerDied, "server %q has ended the session", l.c.spec.Name).
		WithRemedy("repeat the request; the server is connected again")
}

// death is why a request got no answer.
func (l *httpLink) death(e *exchangeError) *vakerr.Error {
	if ended := l.c.Err(); ended != nil {
		return vakerr.From(ended)
	}
	what := "cannot be reached at"
	if e.sent {
		what = "gave no complete answer from"
	}
	host := l.c.spec.URL
	if u, err := url.Parse(host); err == nil {
		host = u.Host // a URL may hold credentials
	}
	return vakerr.New(vakerr.ServerDied, "server %q %s %s", l.c.spec.Name, what, l.c.redact.String(host)).
		WithRemedy("check that the server runs and that its url is right").WithCause(e.cause)
}

func (l *httpLink) initialized(ctx context.Context) {
	// Servers refuse this one for all kinds of reasons and work all the same.
	_ = l.tr.SendNotification(ctx, notification("notifications/initialized", nil))
}

// cancel: a modern server takes the end of the exchange as the cancellation.
func (l *httpLink) cancel(params map[string]any) {
	if l.c.hello.era == EraModern {
		return
	}
	l.spawn(func() {
		ctx, cancel := context.WithTimeout(l.c.life, noticeTimeout)
		defer cancel()
		_ = l.tr.SendNotification(ctx, notification("notifications/cancelled", params)) // the call has failed anyway
	})
}

func (l *httpLink) adopt(version string) {
	l.version.Store(version)
	l.tr.SetProtocolVersion(version)
}

func (l *httpLink) listen(era Era) {
	if era == EraModern {
		l.spawn(l.c.subscribe)
		return
	}
	s := &stream{l: l, tried: make(chan struct{})}
	l.spawn(func() { l.c.listen(s.attempt) })
	await(s.tried, streamWait)
}

// streamWait is how long a connection waits for its standing stream before its first request: what the server tells in
// between is heard, and no stream can be taken for that of a request. Some servers answer only with their first event.
const streamWait = 250 * time.Millisecond

// post sends a message of ours that is no request.
func (l *httpLink) post(frame []byte) {
	ctx, cancel := context.WithTimeout(l.c.life, noticeTimeout)
	defer cancel()
	req, err := l.request(ctx, http.MethodPost, bytes.NewReader(frame))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if resp, err := l.client.Do(req); err == nil {
		_ = resp.Body.Close()
	}
}

func (l *httpLink) request(ctx context.Context, method string, body *bytes.Reader) (*http.Request, error) {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.c.spec.URL, body)
	if err != nil {
		return nil, err
	}
	if session := l.tr.GetSessionId(); session != "" {
		req.Header.Set(transport.HeaderKeySessionID, session)
	}
	if version, _ := l.version.Load().(string); version != "" {
		req.Header.Set(transport.HeaderKeyProtocolVersion, version)
	}
	return req, nil
}

func (l *httpLink) close(context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	_ = l.tr.Close() // gives the session back, within deleteTimeout
	l.owned.Wait()
	l.base.CloseIdleConnections()
	return nil
}

func (l *httpLink) gone() bool      { return false }
func (l *httpLink) pid() int        { return 0 }
func (l *httpLink) stderr() []byte  { return nil }
func (l *httpLink) junk() JunkStats { return JunkStats{} }

func isEventStream(resp *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream")
}

// router takes what comes on the stream that answers a call; on a stream of no call for 0.
func (l *httpLink) router(callID int64) router { return routed{l.c, l.reply, callID} }
