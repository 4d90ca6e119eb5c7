package childproc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Result is the outcome of Run.
type Result struct {
	Stdout    []byte // the first Spec.StdoutLimit bytes
	Stderr    []byte // the last Spec.StderrLimit bytes
	ExitCode  int    // -1 when a signal ended it
	Signal    syscall.Signal
	TimedOut  bool // the deadline of the context killed it
	Truncated bool // stdout had more than Stdout holds
	Took      time.Duration
}

// Run starts the process of s, feeds it stdin and waits for its end. When ctx ends first, the whole group is killed: a
// deadline is reported as TimedOut, a cancellation as a vakerr.Canceled error beside the result. A child that exits with a
// status other than 0 is no error. A child that does not read its stdin is none either.
func Run(ctx context.Context, s Spec, stdin []byte) (Result, error) {
	begun := time.Now()
	p, err := Start(s)
	if err != nil {
		return Result{}, err
	}
	limit := s.StdoutLimit
	if limit <= 0 {
		limit = DefaultStdoutLimit
	}
	out := &head{max: limit}
	var streams sync.WaitGroup
	streams.Go(func() {
		_, _ = p.stdin.Write(stdin)
		_ = p.stdin.Close()
	})
	read := make(chan struct{})
	streams.Go(func() {
		defer close(read)
		_, _ = io.Copy(out, p.stdout)
	})
	ended := p.waitOrKill(ctx)
	awaitEnd(read, p.stdout)
	p.closePipes()
	streams.Wait()

	r := Result{
		Stdout: out.buf, Stderr: p.StderrTail(), ExitCode: p.exit.Code, Signal: p.exit.Signal,
		TimedOut: errors.Is(ended, context.DeadlineExceeded), Truncated: out.over, Took: time.Since(begun),
	}
	if ended != nil && !r.TimedOut {
		return r, vakerr.New(vakerr.Canceled, "command %s was canceled and killed", quoteCommand(s.Command)).WithCause(ended)
	}
	return r, nil
}

// waitOrKill returns when the child was reaped: nil if it ended by itself, else why ctx ended.
func (p *Process) waitOrKill(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
		<-p.done
		return ctx.Err()
	}
}

// awaitEnd gives the reader of a pipe whose group is dead the time to reach the end.
func awaitEnd(read <-chan struct{}, pipe *os.File) {
	timer := time.NewTimer(drainWait)
	defer timer.Stop()
	select {
	case <-read:
	case <-timer.C:
		_ = pipe.Close()
	}
}

// head keeps the first max bytes and swallows the rest, so that the writer is never blocked. One goroutine writes.
type head struct {
	buf  []byte
	max  int
	over bool
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.max-len(h.buf))
	h.buf = append(h.buf, p[:n]...)
	h.over = h.over || n < len(p)
	return len(p), nil
}
