package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// link is a transport under a Conn. Its methods may be called from any goroutine.
type link interface {
	// send sends a request and waits for its answer. The error is what went wrong below the protocol.
	send(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error)
	// sendError turns an error of send into the error of the request.
	sendError(ctx context.Context, method string, err error) error
	// initialized sends the notification of that name.
	initialized(ctx context.Context)
	// cancel tells the server that nobody waits for a request any more. It does not block.
	cancel(params map[string]any)
	// adopt fixes the protocol version of the requests that follow.
	adopt(version string)
	// listen begins to take what the server says of itself, if that needs a request of ours. It is called once.
	listen(era Era)
	// close ends the link and waits for all it owns.
	close(ctx context.Context) error
	// gone reports whether the process of the server has ended; the end of the connection follows. It does not block.
	gone() bool
	pid() int
	stderr() []byte
	junk() JunkStats
}

// Conn is one connection to one server. All methods may be called from any goroutine. See the package comment.
type Conn struct {
	spec   Spec
	redact *Redactor
	on     Handlers
	link   link

	// life ends with the connection; it bounds what the connection does on its own. It is stored because a Conn outlives
	// the context of Dial.
	life    context.Context //nolint:containedctx // see above
	endLife context.CancelFunc

	hello   hello // what the server said of itself; written by the handshake only
	started time.Time

	nextID   atomic.Int64
	inFlight atomic.Int64
	lastUsed atomic.Int64 // unix nanoseconds of the last answer
	suspect  atomic.Bool  // a request over HTTP failed below the protocol: ask before reuse

	calls calls        // those in flight that are made for somebody
	level atomic.Int32 // see raiseLevel

	mirroring atomic.Pointer[map[string]*mcp.Tool] // tools with arguments that headers repeat, as last listed

	endMu sync.Mutex // guards err and closing
	err   *vakerr.Error
	ended bool
	done  chan struct{} // closed by fail

	closeOnce sync.Once
	closeErr  error
	closed    chan struct{} // closed when Close has finished
}

// Dial starts the server of s, or reaches for it, and greets it. ctx and Spec.StartTimeout bound the greeting; neither
// bounds the life of the connection. On an error nothing is left running.
func Dial(ctx context.Context, s Spec, h Handlers) (*Conn, error) {
	s = s.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	c := newConn(s, h)
	var err error
	switch s.Transport {
	case Stdio:
		c.link, err = openStdio(c)
	case HTTP:
		c.link, err = openHTTP(c)
	case SSE:
		c.link, err = openSSE(ctx, c)
	default:
		err = vakerr.New(vakerr.ConfigInvalid, "server %q has no known transport", s.Name)
	}
	if err != nil {
		c.endLife()
		return nil, err
	}
	if err := c.greet(ctx); err != nil {
		refused := err
		err = c.startError(err)
		_ = c.shutdown(context.WithoutCancel(ctx), true) // what went wrong first is what counts
		if s.Transport == HTTP && s.Era != EraModern && unknownTransport(refused) {
			s.Transport = SSE
			if old, failure := Dial(ctx, s, h); failure == nil {
				return old, nil
			}
		}
		return nil, err
	}
	c.touch()
	return c, nil
}

// unknownTransport reports whether a server refused a greeting over Streamable HTTP as one would that speaks HTTP+SSE only.
func unknownTransport(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return false
	}
	switch s.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusLengthRequired:
		return true
	}
	return false
}

// Connect is Dial, ListTools and ListFeatures under one Spec.StartTimeout. On an error nothing is left running.
func Connect(ctx context.Context, s Spec, h Handlers) (*Conn, Catalog, Features, error) {
	ctx, cancel := context.WithTimeout(ctx, s.withDefaults().StartTimeout)
	defer cancel()
	c, err := Dial(ctx, s, h)
	if err != nil {
		return nil, Catalog{}, Features{}, err
	}
	catalog, err := c.ListTools(ctx)
	if err != nil {
		err = c.startError(err)
		_ = c.shutdown(context.WithoutCancel(ctx), true) // what went wrong first is what counts
		return nil, Catalog{}, Features{}, err
	}
	return c, catalog, c.ListFeatures(ctx), nil
}

func newConn(s Spec, h Handlers) *Conn {
	c := &Conn{
		spec: s, redact: specRedactor(s), on: h, started: time.Now(),
		calls: calls{byID: map[int64]*activeCall{}}, done: make(chan struct{}), closed: make(chan struct{}),
	}
	c.life, c.endLife = context.WithCancel(context.Background())
	return c
}

// Done is closed when the connection can carry no further request, for whatever reason.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: nil before Done, vakerr.ServerStopped after Close, else what happened to the server.
func (c *Conn) Err() error {
	c.endMu.Lock()
	defer c.endMu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// fail ends the connection. The first reason counts.
func (c *Conn) fail(err *vakerr.Error) {
	c.endMu.Lock()
	defer c.endMu.Unlock()
	if !c.ended {
		c.ended, c.err = true, err
		close(c.done)
	}
}

// Close ends the connection: a server process is asked to end and killed if it does not (see Limits.Grace), a session is
// given back. Requests in flight may still be answered meanwhile; then they fail. The end of ctx shortens the graces.
// Close returns when nothing of the connection is left, and may be called again.
func (c *Conn) Close(ctx context.Context) error { return c.shutdown(ctx, false) }

// shutdown is Close; with force, the process gets no grace.
func (c *Conn) shutdown(ctx context.Context, force bool) error {
	if force {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	c.closeOnce.Do(func() {
		defer close(c.closed)
		c.fail(vakerr.New(vakerr.ServerStopped, "the connection to server %q was closed", c.spec.Name).
			WithRemedy("repeat the request; the server is started again on demand"))
		c.endLife()
		c.closeErr = c.link.close(ctx)
	})
	<-c.closed
	return c.closeErr
}

// Alive reports whether the connection can be used: nil, or why not. A dead process is known without asking. The server is
// asked only if the last request over HTTP failed below the protocol, or if nothing was heard of it for Limits.IdleCheck and nothing
// is in flight; then the question is bounded by ctx and by 5 s. A server that turns out dead ends the connection.
func (c *Conn) Alive(ctx context.Context) error {
	if c.link.gone() {
		select {
		case <-c.done: // with the reason
		case <-ctx.Done():
			return c.contextError(ctx, "ping")
		}
	}
	if err := c.Err(); err != nil {
		return err
	}
	idle := time.Since(time.Unix(0, c.lastUsed.Load()))
	if !c.suspect.Load() && (idle < c.spec.Limits.IdleCheck || c.inFlight.Load() > 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	method := "ping"
	if c.hello.era == EraModern {
		method = "server/discover"
	}
	_, err := c.Request(ctx, method, nil, CallOptions{})
	switch vakerr.CodeOf(err) {
	case "", vakerr.ServerRejected: // a server that does not know the question is alive
		return nil
	case vakerr.Canceled:
		return err
	default: // it does not answer as a live one does
	}
	c.fail(vakerr.New(vakerr.ServerDied, "server %q does not answer", c.spec.Name).
		WithRemedy("repeat the request; the server is connected again").WithCause(err))
	return c.Err()
}

const aliveTimeout = 5 * time.Second

// touch notes that the server was heard of.
func (c *Conn) touch() {
	c.lastUsed.Store(time.Now().UnixNano())
	c.suspect.Store(false)
}

// Info describes a connection for status displays. It holds no secrets.
type Info struct {
	Name          string // of the Spec
	ServerName    string
	ServerVersion string
	Protocol      string // the version the server named; it need not be one we know
	Era           Era
	Instructions  string // at most 64 KiB
	Capabilities  json.RawMessage
	PID           int // 0 over HTTP
	Started       time.Time
	LastUsed      time.Time
	InFlight      int
	StderrTail    string
	Junk          JunkStats
}

// Info returns the present state.
func (c *Conn) Info() Info {
	return Info{
		Name: c.spec.Name, ServerName: c.hello.name, ServerVersion: c.hello.version, Protocol: c.hello.protocol,
		Era: c.hello.era, Instructions: c.hello.instructions, Capabilities: c.hello.capabilities,
		PID: c.link.pid(), Started: c.started, LastUsed: time.Unix(0, c.lastUsed.Load()), InFlight: int(c.inFlight.Load()),
		StderrTail: c.redactStderr(c.link.stderr()), Junk: c.link.junk(),
	}
}

// redactStderr is the kept stderr without secrets. If the ring is full, its first line is cut and could hold the rest of a
// secret that cannot be recognised any more, so it is left out.
func (c *Conn) redactStderr(kept []byte) string {
	text := string(kept)
	if len(text) >= c.spec.Limits.Stderr {
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.ToValidUTF8(c.redact.String(text), "?")
}
