package mcpio

import (
	"bytes"
	"strings"
)

// envelope is what is needed of a JSON-RPC message to route it: the raw values of its top-level members, as slices of the
// message. A member that is absent is nil.
type envelope struct {
	id, method, params, result, failure []byte // failure is the member "error"; a null id or failure is nil

	idAt int // offset of id in the message
}

// response reports whether the message answers something.
func (e *envelope) response() bool { return e.result != nil || e.failure != nil }

// scanEnvelope finds the top-level members of a message without looking at what is in them. It accepts some input that is
// no JSON; whoever needs more checks the message with json.Valid. ok is false if the message ends too early or has
// the wrong form; what was found until then is in the result.
func scanEnvelope(frame []byte) (e envelope, ok bool) {
	i := skipSpace(frame, 0)
	if i >= len(frame) || frame[i] != '{' {
		return e, false
	}
	i = skipSpace(frame, i+1)
	if i < len(frame) && frame[i] == '}' {
		return e, true
	}
	for i < len(frame) && frame[i] == '"' {
		keyEnd := skipString(frame, i)
		colon := skipSpace(frame, keyEnd)
		if colon >= len(frame) || frame[colon] != ':' {
			return e, false
		}
		from := skipSpace(frame, colon+1)
		to, complete := skipValue(frame, from)
		if !complete {
			return e, false
		}
		e.note(frame[i+1:keyEnd-1], frame[from:to], from)
		i = skipSpace(frame, to)
		if i >= len(frame) {
			return e, false
		}
		if frame[i] == '}' {
			return e, skipSpace(frame, i+1) == len(frame)
		}
		if frame[i] != ',' {
			return e, false
		}
		i = skipSpace(frame, i+1)
	}
	return e, false
}

func (e *envelope) note(key, value []byte, at int) {
	switch string(key) {
	case "id":
		if !bytes.Equal(value, []byte("null")) {
			e.id, e.idAt = value, at
		}
	case "method":
		e.method = value
	case "params":
		e.params = value
	case "result":
		e.result = value
	case "error":
		if !bytes.Equal(value, []byte("null")) {
			e.failure = value
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset behind the string that begins at i, or beyond the end of b if it does not end.
func skipString(b []byte, i int) int {
	from := i + 1
	for {
		n := bytes.IndexByte(b[min(from, len(b)):], '"')
		if n < 0 {
			return len(b) + 1
		}
		quote := from + n
		slashes := 0
		for quote-1-slashes > i && b[quote-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return quote + 1
		}
		from = quote + 1
	}
}

// skipValue returns the offset behind the value that begins at i, and whether the value is complete.
func skipValue(b []byte, i int) (end int, complete bool) {
	if i >= len(b) {
		return i, false
	}
	switch b[i] {
	case '"':
		end = skipString(b, i)
		return min(end, len(b)), end <= len(b)
	case '{', '[':
		return skipNested(b, i)
	}
	from := i
	for i < len(b) && strings.IndexByte(" \t\r\n,}]:\"{[", b[i]) < 0 {
		i++
	}
	return i, i > from && i < len(b)
}

func skipNested(b []byte, i int) (end int, complete bool) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return len(b), false
}
