package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// BridgeOptions configure Bridge. Client and URL are required.
type BridgeOptions struct {
	Client *http.Client // reaches the daemon, for instance over its unix socket; without a Timeout
	URL    string       // of the endpoint, as http://vak/mcp/default?surface=full
	Header http.Header  // added to each request, for instance Authorization
	Log    *slog.Logger // nil: nothing is logged

	// ClaudeSession is the environment's CLAUDE_CODE_SESSION_ID, see SessionKey.
	ClaudeSession string

	Drain    time.Duration // what requests in flight get when the input ends; default 10 s
	Patience time.Duration // how long a request waits for a daemon that does not answer; default 30 s
}

// Bridge carries MCP between a client's pipes and the Handler of a daemon, until the input ends, the client stops reading,
// or ctx ends. It survives a restart of the daemon: it repeats the client's initialize, asks again what the daemon cannot
// have done, and tells the client that its list may have changed. A call that was under way is answered with
// outcome_unknown. Errors: canceled when a pipe fails, deadline_exceeded when the client does not read.
func Bridge(ctx context.Context, in io.Reader, out io.Writer, o BridgeOptions) error {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &bridge{
		o: o, key: SessionKey(o.ClaudeSession), out: newLineWriter(out),
		linked: make(chan struct{}), calls: map[string]bool{}, closers: map[string]closer{},
	}
	p := newPipe(in, b.out, o.Drain)
	p.left = b.endSubscriptions
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var listener sync.WaitGroup
	listener.Go(func() { b.listen(running) })
	err := p.run(ctx, func(raw []byte) { b.take(running, p, raw) })
	b.end(ctx)
	cancel()
	listener.Wait()
	return errors.Join(err, p.finish())
}

// bridge is one client's way to the daemon.
type bridge struct {
	o      BridgeOptions
	key    string // of the runtime's session: the same for every life of the daemon
	out    *lineWriter
	linked chan struct{} // closed with the first link

	reconnecting sync.Mutex // held while the handshake is repeated, so that one request does it for all

	mu         sync.Mutex // guards what follows
	initialize []byte     // the client's, as it came
	link       link
	calls      map[string]bool   // requests under way, by id; true: the client cancelled it
	closers    map[string]closer // of those of the era without sessions
}

// link is one MCP session with the daemon.
type link struct {
	session string // Mcp-Session-Id
	version string // negotiated
	number  int    // links so far; 0: none yet

	stated http.Header // what a request of the era without sessions says in headers, too
}

func (b *bridge) current() link {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link
}

// take handles one frame of the client. The handshake and notifications are carried in their order, everything else side
// by side.
func (b *bridge) take(ctx context.Context, p *pipe, raw []byte) {
	m, bad := decode(raw)
	switch {
	case bad != nil:
		b.out.write(bad.frame(m.ID))
	case len(raw) > DefaultMaxBody:
		b.out.write(failure(vakerr.New(vakerr.TooLarge, "the message is larger than the %d bytes a daemon takes", DefaultMaxBody)).frame(m.ID))
	case !m.request():
		if !b.closes(m) {
			b.notify(ctx, m, raw)
		}
	case modernRequest(nil, m):
		b.stateless(ctx, p, m, raw)
	case m.Method == string(mcp.MethodInitialize):
		b.handshake(ctx, m, raw)
	default:
		b.mu.Lock()
		b.calls[string(m.ID)] = false
		b.mu.Unlock()
		p.do(func() { b.answer(m.ID, b.carry(ctx, m, raw)) })
	}
}

// answer writes the answer to a request, unless its client cancelled it.
func (b *bridge) answer(id json.RawMessage, frame []byte) {
	b.mu.Lock()
	cancelled := b.calls[string(id)]
	delete(b.calls, string(id))
	b.mu.Unlock()
	if !cancelled && frame != nil {
		b.out.write(frame)
	}
}

// handshake carries the client's initialize.
func (b *bridge) handshake(ctx context.Context, m message, raw []byte) {
	b.mu.Lock()
	b.initialize = raw
	b.mu.Unlock()
	patience, cancel := context.WithTimeout(ctx, b.o.Patience)
	defer cancel()
	answer, err := b.connect(patience, m.ID, raw)
	if err != nil {
		answer = failure(err).frame(m.ID)
	}
	b.out.write(answer)
}

// notifyTime bounds how long a notification may hold up what follows it.
const notifyTime = 5 * time.Second

// notify carries a notification once. One that is lost with its daemon concerned what was lost, too.
func (b *bridge) notify(ctx context.Context, m message, raw []byte) {
	if m.Method == string(mcp.MethodNotificationCancelled) {
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		b.mu.Lock()
		if _, under := b.calls[string(p.ID)]; under {
			b.calls[string(p.ID)] = true
		}
		b.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	if _, err := b.post(ctx, raw, b.current(), nil); err != nil {
		b.o.Log.Debug("a notification was not delivered", "method", m.Method, "error", err)
	}
}

// carry has the daemon answer a request and returns the answer.
func (b *bridge) carry(ctx context.Context, m message, raw []byte) []byte {
	patience, cancel := context.WithTimeout(ctx, b.o.Patience)
	defer cancel()
	for pause := time.Duration(0); ; {
		at := b.current()
		reply, err := b.post(ctx, raw, at, m.ID)
		switch {
		case err == nil:
			return reply.frame
		case errors.Is(err, errNoSession):
			err = b.reconnect(ctx, patience, at)
			if err == nil {
				continue
			}
		case reply.begun && m.Method == string(mcp.MethodToolsCall):
			return resultFrame(m.ID, op.Failure(errUnknown).Content)
		}
		if !retryable(err) || !sleep(patience, &pause) {
			return failure(err).frame(m.ID)
		}
	}
}

var errUnknown = vakerr.New(vakerr.OutcomeUnknown, "the connection to the daemon broke off while the call was under way").
	WithRemedy("find out whether it had its effect before repeating it")

// retryable reports whether a daemon that comes back may answer.
func retryable(err error) bool {
	switch vakerr.CodeOf(err) {
	case vakerr.DaemonUnreachable, vakerr.ShuttingDown:
		return true
	default:
		return false
	}
}

// sleep waits before the next attempt, longer each time; false when ctx ended.
func sleep(ctx context.Context, pause *time.Duration) bool {
	*pause = min(max(2*(*pause), 20*time.Millisecond), time.Second)
	t := time.NewTimer(*pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// connect sends the client's initialize and returns the daemon's answer. There is a new link unless that is an error.
func (b *bridge) connect(ctx context.Context, id json.RawMessage, initialize []byte) ([]byte, error) {
	for pause := time.Duration(0); ; {
		reply, err := b.post(ctx, initialize, link{}, id)
		if err == nil {
			b.establish(reply)
			return reply.frame, nil
		}
		if !retryable(err) || !sleep(ctx, &pause) {
			return nil, err
		}
	}
}

func (b *bridge) establish(r reply) {
	if r.session == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.link.number == 0 {
		close(b.linked)
	}
	b.link = link{session: r.session, version: versionOf(r.frame), number: b.link.number + 1}
}

func versionOf(initialized []byte) string {
	var in struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	_ = json.Unmarshal(initialized, &in)
	return in.Result.Version
}

// reconnect replaces the link that was lost, once for all who lost it, and tells the client to list again: the daemon that
// came back may know other tools.
func (b *bridge) reconnect(ctx, patience context.Context, lost link) error {
	b.reconnecting.Lock()
	defer b.reconnecting.Unlock()
	b.mu.Lock()
	known, initialize := b.link, b.initialize
	b.mu.Unlock()
	switch {
	case known.number != lost.number:
		return nil
	case initialize == nil:
		return errNeedsSession
	}
	if _, err := b.connect(patience, nil, initialize); err != nil {
		return err
	}
	if b.current().number == known.number {
		return errAway // it answers, and does not let us in
	}
	if _, err := b.post(ctx, initialized, b.current(), nil); err != nil {
		return err
	}
	for _, kind := range []string{listTools, listPrompts, listResources} {
		b.out.write(changedFrame(kind))
	}
	return nil
}

var initialized = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

// end takes leave of the daemon.
func (b *bridge) end(ctx context.Context) {
	at := b.current()
	if at.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
	defer cancel()
	r, err := b.request(ctx, http.MethodDelete, nil, at)
	if err != nil {
		return
	}
	if resp, err := b.o.Client.Do(r); err == nil {
		_ = resp.Body.Close()
	}
}
