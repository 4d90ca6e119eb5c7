package declare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxRepairs bounds how many lines of one file are repaired.
const maxRepairs = 8

// maxKeys bounds the top-level keys of one file.
const maxKeys = 512

// metadata is the frontmatter of a document: its top-level keys in order.
type metadata struct {
	fields []field
}

type field struct {
	key    string
	value  *yaml.Node
	line   int    // of the file
	source string // what stands after the colon on that line, as written
}

func (m metadata) get(key string) (field, bool) {
	i := slices.IndexFunc(m.fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return m.fields[i], true
}

// readMetadata parses the text between the fences. Where the whole is no YAML, the entries that are none on their own
// are found, and each that is one line is read as the plain text its author meant (a warning says so); a text that
// needs more is an error.
func (r *reporter) readMetadata(front []byte) (metadata, bool) {
	if f := conflictMark(front); f != nil {
		r.fault(f)
		return metadata{}, false
	}
	if f := headingMark(front); f != nil {
		r.fault(f)
		return metadata{}, false
	}
	node, err := parseYAML(front)
	if err != nil {
		repaired, keys, f := repair(front)
		if f != nil {
			r.fault(f)
			return metadata{}, false
		}
		if node, err = parseYAML(repaired); err != nil {
			r.error("frontmatter_yaml", 1+errorLine(err), "the metadata is no YAML: "+errorText(err), "repair the line; every key needs the form key: value")
			return metadata{}, false
		}
		for _, k := range keys {
			r.warn("frontmatter_repaired", k.line, fmt.Sprintf("the value of %s is no YAML and was read as plain text", k.name), "put the value into quotes")
		}
	}
	m, ok := r.fields(node, front)
	if ok {
		r.spell(&m)
	}
	return m, ok
}

// restrictingText matches whatever may be the name of a key that restricts, wherever it stands.
var restrictingText = regexp.MustCompile(`(?i)allowed[-_ ]?tools|disable[-_ ]?(?:model|agent)[-_ ]?invocation|user[-_ ]?invo[ck]able|hide[-_ ]?from[-_ ]?slash|\btools\b`)

// lineBreaks are those of YAML that are no end of a line elsewhere.
var lineBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// restrictions are the lines of a metadata text that may restrict, each with those that go on with it. It reads line by
// line, so that it finds them in a text that is no YAML, too.
func restrictions(front []byte) []string {
	var all []string
	in := false
	for line := range strings.Lines(lineBreaks.Replace(string(front[:min(len(front), maxFrontmatter)]))) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case restrictingText.MatchString(line):
			all = append(all, line)
			in = true
		case in && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "-") && !fence([]byte(line))):
			all[len(all)-1] += "\n" + line
		case line != "":
			in = false
		}
	}
	return all
}

// fields checks that the metadata is a mapping of distinct names.
func (r *reporter) fields(node *yaml.Node, front []byte) (metadata, bool) {
	if node == nil {
		return metadata{}, true
	}
	if node.Kind != yaml.MappingNode {
		r.error("frontmatter_yaml", 1+node.Line, "the metadata is no list of key: value lines", "write it as key: value lines")
		return metadata{}, false
	}
	if len(node.Content) > 2*maxKeys {
		r.error("frontmatter_yaml", 1+node.Content[2*maxKeys].Line, fmt.Sprintf("the metadata has more than %d keys", maxKeys), "remove what is not needed")
		return metadata{}, false
	}
	if at := disagreed(node); at != nil {
		r.error("frontmatter_yaml", 1+at.Line, "a key of the metadata is no plain text, which programs read in different ways", "write it as key: value")
		return metadata{}, false
	}
	lines := bytes.Split(front, []byte("\n"))
	var m metadata
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if first, twice := m.get(key.Value); twice {
			r.error("frontmatter_duplicate", 1+key.Line, fmt.Sprintf("%s is written twice, on line %d too", quoted(key.Value), first.line),
				"remove one of the two; nobody can say which was meant")
			return metadata{}, false
		}
		f := field{key: key.Value, value: value, line: 1 + key.Line}
		if key.Line >= 1 && key.Line <= len(lines) {
			_, source, _ := strings.Cut(string(lines[key.Line-1]), ":")
			f.source = strings.TrimSpace(source)
		}
		if value.Kind == yaml.AliasNode {
			f.value = value.Alias
		}
		m.fields = append(m.fields, f)
	}
	return m, true
}

// parseYAML parses one document to its top node, nil for an empty one. Refused is what other readers refuse, run, or read in
// another way: tags of applications, and a second document, whose restrictions would be lost.
func parseYAML(text []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, fmt.Errorf("yaml: line %d: the metadata ends before this line", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	if at := foreignTag(doc.Content[0]); at != nil {
		return nil, fmt.Errorf("yaml: line %d: a tag of an application", at.Line)
	}
	return doc.Content[0], nil
}

// disagreed finds what readers of YAML do not agree on: a key that is no text, and a merge of one mapping into another.
func disagreed(n *yaml.Node) *yaml.Node {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && (c.Kind != yaml.ScalarNode || c.Tag == "!!merge") {
			return c
		}
		if at := disagreed(c); at != nil {
			return at
		}
	}
	return nil
}

func foreignTag(n *yaml.Node) *yaml.Node {
	if n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.Tag, "!!") || strings.HasPrefix(n.Tag, "!!python") {
		return n
	}
	for _, c := range n.Content {
		if at := foreignTag(c); at != nil {
			return at
		}
	}
	return nil
}

// errorLine is the 1-based line, within the metadata, that the YAML parser names; 1 where it names none.
func errorLine(err error) int {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			return n
		}
	}
	return 1
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func errorText(err error) string {
	if _, ok := errors.AsType[*yaml.TypeError](err); ok {
		return "it is of another type"
	}
	return yamlLine.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
}

type repairedKey struct {
	name string
	line int
}

var topLevelKey = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]*):(?:[ \t]+(.*))?$`)

// repair finds the entries that are no YAML on their own and puts the values of those that are one line into quotes.
func repair(front []byte) ([]byte, []repairedKey, *fault) {
	lines := strings.Split(strings.TrimRight(string(front), "\n"), "\n")
	var keys []repairedKey
	for start := 0; start < len(lines); {
		end := start + 1
		for end < len(lines) && !topLevelKey.MatchString(lines[end]) {
			end++
		}
		entry := strings.Join(lines[start:end], "\n") + "\n"
		if _, err := parseYAML([]byte(entry)); err != nil && !strings.Contains(err.Error(), "unknown anchor") {
			name, quotedLine, ok := quoteLine(lines[start])
			at := start + 2 // of the file: the fence stands before
			switch {
			case !ok || strings.TrimSpace(strings.Join(lines[start+1:end], "")) != "":
				return nil, nil, &fault{
					"frontmatter_yaml", at + errorLine(err) - 1, "the metadata is no YAML: " + errorText(err),
					"put the value into quotes, or write it as a block after >-",
				}
			case restricts(name):
				return nil, nil, &fault{
					"frontmatter_yaml", at, fmt.Sprintf("%s is no YAML, and what restricts is not guessed: %s", name, errorText(err)), "put the value into quotes",
				}
			case len(keys) == maxRepairs:
				return nil, nil, &fault{"frontmatter_yaml", at, fmt.Sprintf("more than %d lines of the metadata are no YAML", maxRepairs), "put their values into quotes"}
			}
			lines[start] = quotedLine
			keys = append(keys, repairedKey{name, at})
		}
		start = end
	}
	return []byte(strings.Join(lines, "\n") + "\n"), keys, nil
}

// quoteLine puts the value of a key: value line into single quotes. Block scalars and anchors are left alone.
func quoteLine(line string) (name, fixed string, ok bool) {
	m := topLevelKey.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	value := strings.TrimSpace(m[2])
	if value == "" || value[0] == '|' || value[0] == '>' {
		return m[1], "", false
	}
	return m[1], m[1] + ": '" + strings.ReplaceAll(value, "'", "''") + "'", true
}

var heading = regexp.MustCompile(`^#{2,6} +([A-Za-z_-]+):( |$)`)

// headingMark finds a key that a Markdown formatter has turned into a heading: to YAML it is a comment.
func headingMark(front []byte) *fault {
	line := 1
	for text := range bytes.Lines(front) {
		line++
		if m := heading.FindSubmatch(bytes.TrimRight(text, "\r\n")); m != nil && canonicalKeys[folded(string(m[1]))] != "" {
			return &fault{
				"frontmatter_heading", line, fmt.Sprintf("a formatter turned the key %s into a heading, which YAML takes for a comment", m[1]),
				"remove the marks before the key",
			}
		}
	}
	return nil
}

// conflictMark finds the marks of an unfinished merge.
func conflictMark(front []byte) *fault {
	line := 1
	for text := range bytes.Lines(front) {
		line++
		if bytes.HasPrefix(text, []byte("<<<<<<< ")) || bytes.HasPrefix(text, []byte(">>>>>>> ")) {
			return &fault{"frontmatter_conflict", line, "the metadata holds the marks of an unfinished merge", "finish the merge"}
		}
	}
	return nil
}
