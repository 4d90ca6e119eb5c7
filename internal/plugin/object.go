package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/capability"
)

// Bounds of a manifest or marketplace.
const (
	maxBytes    = 8 << 20
	maxDepth    = 64
	maxProblems = 100
)

// reader reads one JSON file and collects what is wrong with it.
type reader struct {
	path     string
	ends     []int // offsets of the line ends
	problems []capability.Problem
	fatal    bool // something was found that refuses the whole file
}

// member is one name and value of an object, with its line.
type member struct {
	name  string
	value hujson.Value
	line  int
}

func (r *reader) add(severity capability.Severity, code string, line int, message, hint string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, capability.Problem{Severity: severity, Code: code, Path: r.path, Line: line, Message: message, Hint: hint})
	}
}

func (r *reader) warn(code string, line int, message, hint string) {
	r.add(capability.SeverityWarning, code, line, message, hint)
}

// component says that one component cannot be used; the others can.
func (r *reader) component(code string, line int, message, hint string) {
	r.add(capability.SeverityError, code, line, message, hint)
}

// refuse says that the file as a whole cannot be used. It is said first, however much else was found.
func (r *reader) refuse(code string, line int, message, hint string) {
	r.fatal = true
	p := capability.Problem{Severity: capability.SeverityError, Code: code, Path: r.path, Line: line, Message: message, Hint: hint}
	r.problems = append([]capability.Problem{p}, r.problems...)
	r.problems = r.problems[:min(len(r.problems), maxProblems)]
}

// parse reads the text as one JSON object; comments and trailing commas are accepted with a warning.
func (r *reader) parse(text []byte) ([]member, bool) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	switch {
	case len(text) > maxBytes:
		r.refuse("file_too_large", 0, fmt.Sprintf("the file is larger than %d bytes", maxBytes), "shorten it")
		return nil, false
	case !utf8.Valid(text):
		r.refuse("file_not_text", 0, "the file is no UTF-8 text", "save it as UTF-8")
		return nil, false
	case len(bytes.TrimSpace(text)) == 0:
		r.refuse("file_empty", 0, "the file is empty", "write a JSON object, or remove the file")
		return nil, false
	}
	for i, b := range text {
		if b == '\n' {
			r.ends = append(r.ends, i)
		}
	}
	if at := tooDeep(text); at >= 0 {
		r.refuse("plugin_syntax", r.line(at), fmt.Sprintf("the JSON is nested deeper than %d levels", maxDepth), "flatten it")
		return nil, false
	}
	root, err := hujson.Parse(text)
	if err != nil {
		line, column := 0, 0
		_, _ = fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column)
		r.refuse("plugin_syntax", line, fmt.Sprintf("this is no valid JSON from column %d on", column), "repair the line")
		return nil, false
	}
	if !root.IsStandard() {
		r.warn("plugin_jsonc", 0, "the file holds comments or trailing commas, which JSON does not allow", "remove them; other programs refuse the file")
	}
	if root.Value.Kind() != '{' {
		r.refuse("plugin_syntax", 1, "the file holds no JSON object", "write an object")
		return nil, false
	}
	return r.members(root, ""), !r.fatal
}

// tooDeep returns the offset at which text nests deeper than the bound, or -1; the parser recurses without a bound.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// line is the 1-based line of an offset.
func (r *reader) line(offset int) int { return 1 + sort.SearchInts(r.ends, offset) }

// members lists an object. A name that is written twice with two values refuses the file: nobody can say which was meant.
func (r *reader) members(v hujson.Value, of string) []member {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	all := make([]member, 0, len(o.Members))
	seen := make(map[string]int, len(o.Members))
	for _, m := range o.Members {
		name := m.Name.Value.(hujson.Literal).String()
		line := r.line(m.Name.StartOffset)
		if at, twice := seen[name]; twice {
			if !bytes.Equal(raw(all[at].value), raw(m.Value)) {
				r.refuse("plugin_duplicate", line, fmt.Sprintf("%s is written twice%s, with two values", quoted(name), of), "remove one of the two")
			} else {
				r.warn("plugin_duplicate", line, fmt.Sprintf("%s is written twice%s", quoted(name), of), "remove one of the two")
			}
			continue
		}
		seen[name] = len(all)
		all = append(all, member{name, m.Value, line})
	}
	return all
}

// raw is a value as plain JSON.
func raw(v hujson.Value) json.RawMessage {
	c := v.Clone()
	c.Standardize()
	c.Minimize()
	return c.Pack()
}

func kindName(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// text reads a text; another type refuses the file.
func (r *reader) text(m member) string {
	if m.value.Value.Kind() != '"' {
		r.refuse("plugin_type", m.line, fmt.Sprintf("%s is %s, not a text", quoted(m.name), kindName(m.value)), "write it in quotes")
		return ""
	}
	return m.value.Value.(hujson.Literal).String()
}

// texts reads a list of texts, or one text where single is set.
func (r *reader) texts(m member, single bool) []string {
	if single && m.value.Value.Kind() == '"' {
		return []string{m.value.Value.(hujson.Literal).String()}
	}
	list, ok := m.value.Value.(*hujson.Array)
	if !ok {
		r.refuse("plugin_type", m.line, fmt.Sprintf("%s is %s, not a list of texts", quoted(m.name), kindName(m.value)), `write ["..."]`)
		return nil
	}
	all := make([]string, 0, len(list.Elements))
	for _, e := range list.Elements {
		if e.Value.Kind() != '"' {
			r.refuse("plugin_type", r.line(e.StartOffset), fmt.Sprintf("%s holds %s, not a text", quoted(m.name), kindName(e)), `write ["..."]`)
			return nil
		}
		all = append(all, e.Value.(hujson.Literal).String())
	}
	return all
}

// truth reads a boolean; another type refuses the file.
func (r *reader) truth(m member) bool {
	if k := m.value.Value.Kind(); k != 't' && k != 'f' {
		r.refuse("plugin_type", m.line, fmt.Sprintf("%s is %s, not true or false", quoted(m.name), kindName(m.value)), "write true or false")
		return false
	}
	return m.value.Value.Kind() == 't'
}

// object reads an object; another type refuses the file.
func (r *reader) object(m member) []member {
	if m.value.Value.Kind() != '{' {
		r.refuse("plugin_type", m.line, fmt.Sprintf("%s is %s, not an object", quoted(m.name), kindName(m.value)), "write {...}")
		return nil
	}
	return r.members(m.value, " in "+quoted(m.name))
}

// find returns the member of that name.
func find(all []member, name string) (member, bool) {
	i := slices.IndexFunc(all, func(m member) bool { return m.name == name })
	if i < 0 {
		return member{}, false
	}
	return all[i], true
}

// quoted writes foreign text into a message: escaped, and cut where it is absurdly long.
func quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	return strconv.Quote(s)
}
