package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// StdioOptions configure ServeStdio. Door alone is required.
type StdioOptions struct {
	Door    protocol.Door
	Version string       // of the program, as clients are told
	Log     *slog.Logger // nil: nothing is logged

	Tenant  string // default "default"
	Server  string // set: the tools of that server only, under their own names
	Surface string // SurfaceFull (default) or SurfaceSearch

	WritePaths []string // what write and edit may touch, and nothing else; none: not restricted

	// ClaudeSession is the environment's CLAUDE_CODE_SESSION_ID, see SessionKey.
	ClaudeSession string

	Drain time.Duration // what calls in flight get when the input ends; default 10 s
}

const (
	defaultDrain = 10 * time.Second

	// writePatience is what the last answers get to be read.
	writePatience = 5 * time.Second

	// maxWork bounds the requests of one pipe that are worked on at once; further ones are read when one is done.
	maxWork = 2 * maxCalls
)

// ServeStdio speaks MCP with one client over a pair of pipes until the input ends, the client stops reading, or ctx ends.
// At the input's end calls in flight are let finish. It returns nil when the client left in order. A reader that does not
// end when it is closed, as a terminal, keeps one goroutine until it does. Errors: invalid_request, unknown_tenant,
// canceled when the output fails, deadline_exceeded when the client does not read.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, o StdioOptions) error {
	if o.Tenant == "" {
		o.Tenant = protocol.DefaultTenant
	}
	at, err := newEndpoint(o.Tenant, o.Server, o.Surface, o.WritePaths)
	if err != nil {
		return err
	}
	w := newLineWriter(out)
	s, err := newFront(o.Door, o.Version, o.Log).attach(ctx, at, SessionKey(o.ClaudeSession), w)
	if err != nil {
		_ = w.close(writePatience)
		return err
	}
	s.listen(+1)
	p := newPipe(in, w, o.Drain)
	p.left = s.endSubscriptions
	err = p.run(ctx, func(raw []byte) { serveFrame(s, p, raw) }) //nolint:contextcheck // close ends calls, after the drain
	s.close(vakerr.New(vakerr.Canceled, "the client left"))
	err = errors.Join(err, p.finish())
	s.leave(ctx)
	return err
}

// serveFrame takes one frame in, in order, and has it worked on.
func serveFrame(s *session, p *pipe, raw []byte) {
	m, bad := decode(raw)
	if bad != nil {
		p.out.write(bad.frame(m.ID))
		return
	}
	var answer []byte
	var work func() []byte
	if m.request() && modernRequest(nil, m) {
		answer, work = s.acceptStateless(m, p.out)
	} else {
		answer, work = s.accept(m, p.out)
	}
	if answer != nil {
		p.out.write(answer)
	}
	if work == nil {
		return
	}
	p.do(func() {
		if answer := work(); answer != nil {
			p.out.write(answer)
		}
	})
}

// pipe is a client's pair of pipes, and the work its frames cause.
type pipe struct {
	in    io.Reader
	out   *lineWriter
	drain time.Duration
	left  func()        // ends what only waits for the client to leave, when the input ends; nil: there is nothing of the kind
	slots chan struct{} // bounds work; a token is put in while working

	mu     sync.Mutex // guards what follows
	closed bool
	work   sync.WaitGroup // not added to once closed is set
}

func newPipe(in io.Reader, out *lineWriter, drain time.Duration) *pipe {
	if drain == 0 {
		drain = defaultDrain
	}
	return &pipe{in: in, out: out, drain: drain, slots: make(chan struct{}, maxWork)}
}

// do runs f beside the reading, and waits for room first. After finish it runs it here: then f has little left to do.
func (p *pipe) do(f func()) {
	p.slots <- struct{}{}
	run := func() {
		defer func() { <-p.slots }()
		f()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		run()
		return
	}
	p.work.Go(run)
}

// run gives take one frame after another until the input ends, and then waits for the work; less long when ctx ends or the
// client stops reading.
func (p *pipe) run(ctx context.Context, take func(raw []byte)) error {
	read := make(chan error, 1)
	stop := make(chan struct{})
	go func() { read <- p.read(take, stop) }()
	var err error
	select {
	case err = <-read:
		if p.left != nil {
			p.left()
		}
		p.await(ctx)
		return err
	case <-ctx.Done():
	case <-p.out.done:
	}
	close(stop)
	if c, ok := p.in.(io.Closer); ok {
		_ = c.Close() // so that the reader ends
	}
	return nil
}

func (p *pipe) read(take func([]byte), stop <-chan struct{}) error {
	lines := newLineReader(p.in, maxFrame)
	for {
		raw, err := lines.frame()
		select {
		case <-stop:
			return nil
		default:
		}
		switch {
		case err == nil:
			take(raw)
		case errors.Is(err, errFrame):
			p.out.write(failure(errFrame).frame(nil))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
			return nil
		default:
			return vakerr.New(vakerr.Canceled, "the client's messages cannot be read any more").WithCause(err)
		}
	}
}

// await waits for the work, within bounds.
func (p *pipe) await(ctx context.Context) {
	done := make(chan struct{})
	go func() { defer close(done); p.work.Wait() }()
	t := time.NewTimer(p.drain)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	case <-p.out.done:
	}
}

// finish ends the output when whoever does the work was told to end.
func (p *pipe) finish() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); p.work.Wait() }()
	t := time.NewTimer(writePatience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-p.out.done:
	}
	return p.out.close(writePatience)
}
