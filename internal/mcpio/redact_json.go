package mcpio

import (
	"encoding/json"
	"errors"
	"strings"
)

// redactWalk copies a decoded JSON value without the secrets in its strings. The names of members stay: they are the names
// of arguments, and a tool whose arguments are renamed cannot be called.
type redactWalk struct {
	redact *Redactor
	depth  int
	err    error // the first reason why the value cannot be used
}

func (w *redactWalk) object(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		if w.redact.holds(key, keySecret) && w.err == nil {
			w.err = errors.New("the name of one of its members holds the value of an environment entry")
		}
		out[key] = w.value(key, v)
	}
	return out
}

func (w *redactWalk) value(key string, v any) any {
	if w.depth++; w.depth > maxJSONDepth {
		w.err = errors.New("it is nested too deeply")
		w.depth--
		return nil
	}
	defer func() { w.depth-- }()
	switch v := v.(type) {
	case string:
		if isVocabulary(key, v) {
			return v
		}
		return w.redact.String(v)
	case json.Number:
		if _, err := v.Float64(); err != nil && w.err == nil {
			w.err = errors.New("it holds a number out of range, which most readers refuse")
		}
		return v
	case map[string]any:
		return w.object(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = w.value(key, item)
		}
		return out
	}
	return v
}

// isVocabulary reports whether a string is part of the language of JSON Schema. An environment entry whose value is such a
// word ("object", "string") must not break every schema.
func isVocabulary(key, v string) bool {
	switch key {
	case "type":
		switch v {
		case "object", "string", "number", "integer", "boolean", "array", "null":
			return true
		}
	case "$ref", "$dynamicRef":
		return strings.HasPrefix(v, "#")
	case "$schema":
		return strings.HasPrefix(v, "http://json-schema.org/") || strings.HasPrefix(v, "https://json-schema.org/")
	case "required":
		return true // names of members, which stay as well
	}
	return false
}

// JSON returns raw without secrets in its strings. What is no JSON is treated as text.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r == nil || r.replacer == nil || len(raw) == 0 {
		return raw
	}
	fields, err := decodeObject(raw)
	if err != nil {
		return json.RawMessage(r.String(string(raw)))
	}
	w := redactWalk{redact: r}
	out, err := canonical(w.object(fields))
	if err != nil || w.err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}
