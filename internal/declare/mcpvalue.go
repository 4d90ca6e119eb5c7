package declare

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/internal/config"
)

// value is a piece of a file of settings, whatever notation it was written in.
type value struct {
	kind    byte   // '{' '[' '"' '0' 't' 'n', or '?' for what JSON has no word for
	text    string // of a text: what it says; of a number or truth: its spelling
	members []member
	items   []value
	line    int
}

// member is one name and value of an object, with the line of the name.
type member struct {
	name  string
	value value
	line  int
}

// find returns the first member of that name.
func (v value) find(name string) (member, bool) {
	i := slices.IndexFunc(v.members, func(m member) bool { return m.name == name })
	if i < 0 {
		return member{}, false
	}
	return v.members[i], true
}

// maxJSONDepth bounds nesting; the parser below recurses and has no bound of its own.
const maxJSONDepth = 64

// lineEnds are the offsets of the line ends of a text.
type lineEnds []int

func newLineEnds(text []byte) lineEnds {
	var ends lineEnds
	for i, b := range text {
		if b == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

// line is the 1-based line of an offset.
func (l lineEnds) line(offset int) int { return 1 + sort.SearchInts(l, offset) }

// parseJSON reads an object of JSON. standard is false when it holds comments or trailing commas.
func parseJSON(text []byte) (root value, standard bool, f *fault) {
	if len(bytes.TrimSpace(text)) == 0 {
		return value{}, true, &fault{"file_empty", 0, "the file is empty", "write {}, or remove it; rules that were never readable deny every call"}
	}
	ends := newLineEnds(text)
	if line := mergeMark(text); line > 0 {
		return value{}, true, &fault{
			"mcp_syntax", line, "a merge conflict was left in the file: this line is its mark",
			"keep one of the two sides; until then an earlier version of the file stays in force",
		}
	}
	if at := tooDeep(text); at >= 0 {
		return value{}, true, &fault{"mcp_syntax", ends.line(at), fmt.Sprintf("the JSON is nested deeper than %d levels", maxJSONDepth), "flatten it"}
	}
	parsed, err := hujson.Parse(text)
	if err != nil {
		line, detail := hujsonError(err)
		return value{}, true, &fault{"mcp_syntax", line, "this is no valid JSON: " + detail, "repair the line; until then an earlier version of the file stays in force"}
	}
	if parsed.Value.Kind() != '{' {
		return value{}, true, &fault{"mcp_syntax", 1, "the file holds no JSON object", `write {"mcpServers": {}}`}
	}
	return fromJSON(parsed, ends), parsed.IsStandard(), nil
}

// mergeMark is the line of the mark that a merge left, 0 where there is none.
func mergeMark(text []byte) int {
	for n, line := range bytes.Split(text, []byte("\n")) {
		if bytes.HasPrefix(line, []byte("<<<<<<< ")) {
			return n + 1
		}
	}
	return 0
}

// hujsonError takes the line out of "hujson: line 3, column 1: ..." and drops everything that may quote the file.
func hujsonError(err error) (line int, detail string) {
	var column int
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n < 2 {
		return 0, "it cannot be parsed"
	}
	return line, fmt.Sprintf("it cannot be parsed from column %d on", column)
}

// tooDeep returns the offset at which text nests deeper than the bound, or -1.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLength(text[i:])
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// commentLength is the length of the comment text begins with, less one; 0 when it begins with none.
func commentLength(text []byte) int {
	var end int
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		end = bytes.IndexByte(text, '\n')
	case bytes.HasPrefix(text, []byte("/*")):
		if end = bytes.Index(text[2:], []byte("*/")); end >= 0 {
			end += 3
		}
	default:
		return 0
	}
	if end < 0 {
		return len(text)
	}
	return end
}

func fromJSON(v hujson.Value, ends lineEnds) value {
	out := value{kind: byte(v.Value.Kind()), line: ends.line(v.StartOffset)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		for _, m := range t.Members {
			out.members = append(out.members, member{m.Name.Value.(hujson.Literal).String(), fromJSON(m.Value, ends), ends.line(m.Name.StartOffset)})
		}
	case *hujson.Array:
		for _, e := range t.Elements {
			out.items = append(out.items, fromJSON(e, ends))
		}
	case hujson.Literal:
		if out.text = string(t); out.kind == '"' {
			out.text = t.String()
		}
	}
	if out.kind == 'f' {
		out.kind = 't'
	}
	return out
}

// fromTOML turns a table of TOML into a value. Names are in order, for TOML's own order is lost.
func fromTOML(doc config.Document, v any, path ...string) value {
	out := value{line: doc.Line(path...)}
	switch t := v.(type) {
	case map[string]any:
		out.kind = '{'
		for _, name := range slices.Sorted(maps.Keys(t)) {
			below := append(slices.Clone(path), name)
			out.members = append(out.members, member{name, fromTOML(doc, t[name], below...), doc.Line(below...)})
		}
	case []any:
		out.kind = '['
		for i, e := range t {
			out.items = append(out.items, fromTOML(doc, e, append(slices.Clone(path), config.ElementKey(i))...))
		}
	case string:
		out.kind, out.text = '"', t
	case bool:
		out.kind, out.text = 't', strconv.FormatBool(t)
	case int64:
		out.kind, out.text = '0', strconv.FormatInt(t, 10)
	case float64:
		out.kind, out.text = '0', strconv.FormatFloat(t, 'g', -1, 64)
	default:
		out.kind, out.text = '?', fmt.Sprint(t)
	}
	return out
}
