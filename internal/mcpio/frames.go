package mcpio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
)

// Errors a frameReader ends with, beside those of its source.
var errJunkFlood = errors.New("too much output that is no frame")

// Codes of error responses that a frameReader puts in the place of a response it cannot pass on, so that the call fails now
// and not at its deadline. They lie outside the range a server uses.
const (
	codeFrameTooLarge = -9100001
	codeFrameInvalid  = -9100002
)

// router takes the messages that are no responses. It must not block, and must not keep the slices it gets.
type router interface {
	notification(method, params []byte)
	asked(method, id, params []byte)
}

// shelf takes the result of a request, and reports whether anyone waits for it. It must not keep the slice it gets.
type shelf interface {
	put(id int64, result []byte) bool
}

// frameReader turns the stdout of a server into a clean stream of responses, one a line. Lines that are no JSON objects are
// dropped and counted; notifications and requests go to the router; a line over max bytes costs no memory. Numeric ids that
// the server turned into strings are numbers again. Results go to the shelf, and an empty one stands in the stream for each:
// the reader above decodes every frame twice, which is dear for a large one. Read is called by one goroutine.
type frameReader struct {
	src     *bufio.Reader
	max     int
	junk    *junkLog
	to      router
	results shelf

	buf  []byte // reused for lines longer than the buffer of src
	pend []byte // what is left to read of the current frame
	head []byte // reused for the begin of an oversized line
	stub []byte // reused for the frame that stands for a result

	endOnce sync.Once
	err     error         // why the stream ended; written before ended is closed
	ended   chan struct{} // closed by the Read that returns the first error
}

func newFrameReader(src io.Reader, limit int, junk *junkLog, to router, results shelf) *frameReader {
	return &frameReader{
		src: bufio.NewReaderSize(src, 64<<10), max: limit, junk: junk, to: to, results: results, ended: make(chan struct{}),
	}
}

// Read implements io.Reader. Whatever ends the stream, the reader above sees io.EOF; the reason is in err.
func (r *frameReader) Read(p []byte) (int, error) {
	for len(r.pend) == 0 {
		line, over, err := r.line()
		if err != nil {
			r.endOnce.Do(func() { r.err = err; close(r.ended) })
			return 0, io.EOF
		}
		if over {
			r.pend = r.oversized(line)
		} else {
			r.pend = r.accept(line)
		}
	}
	n := copy(p, r.pend)
	r.pend = r.pend[n:]
	return n, nil
}

// line returns the next line, valid until the next call. Of a line over max bytes it returns the ends, and over.
func (r *frameReader) line() (line []byte, over bool, err error) {
	line, err = r.src.ReadSlice('\n')
	if err == nil {
		return line, len(line) > r.max, nil
	}
	r.buf = append(r.buf[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(r.buf) > r.max {
			return r.discard()
		}
		line, err = r.src.ReadSlice('\n')
		r.buf = append(r.buf, line...)
	}
	if err != nil && len(r.buf) == 0 {
		return nil, false, err
	}
	// A last line without an end is a line; the error comes again with the next call.
	line = r.buf
	if cap(r.buf) > 1<<20 {
		r.buf = nil // one large frame must not cost its size for ever
	}
	return line, len(line) > r.max, nil
}

const (
	keptHead = 4 << 10
	keptTail = 256
)

// discard reads the rest of the oversized line that began in buf, charges it to the junk budget, and returns its ends.
func (r *frameReader) discard() (ends []byte, over bool, err error) {
	head := append(r.head[:0], r.buf[:min(keptHead, len(r.buf))]...)
	tail := append([]byte(nil), r.buf[max(0, len(r.buf)-keptTail):]...)
	size := len(r.buf)
	r.buf = nil
	if !r.junk.charge(size) {
		return nil, true, errJunkFlood
	}
	for {
		part, err := r.src.ReadSlice('\n')
		tail = append(tail, part[max(0, len(part)-keptTail):]...)
		tail = append(tail[:0], tail[max(0, len(tail)-keptTail):]...)
		if !r.junk.charge(len(part)) {
			return nil, true, errJunkFlood
		}
		if err == nil {
			r.head = append(head, tail...)
			return r.head, true, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, true, err
		}
	}
}

// idAtEnd finds an id behind the result, where the TypeScript SDK writes it.
var idAtEnd = regexp.MustCompile(`"id"\s*:\s*("?[0-9]{1,18}"?)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?}\s*$`)

// oversized returns an error response in the place of an oversized response, of which it sees the ends.
func (r *frameReader) oversized(ends []byte) []byte {
	r.junk.oversized()
	e, _ := scanEnvelope(ends[:min(keptHead, len(ends))])
	id := e.id
	if id == nil {
		if m := idAtEnd.FindSubmatch(ends[max(0, len(ends)-keptTail):]); m != nil {
			id = m[1]
		}
	}
	if e.method != nil {
		return nil
	}
	return errorFrame(id, codeFrameTooLarge)
}

// accept returns the frame to pass on for a line; nothing if the line was dropped or routed.
func (r *frameReader) accept(line []byte) []byte {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return r.drop(line)
	}
	e, ok := scanEnvelope(trimmed)
	if !ok {
		return r.drop(line)
	}
	if !json.Valid(trimmed) {
		// NaN is a classic: a response that some libraries write and no JSON reader takes.
		if e.response() {
			if frame := errorFrame(e.id, codeFrameInvalid); frame != nil {
				return frame
			}
		}
		return r.drop(line)
	}
	switch {
	case e.method != nil && e.id != nil:
		r.to.asked(e.method, e.id, e.params)
		return nil
	case e.method != nil:
		r.to.notification(e.method, e.params)
		return nil
	case !e.response() || e.id == nil:
		return r.drop(line)
	case e.failure != nil:
		return withNumericID(trimmed, e)
	}
	return r.shelve(e)
}

// shelve puts a result on the shelf and returns the frame that stands for it. A result nobody waits for, as that of a call
// that was given up, is no junk and is dropped.
func (r *frameReader) shelve(e envelope) []byte {
	id, err := strconv.ParseInt(string(numericID(e.id)), 10, 64)
	if err != nil || !r.results.put(id, e.result) {
		return nil
	}
	r.stub = append(strconv.AppendInt(append(r.stub[:0], `{"jsonrpc":"2.0","id":`...), id, 10), `,"result":{}}`+"\n"...)
	return r.stub
}

// drop counts a line as junk. Over budget, the source is not read again.
func (r *frameReader) drop(line []byte) []byte {
	r.junk.line(line)
	if !r.junk.charge(len(line)) {
		r.src.Reset(failedReader{errJunkFlood})
	}
	return nil
}

type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// withNumericID is frame with a line end, and undoes the habit of some servers to echo a numeric id as a string. Ours are
// always numbers.
func withNumericID(frame []byte, e envelope) []byte {
	out := make([]byte, 0, len(frame)+1)
	out = append(out, frame[:e.idAt]...)
	out = append(out, numericID(e.id)...)
	out = append(out, frame[e.idAt+len(e.id):]...)
	return append(out, '\n')
}

// numericID is id without the quotes, if there are digits between them.
func numericID(id []byte) []byte {
	if len(id) < 3 || id[0] != '"' || id[1] == '0' {
		return id
	}
	digits := id[1 : len(id)-1]
	for _, c := range digits {
		if c < '0' || c > '9' {
			return id
		}
	}
	return digits
}

// errorFrame is an error response for the request of that id; nil if the id cannot be one of ours.
func errorFrame(id []byte, code int) []byte {
	n, err := strconv.ParseInt(string(numericID(id)), 10, 64)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"error":{"code":%d,"message":"unusable frame"}}`+"\n", n, code)
}
