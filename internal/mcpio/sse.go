package mcpio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// event is one server-sent event.
type event struct {
	name  string // of its event line; empty: message
	data  []byte // the data lines joined by line ends
	id    []byte // nil if the event has none
	plain []byte // the id and retry lines as they came, for a reader that resumes
	raw   []byte // the whole event as it came, with its blank line
}

// eventReader reads events of at most max bytes. The slices of an event are valid until the next call.
type eventReader struct {
	src *bufio.Reader
	max int
	e   event
}

func newEventReader(src io.Reader, limit int) *eventReader {
	return &eventReader{src: bufio.NewReader(src), max: limit}
}

// next returns the next event that has at least one line. An event cut off by the end of the stream counts as one, as mcp-go
// sees it, too.
func (r *eventReader) next() (*event, error) {
	e := &r.e
	e.name = ""
	e.data, e.id, e.plain, e.raw = e.data[:0], nil, e.plain[:0], e.raw[:0]
	begun := false
	for {
		from := len(e.raw)
		err := r.line()
		if err != nil && (!errors.Is(err, io.EOF) || !begun && len(e.raw) == from) {
			return nil, err
		}
		line := bytes.TrimRight(e.raw[from:], "\r\n")
		if len(line) == 0 {
			if begun {
				return e, nil
			}
			e.raw = e.raw[:0]
			continue
		}
		begun = true
		e.field(line, e.raw[from:])
		if err != nil {
			return e, nil
		}
	}
}

// line appends the next line to raw.
func (r *eventReader) line() error {
	for {
		part, err := r.src.ReadSlice('\n')
		if len(r.e.raw)+len(part) > r.max {
			return errBodyTooLarge
		}
		r.e.raw = append(r.e.raw, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (e *event) field(line, raw []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "data":
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	case "id":
		e.id = value
		e.plain = append(e.plain, raw...)
	case "retry":
		e.plain = append(e.plain, raw...)
	}
}

// route hands the message of an event to the router if it is a notification or a request, and reports whether it was one.
func (e *event) route(to router) bool {
	env, ok := scanEnvelope(e.data)
	if !ok || env.method == nil || !json.Valid(e.data) {
		return false
	}
	if env.id != nil {
		to.asked(env.method, env.id, env.params)
	} else {
		to.notification(env.method, env.params)
	}
	return true
}

// eventFilter is a body whose notifications and requests went to the router; the rest is as it came.
type eventFilter struct {
	body   io.ReadCloser
	events *eventReader
	to     router
	pend   []byte
}

func newEventFilter(body io.ReadCloser, limit int, to router) *eventFilter {
	return &eventFilter{body: body, events: newEventReader(body, limit), to: to}
}

func (f *eventFilter) Read(p []byte) (int, error) {
	for len(f.pend) == 0 {
		e, err := f.events.next()
		if err != nil {
			return 0, err
		}
		f.pend = e.raw
		if e.route(f.to) {
			f.pend = e.plain
			if len(f.pend) > 0 {
				f.pend = append(f.pend, '\n')
			}
		}
	}
	n := copy(p, f.pend)
	f.pend = f.pend[n:]
	return n, nil
}

func (f *eventFilter) Close() error { return f.body.Close() }
