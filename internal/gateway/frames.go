package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxFrame bounds one message on a pipe, in bytes.
const maxFrame = 16 << 20

// errFrame is returned for a line that is too long. It has been skipped; the next one can be read.
var errFrame = vakerr.New(vakerr.TooLarge, "the message is larger than %d bytes", maxFrame).WithRemedy("send less at once")

// lineReader takes lines apart within a bound.
type lineReader struct {
	in   *bufio.Reader
	most int // bytes of a line
}

func newLineReader(in io.Reader, most int) *lineReader {
	return &lineReader{bufio.NewReaderSize(in, 64<<10), most}
}

// line returns the next line without its end. The caller owns it. Errors: errFrame, or what the reader says; a last line
// without an end is returned before io.EOF.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line)+len(part) > r.most+1 {
			return nil, r.skip(err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// skip reads to the end of the line; err is how its last part was read.
func (r *lineReader) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.in.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errFrame
}

// frame returns the next line that is not blank.
func (r *lineReader) frame() ([]byte, error) {
	for {
		line, err := r.line()
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

// lineWriter writes frames as lines, one after another, from a goroutine of its own: a client that reads nothing holds up
// nobody for longer than close allows.
type lineWriter struct {
	out    io.Writer
	frames chan []byte
	quit   chan struct{} // closed by close: no more frames come
	once   sync.Once     // guards quit
	done   chan struct{} // closed when the goroutine has ended
	err    error         // why; to be read after done
}

func newLineWriter(out io.Writer) *lineWriter {
	w := &lineWriter{out: out, frames: make(chan []byte, 64), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// write takes a frame over. It blocks while the client does not read, until close.
func (w *lineWriter) write(frame []byte) {
	select {
	case w.frames <- frame:
	case <-w.done:
	case <-w.quit:
	}
}

// offer takes a frame over if there is room. It does not block: what a client does not read in time it misses.
func (w *lineWriter) offer(frame []byte) bool {
	select {
	case w.frames <- frame:
		return true
	default:
		return false
	}
}

func (w *lineWriter) run() {
	defer close(w.done)
	buffer := bufio.NewWriterSize(w.out, 64<<10)
	put := func(frame []byte) {
		_, _ = buffer.Write(frame) // the error stays in the buffer until Flush
		_ = buffer.WriteByte('\n')
	}
	for {
		select {
		case frame := <-w.frames:
			put(frame)
			continue
		default:
		}
		if w.err = buffer.Flush(); w.err != nil {
			return
		}
		select {
		case frame := <-w.frames:
			put(frame)
		case <-w.quit:
			for len(w.frames) > 0 {
				put(<-w.frames)
			}
			w.err = buffer.Flush()
			return
		}
	}
}

// close writes what was taken over and ends the goroutine. When the client reads nothing for so long, it gives up; then
// the goroutine ends with the write that holds it.
func (w *lineWriter) close(patience time.Duration) error {
	w.once.Do(func() { close(w.quit) })
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-w.done:
	case <-t.C:
		return vakerr.New(vakerr.DeadlineExceeded, "the client does not read its answers")
	}
	if w.err != nil {
		return vakerr.New(vakerr.Canceled, "the client does not take answers any more").WithCause(w.err)
	}
	return nil
}
