package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vak-actors/vak-actors/capability"
)

// section reads one table. Every key that is asked for is known; close reports the others. A value of a wrong type or
// out of bounds is reported and the default is returned, and bad is set.
type section struct {
	doc         *document
	path        []string
	values      map[string]any
	known       []string
	consequence string // what a bad key costs; the hint of problems that have no better one
	bad         bool
}

// label is how problems name the table: [mcp.servers.git], [[hooks]] entry 2, or nothing for the top level.
func (s *section) label() string {
	if len(s.path) == 0 {
		return "at the top of the file"
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(s.name(), "#")); err == nil && strings.HasPrefix(s.name(), "#") {
		return fmt.Sprintf("in [[%s]], entry %d", dotted(s.path[:len(s.path)-1]), n+1)
	}
	return "in [" + dotted(s.path) + "]"
}

// keyText writes a key as TOML does, cut where it is absurdly long.
func keyText(key string) string {
	if len(key) > 80 {
		key = key[:80] + "..."
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return (r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)) || r > unicode.MaxASCII
	}) {
		return strconv.Quote(key)
	}
	return key
}

// line is where the table, or one of its keys, is written.
func (s *section) line(key ...string) int { return s.doc.lineOf(slices.Concat(s.path, key)...) }

// fail reports an error at a key and marks the section.
func (s *section) fail(code, key, message, hint string) {
	s.bad = true
	if hint == "" {
		hint = s.consequence
	}
	line := s.line()
	if key != "" {
		line = s.line(key)
	}
	s.doc.report(capability.SeverityError, code, line, message, hint)
}

func (s *section) warn(code, key, message, hint string) {
	s.doc.report(capability.SeverityWarning, code, s.line(key), message, hint)
}

func (s *section) take(key string) (any, bool) {
	s.known = append(s.known, key)
	v, ok := s.values[key]
	return v, ok
}

func (s *section) wrongType(key string, v any, want string) {
	s.fail("config_type", key, fmt.Sprintf("%s %s must be %s, not %s", keyText(key), s.label(), want, typeName(v)), "write "+want+", or remove it")
}

func (s *section) badValue(key, message string) {
	s.fail("config_value", key, fmt.Sprintf("%s %s %s", keyText(key), s.label(), message), "correct the value, or remove it")
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// record notes the effective value of a key for Config.Effective.
func (s *section) record(key, value string) {
	source := "default"
	if _, written := s.values[key]; written {
		source = fmt.Sprintf("%s:%d", s.doc.path, s.line(key))
	}
	s.doc.settings = append(s.doc.settings, Setting{dotted(append(slices.Clone(s.path), key)), value, source})
}

// dotted writes a path of keys, with the elements of lists as [n].
func dotted(path []string) string {
	var out strings.Builder
	for i, key := range path {
		if n, isElement := strings.CutPrefix(key, "#"); isElement {
			out.WriteString("[" + n + "]")
			continue
		}
		if i > 0 {
			out.WriteByte('.')
		}
		out.WriteString(keyText(key))
	}
	return out.String()
}

// text reads a string of one line.
func (s *section) text(key, def string) string {
	got := def
	if v, ok := s.take(key); ok {
		switch t := v.(type) {
		case string:
			if strings.ContainsFunc(t, unicode.IsControl) {
				s.badValue(key, "holds a control character or a line break")
			} else {
				got = t
			}
		default:
			s.wrongType(key, v, "a string")
		}
	}
	s.record(key, strconv.Quote(maskText(got)))
	return got
}

func (s *section) flag(key string, def bool) bool {
	got := def
	if v, ok := s.take(key); ok {
		if b, isBool := v.(bool); isBool {
			got = b
		} else {
			s.wrongType(key, v, "true or false")
		}
	}
	s.record(key, strconv.FormatBool(got))
	return got
}

// number reads an integer between 1 and most.
func (s *section) number(key string, def, most int) int {
	got := def
	if v, ok := s.take(key); ok {
		switch n, isInt := v.(int64); {
		case !isInt:
			s.wrongType(key, v, "an integer")
		case n < 1 || n > int64(most):
			s.badValue(key, fmt.Sprintf("must lie between 1 and %d", most))
		default:
			got = int(n)
		}
	}
	s.record(key, strconv.Itoa(got))
	return got
}

// maxDuration bounds every duration of the file; longer ones are typing errors.
const maxDuration = 30 * 24 * time.Hour

// duration reads a duration between one millisecond and maxDuration.
func (s *section) duration(key string, def time.Duration) time.Duration {
	got := def
	if v, ok := s.take(key); ok {
		text, isText := v.(string)
		if !isText {
			s.wrongType(key, v, `a duration such as "10s" or "15m"`)
		} else if d, err := time.ParseDuration(text); err != nil {
			s.badValue(key, `must be a duration such as "10s" or "15m"`)
		} else if d < time.Millisecond || d > maxDuration {
			s.badValue(key, "must lie between 1ms and 720h")
		} else {
			got = d
		}
	}
	s.record(key, strconv.Quote(got.String()))
	return got
}

// oneOf reads one of a few words.
func (s *section) oneOf(key, def string, words ...string) string {
	got := def
	if v, ok := s.take(key); ok {
		text, isText := v.(string)
		if !isText || !slices.Contains(words, text) {
			s.fail("config_value", key, fmt.Sprintf("%s %s must be one of %s", keyText(key), s.label(), strings.Join(words, ", ")), "write one of these words, or remove it")
		} else {
			got = text
		}
	}
	s.record(key, strconv.Quote(got))
	return got
}

// words reads a list of strings; nil when nothing is written, which differs from an empty list.
func (s *section) words(key string) []string {
	v, ok := s.take(key)
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		s.wrongType(key, v, "a list of strings")
		return nil
	}
	got := make([]string, 0, len(list))
	for _, item := range list {
		text, isText := item.(string)
		if !isText {
			s.wrongType(key, item, "a list of strings, and each entry a string")
			return nil
		}
		got = append(got, text)
	}
	s.record(key, listText(MaskArgs(got)))
	return got
}

func listText(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// pairs reads a table of strings, whose values are shown masked.
func (s *section) pairs(key string) map[string]string {
	v, ok := s.take(key)
	if !ok {
		return nil
	}
	table, isTable := v.(map[string]any)
	if !isTable {
		s.wrongType(key, v, "a table of strings")
		return nil
	}
	got := make(map[string]string, len(table))
	inner := s.below(s.consequence, table, key)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		text, isText := table[name].(string)
		if !isText {
			inner.wrongType(name, table[name], "a string")
			continue
		}
		got[name] = text
		inner.record(name, strconv.Quote(maskValue(text)))
	}
	s.bad = s.bad || inner.bad
	return got
}

// table opens a table below this one; nil when nothing, or no table, is written there.
func (s *section) table(key, consequence string) *section {
	v, ok := s.take(key)
	if !ok {
		return nil
	}
	values, isTable := v.(map[string]any)
	if !isTable {
		s.wrongType(key, v, "a table")
		return nil
	}
	return s.below(consequence, values, key)
}

func (s *section) below(consequence string, values map[string]any, keys ...string) *section {
	return &section{doc: s.doc, path: slices.Concat(s.path, keys), values: values, consequence: consequence}
}

// entries opens every table of a table of tables, in order of names.
func (s *section) entries(most int, consequence string) []*section {
	var all []*section
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		values, isTable := s.values[name].(map[string]any)
		switch {
		case !isTable:
			s.wrongType(name, s.values[name], "a table")
		case len(all) == most:
			s.fail("config_too_many", name, fmt.Sprintf("more than %d entries %s", most, s.label()), "the rest is left out")
			return all
		default:
			all = append(all, s.below(consequence, values, name))
		}
	}
	return all
}

// name is the last key of the section's path.
func (s *section) name() string { return s.path[len(s.path)-1] }

// maxUnknown bounds how many unknown keys of one table are named: a table with more is of another kind.
const maxUnknown = 20

// close reports every key that nobody asked for.
func (s *section) close() {
	unknown := 0
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if slices.Contains(s.known, key) {
			continue
		}
		if unknown++; unknown > maxUnknown {
			s.fail("config_unknown_key", "", "more unknown keys "+s.label()+" are not listed", "remove them, or correct their spelling")
			return
		}
		hint := "known keys: " + strings.Join(slices.Sorted(slices.Values(s.known)), ", ")
		if near := Nearest(key, s.known); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		if s.consequence != "" {
			hint += " (" + s.consequence + ")"
		}
		s.fail("config_unknown_key", key, fmt.Sprintf("unknown key %s %s", keyText(key), s.label()), hint)
	}
}
