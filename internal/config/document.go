package config

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/vak-actors/vak-actors/capability"
)

// maxIndexDepth bounds the keys that have a line of their own. Nothing known nests deeper; what does is reported at the
// line of its nearest parent.
const maxIndexDepth = 8

// document is one TOML text: its values, the line of every key, and the problems found so far.
type document struct {
	path     string
	values   map[string]any
	lines    map[string]int // by path of keys joined with pathSep; the first mention counts
	problems []capability.Problem
	settings []Setting
}

// maxKeys bounds the keys of one file. The parser compares every key with its siblings, so that its time grows with the
// square of their number.
const maxKeys = 20_000

const unreadHint = "until then nothing of this file is taken, and every call is denied unless an earlier version was read"

const pathSep = "\x00"

// newDocument parses text. It reports false, and a problem, when the text is no TOML; hint says what that costs.
func newDocument(path string, text []byte, hint string) (*document, bool) {
	d := &document{path: path}
	if keys := d.index(text); keys > maxKeys {
		d.report(capability.SeverityError, "config_too_many", 0, fmt.Sprintf("the file has more than %d keys", maxKeys), "remove what is not needed; "+hint)
		return d, false
	}
	if err := toml.Unmarshal(text, &d.values); err != nil {
		line, detail := 0, "it cannot be read"
		if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ = syntax.Position()
			detail = strings.TrimPrefix(syntax.Error(), "toml: ")
		}
		d.report(capability.SeverityError, "config_syntax", line, "this is no valid TOML: "+detail,
			"repair the line; "+hint)
		return d, false
	}
	return d, true
}

func (d *document) report(severity capability.Severity, code string, line int, message, hint string) {
	d.problems = append(d.problems, capability.Problem{
		Severity: severity, Code: code, Path: d.path, Line: line, Message: message, Hint: hint,
	})
}

// lineOf returns the line on which the key at path was first written, or that of its nearest parent.
func (d *document) lineOf(path ...string) int {
	for n := min(len(path), maxIndexDepth); n > 0; n-- {
		if line, ok := d.lines[strings.Join(path[:n], pathSep)]; ok {
			return line
		}
	}
	return 0
}

// index notes the line of every key, up to the first error of syntax, and returns how many there are.
func (d *document) index(text []byte) (keys int) {
	ix := indexer{lines: map[string]int{}, counts: map[string]int{}}
	for i, b := range text {
		if b == '\n' {
			ix.ends = append(ix.ends, i)
		}
	}
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table:
			table = ix.keys(nil, e.Key())
		case unstable.ArrayTable:
			table = ix.element(ix.keys(nil, e.Key()), e)
		case unstable.KeyValue:
			ix.value(ix.keys(table, e.Key()), e.Value())
		default: // comments, and expressions of later versions, have no keys
		}
	}
	d.lines = ix.lines
	return ix.keysSeen
}

type indexer struct {
	lines  map[string]int
	counts map[string]int // elements seen of each array of tables
	ends   []int          // offsets of the line ends

	keysSeen int
}

// keys returns the path of a key below table and notes the line of every part of it.
func (ix *indexer) keys(table []string, it unstable.Iterator) []string {
	ix.keysSeen++
	path := slices.Clone(table)
	for it.Next() {
		part := string(it.Node().Data)
		if n := ix.counts[strings.Join(append(slices.Clone(path), part), pathSep)]; n > 0 && len(path) < maxIndexDepth {
			path = append(path, part, ElementKey(n-1)) // [a.b] after [[a]] speaks of the last element
		} else {
			path = append(path, part)
		}
		if len(path) > maxIndexDepth {
			return path[:maxIndexDepth]
		}
		ix.note(path, int(it.Node().Raw.Offset))
	}
	return path
}

// element opens the next element of an array of tables.
func (ix *indexer) element(path []string, e *unstable.Node) []string {
	if len(path) >= maxIndexDepth {
		return path
	}
	if last := path[len(path)-1]; strings.HasPrefix(last, "#") {
		path = path[:len(path)-1]
	}
	name := strings.Join(path, pathSep)
	path = append(path, ElementKey(ix.counts[name]))
	ix.counts[name]++
	it := e.Key()
	it.Next()
	ix.note(path, int(it.Node().Raw.Offset))
	return path
}

// value descends into inline tables and arrays of them.
func (ix *indexer) value(path []string, v *unstable.Node) {
	if len(path) >= maxIndexDepth {
		return
	}
	children := v.Children()
	switch v.Kind {
	case unstable.InlineTable:
		for children.Next() {
			if kv := children.Node(); kv.Kind == unstable.KeyValue {
				ix.value(ix.keys(path, kv.Key()), kv.Value())
			}
		}
	case unstable.Array:
		for n := 0; children.Next(); n++ {
			element := append(slices.Clone(path), ElementKey(n))
			if raw := children.Node().Raw; raw.Length > 0 {
				ix.note(element, int(raw.Offset))
			}
			ix.value(element, children.Node())
		}
	default: // scalars have no keys below them
	}
}

func (ix *indexer) note(path []string, offset int) {
	name := strings.Join(path, pathSep)
	if _, known := ix.lines[name]; !known {
		ix.lines[name] = 1 + sort.SearchInts(ix.ends, offset)
	}
}

// ElementKey is the key of the n-th element of a list in the path of a line.
func ElementKey(n int) string { return "#" + strconv.Itoa(n) }

// Document is a TOML file of another program, with the line of every key.
type Document struct {
	Values map[string]any
	doc    *document
}

// ReadDocument parses the TOML of another program. problems is not empty when the text is none.
func ReadDocument(path string, text []byte) (Document, []capability.Problem) {
	d, _ := newDocument(path, text, "until then an earlier version of the file stays in force")
	return Document{Values: d.values, doc: d}, d.problems
}

// Line is the line on which the key at path was first written, or that of its nearest parent; 0: nowhere.
func (d Document) Line(path ...string) int { return d.doc.lineOf(path...) }
