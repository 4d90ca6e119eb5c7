package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

var (
	errDepth  = errors.New("it is nested more than 100 levels deep")
	errSyntax = errors.New("it is not one JSON value")
	errNumber = errors.New("it holds a number of more than 400 digits")
)

// decode reads one JSON value within the bounds and counts the values in it.
func decode(raw []byte) (value any, values int, err error) {
	if tooDeep(raw) {
		return nil, 0, errDepth
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return nil, 0, errSyntax
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, errSyntax
	}
	values, ok := countValues(value)
	if !ok {
		return nil, 0, errNumber
	}
	return value, values, nil
}

// tooDeep looks at the brackets outside strings; it needs no valid JSON.
func tooDeep(raw []byte) bool {
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
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
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
