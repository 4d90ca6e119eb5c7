package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var (
	errDepth  = errors.New("it is nested more than 100 levels deep")
	errSyntax = errors.New("it is not one JSON value")
	errNumber = errors.New("it holds a number of more than 400 digits")
)

// Value is one JSON value that was read, to be checked against one or more schemas.
type Value struct {
	value  any
	values int // in it, itself included
}

// Read reads one JSON value. The error is typed and means that the value cannot be checked against any schema.
func Read(raw json.RawMessage) (Value, error) {
	if len(raw) > MaxValueBytes {
		return Value{}, vakerr.New(vakerr.TooLarge, "the value has %d bytes, more than the %d that are checked", len(raw), MaxValueBytes).
			WithRemedy("send less")
	}
	value, values, err := decode(raw)
	if err != nil {
		return Value{}, refused(err)
	}
	return Value{value, values}, nil
}

// Object is the object that v has under that name; the empty object where v has nothing, or null, there.
func (v Value) Object(name string) Value {
	object, _ := v.value.(map[string]any)
	member := object[name]
	if member == nil {
		member = map[string]any{}
	}
	values, _ := countValues(member) // its numbers were looked at before
	return Value{member, values}
}

// decode reads one JSON value within the bounds and counts the values in it.
func decode(raw []byte) (value any, values int, err error) {
	deep, numbers := survey(raw)
	if deep {
		return nil, 0, errDepth
	}
	read := json.Unmarshal
	if numbers {
		read = unmarshalNumbers
	}
	if read(raw, &value) != nil {
		return nil, 0, errSyntax
	}
	values, ok := countValues(value)
	if !ok {
		return nil, 0, errNumber
	}
	return value, values, nil
}

// unmarshalNumbers is json.Unmarshal, but for numbers, which stay as they are written. It takes twice as long.
func unmarshalNumbers(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errSyntax
	}
	return nil
}

// survey looks at what is outside strings: whether brackets are nested too deeply, and whether there may be numbers. It
// needs no valid JSON.
func survey(raw []byte) (deep, numbers bool) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true, numbers
			}
		case c == '}' || c == ']':
			depth--
		case c >= '0' && c <= '9':
			numbers = true
		}
	}
	return false, numbers
}

// countValues counts value and all in it; false when a number is too long to compute with.
func countValues(value any) (int, bool) {
	n := 1
	add := func(v any) bool {
		m, ok := countValues(v)
		n += m
		return ok
	}
	switch v := value.(type) {
	case json.Number:
		return 1, shortNumber(string(v))
	case []any:
		for _, item := range v {
			if !add(item) {
				return n, false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !add(item) {
				return n, false
			}
		}
	}
	return n, true
}

func shortNumber(text string) bool {
	if len(text) > maxNumber {
		return false
	}
	_, exponent, found := strings.Cut(strings.ToLower(text), "e")
	if !found {
		return true
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && n <= maxNumber && n >= -maxNumber
}
