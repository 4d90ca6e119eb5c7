package mcpio

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

var (
	errBacklogFull  = errors.New("the server does not read its input")
	errStalled      = errors.New("the server did not read its input for too long")
	errWriterClosed = errors.New("the input of the server is closed")
)

// flushChunk is how many bytes one write deadline covers.
const flushChunk = 64 << 10

// pipeWriter writes frames to the stdin of a server without ever blocking the caller. What the pipe does not take at once
// becomes a bounded backlog that one goroutine writes as the server reads; if the server reads none of it for the stall
// time, the writer fails for good. Each Write is one frame; frames are never mixed.
type pipeWriter struct {
	f     *os.File
	raw   syscall.RawConn
	limit int           // bytes of backlog beyond which a further frame is refused
	stall time.Duration // for each flushChunk

	mu       sync.Mutex // guards the fields below
	backlog  []byte
	queued   int // bytes of the backlog and of what the flusher has in hand
	flushing bool
	err      error

	flusher sync.WaitGroup
	failed  chan struct{} // closed when the server stalled or its stdin broke; not by Close
}

func newPipeWriter(f *os.File, limit int, stall time.Duration) (*pipeWriter, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &pipeWriter{f: f, raw: raw, limit: limit, stall: stall, failed: make(chan struct{})}, nil
}

// Write takes a whole frame or refuses a whole frame. An error means that nothing of it reaches the server, except for what
// a broken pipe may have taken.
func (w *pipeWriter) Write(frame []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	rest := frame
	if w.flushing {
		if w.queued+len(frame) > w.limit {
			return 0, errBacklogFull
		}
	} else {
		n, err := w.tryLocked(frame)
		if err != nil {
			w.failLocked(err)
			return n, err
		}
		if n == len(frame) {
			return n, nil
		}
		rest = frame[n:]
		w.flushing = true
		w.flusher.Go(w.flush)
	}
	w.backlog = append(w.backlog, rest...)
	w.queued += len(rest)
	return len(frame), nil
}

// tryLocked writes what the pipe takes now.
func (w *pipeWriter) tryLocked(p []byte) (n int, err error) {
	rawErr := w.raw.Write(func(fd uintptr) bool {
		n, err = ignoringEINTR(func() (int, error) { return syscall.Write(int(fd), p) })
		return true
	})
	if rawErr != nil {
		return 0, rawErr
	}
	if errors.Is(err, syscall.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), err
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// flush writes the backlog until there is none.
func (w *pipeWriter) flush() {
	for {
		w.mu.Lock()
		chunk := w.backlog
		w.backlog = nil
		if len(chunk) == 0 || w.err != nil {
			w.flushing = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if err := w.flushAll(chunk); err != nil {
			w.fail(err)
			return
		}
	}
}

func (w *pipeWriter) flushAll(p []byte) error {
	for len(p) > 0 {
		_ = w.f.SetWriteDeadline(time.Now().Add(w.stall)) // a closed file fails in the write
		n, err := w.f.Write(p[:min(flushChunk, len(p))])
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
		p = p[n:]
		w.mu.Lock()
		w.queued -= n
		w.mu.Unlock()
	}
	return w.f.SetWriteDeadline(time.Time{})
}

func (w *pipeWriter) fail(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errStalled
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failLocked(err)
}

func (w *pipeWriter) failLocked(err error) {
	w.flushing, w.backlog = false, nil
	if w.err == nil {
		w.err = err
		close(w.failed)
	}
}

// reason is why the writer failed.
func (w *pipeWriter) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close closes the stdin of the server and waits for the flusher. It may be called again.
func (w *pipeWriter) Close() error {
	w.mu.Lock()
	if w.err == nil {
		w.err = errWriterClosed
	}
	w.mu.Unlock()
	err := w.f.Close()
	w.flusher.Wait()
	return err
}
