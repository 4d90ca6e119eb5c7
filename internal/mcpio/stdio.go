package mcpio

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// lingerWait bounds two waits around the end of a process: for its exit once its stdout ended, and for the end of its
// stdout once it exited. Both come at once, unless the server closed a stream on purpose or a descendant holds it.
const lingerWait = 500 * time.Millisecond

// stdioLink runs mcp-go's transport on the pipes of a child process.
type stdioLink struct {
	c     *Conn
	proc  *childproc.Process
	tr    *transport.Stdio
	in    *pipeWriter
	out   *frameReader
	reply *responder
	got   *results

	stop  chan struct{} // closed by close: the end of the process is wanted
	owned sync.WaitGroup
}

var _ link = (*stdioLink)(nil)

func openStdio(c *Conn) (*stdioLink, error) {
	s := c.spec
	proc, err := childproc.Start(childproc.Spec{
		Owner: "mcp:" + s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir,
		StderrLimit: s.Limits.Stderr, GroupDir: s.GroupDir,
	})
	if err != nil {
		e := vakerr.From(err)
		return nil, vakerr.New(vakerr.ServerStartFailed, "server %q: %s", s.Name, e.Reason).WithRemedy("%s", e.Remedy).WithCause(err)
	}
	in, err := newPipeWriter(proc.Stdin(), s.Limits.Backlog, s.Limits.Stall)
	if err != nil {
		proc.Kill()
		<-proc.Done()
		return nil, vakerr.From(err)
	}
	l := &stdioLink{c: c, proc: proc, in: in, got: newResults(), stop: make(chan struct{})}
	l.reply = newResponder(c, func(frame []byte) { _, _ = l.in.Write(frame) })
	l.out = newFrameReader(proc.Stdout(), s.Limits.Frame, &junkLog{budget: s.Limits.Junk, now: time.Now, redact: c.redact}, routed{c, l.reply, 0}, l.got)
	l.tr = transport.NewIO(l.out, l.in, io.NopCloser(strings.NewReader("")))
	if err := l.tr.Start(c.life); err != nil {
		_ = l.close(c.life)
		return nil, vakerr.From(err)
	}
	l.owned.Go(func() { l.reply.run(c.life) })
	l.owned.Go(l.watch)
	return l, nil
}

// watch waits for the end of the process, of its stdout or of its patience with stdin, brings the rest to an end as well,
// and says why.
func (l *stdioLink) watch() {
	var death *vakerr.Error
	select {
	case <-l.proc.Done():
	case <-l.out.ended:
		if !l.exits() {
			death = l.outputError()
			l.proc.Kill()
		}
	case <-l.in.failed:
		if !l.exits() {
			death = vakerr.New(vakerr.ServerDied, "server %q does not read its input any more and was killed", l.c.spec.Name).
				WithRemedy("repeat the request; the server is started again on demand").WithCause(l.in.reason())
			l.proc.Kill()
		}
	}
	<-l.proc.Done()
	await(l.out.ended, lingerWait)
	_ = l.proc.Stdout().Close()
	<-l.out.ended
	if death == nil {
		death = l.exitError()
	}
	l.c.fail(death)
	_ = l.tr.Close()
}

// exits reports whether the process ends shortly, or is wanted to.
func (l *stdioLink) exits() bool {
	timer := time.NewTimer(lingerWait)
	defer timer.Stop()
	select {
	case <-l.proc.Done():
		return true
	case <-l.stop:
		return true
	case <-timer.C:
		return false
	}
}

func await(ch <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
	}
}

// outputError is why a process that still runs was given up: its stdout ended or was no use any more.
func (l *stdioLink) outputError() *vakerr.Error {
	if errors.Is(l.out.err, errJunkFlood) {
		return vakerr.New(vakerr.ServerProtocol, "server %q printed more than %d bytes per minute that are no frames and was killed",
			l.c.spec.Name, l.c.spec.Limits.Junk).WithRemedy("make it log to stderr")
	}
	return vakerr.New(vakerr.ServerDied, "server %q closed its output and was killed", l.c.spec.Name).
		WithRemedy("see `vak-actors servers logs %s`", l.c.spec.Name)
}

// exitError is why the connection to a process that has exited is over.
func (l *stdioLink) exitError() *vakerr.Error {
	reason := withLastWords("server \""+l.c.spec.Name+"\" exited ("+l.proc.Exit().String()+")",
		lastWords(l.c.redactStderr(l.stderr())))
	return vakerr.New(vakerr.ServerDied, "%s", reason).WithRemedy("see `vak-actors servers logs %s`", l.c.spec.Name)
}

func (l *stdioLink) send(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	id, _ := req.ID.Value().(int64) // all of ours are
	l.got.expect(id)
	resp, err := l.tr.SendRequest(ctx, req)
	result := l.got.take(id)
	if err == nil && resp.Error == nil {
		resp.Result = result
	}
	return resp, err
}

// sendError: the transport is closed only by watch, after it noted why.
func (l *stdioLink) sendError(ctx context.Context, method string, err error) error {
	switch {
	case errors.Is(err, errBacklogFull):
		return vakerr.New(vakerr.QueueFull, "server %q does not read its input; %d bytes wait already",
			l.c.spec.Name, l.c.spec.Limits.Backlog).WithRemedy("wait for the calls in flight")
	case errors.Is(err, transport.ErrTransportClosed):
		return l.lost(ctx, method, true)
	}
	return l.lost(ctx, method, false)
}

// lost waits for watch to say what happened; that takes no longer than the waits in it.
func (l *stdioLink) lost(ctx context.Context, method string, sent bool) error {
	select {
	case <-l.c.done:
	case <-ctx.Done():
		if !sent {
			return l.c.contextError(ctx, method)
		}
		<-l.c.done
	}
	return l.c.lostError(method, sent, vakerr.From(l.c.Err()))
}

func (l *stdioLink) initialized(ctx context.Context) {
	_ = l.tr.SendNotification(ctx, notification("notifications/initialized", nil)) // a failure shows in the next request
}

func (l *stdioLink) cancel(params map[string]any) {
	_ = l.tr.SendNotification(l.c.life, notification("notifications/cancelled", params)) // the call has failed anyway
}

func notification(method string, params map[string]any) mcp.JSONRPCNotification {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
	n.Method, n.Params.AdditionalFields = method, params
	return n
}

func (l *stdioLink) adopt(string) {}

func (l *stdioLink) listen(era Era) {
	if era == EraModern {
		l.owned.Go(l.c.subscribe)
	}
}

func (l *stdioLink) close(ctx context.Context) error {
	close(l.stop)
	_ = l.in.Close()
	err := l.proc.Stop(ctx, childproc.Grace{Stdin: l.c.spec.Limits.Grace, Term: l.c.spec.Limits.Grace})
	if err != nil {
		return err
	}
	l.owned.Wait()
	return nil
}

func (l *stdioLink) gone() bool      { return l.proc.HasExited() }
func (l *stdioLink) pid() int        { return l.proc.PID() }
func (l *stdioLink) stderr() []byte  { return l.proc.StderrTail() }
func (l *stdioLink) junk() JunkStats { return l.out.junk.snapshot() }
