package declare

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/vak-actors/vak-actors/capability"
)

// text reads a scalar as the text it was written as; false when the key is missing, null or no scalar, and then ok tells
// a missing one from one of another shape.
func (m metadata) text(key string) (value string, line int, ok bool) {
	f, written := m.get(key)
	if !written || f.value.Kind == yaml.ScalarNode && f.value.Tag == "!!null" {
		return "", 0, true
	}
	if f.value.Kind != yaml.ScalarNode {
		return "", f.line, false
	}
	return strings.TrimSpace(f.value.Value), f.line, true
}

// description reads the description, with a warning where it is longer than the format allows. A description of another
// shape than text counts as missing.
func (r *reporter) description(m metadata) string {
	text, line, ok := m.text("description")
	if !ok {
		r.warn("frontmatter_type", line, "description is no text and is ignored", "write it as description: one or two sentences")
		return ""
	}
	return r.checkDescription(text, line)
}

func (r *reporter) checkDescription(text string, line int) string {
	if n := utf8.RuneCountInString(text); n > maxDescription {
		r.warn("description_long", line, fmt.Sprintf("the description has %d characters, the format allows %d", n, maxDescription),
			"shorten it; other programs cut it or refuse the file")
	}
	return text
}

const maxDescription = 1024 // characters

// words reads a list of words in any of the forms in use: a text of words, a text with commas, a list of texts.
func words(n *yaml.Node) ([]string, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, true
		}
		return splitWords(n.Value), true
	case yaml.SequenceNode:
		var all []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, false
			}
			if w := strings.TrimSpace(item.Value); w != "" {
				all = append(all, w)
			}
		}
		return all, true
	default:
		return nil, false
	}
}

// splitWords splits at blanks and commas, but never inside parentheses: Bash(git add:*) is one word.
func splitWords(text string) []string {
	return splitAt(text, '(', ')', func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// splitAt cuts a text at separators that stand in no brackets. Blanks around a part and empty parts are left out.
func splitAt(text string, open, end rune, separates func(rune) bool) []string {
	var all []string
	depth, start := 0, 0
	flush := func(at int) {
		if part := strings.TrimSpace(text[start:at]); part != "" {
			all = append(all, part)
		}
	}
	for i, r := range text {
		switch {
		case depth == 0 && separates(r):
			flush(i)
			start = i + utf8.RuneLen(r)
		case r == open:
			depth++
		case r == end && depth > 0:
			depth--
		}
	}
	flush(len(text))
	return all
}

// truth reads a boolean in any of the spellings in use.
func truth(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}

// extra reads the metadata map of a skill. Values that are no text are kept as JSON; the format asks for texts, but
// programs put whole structures there.
func (r *reporter) extra(m metadata) map[string]string {
	f, written := m.get("metadata")
	if !written || f.value.Tag == "!!null" {
		return nil
	}
	if f.value.Kind != yaml.MappingNode {
		r.warn("frontmatter_type", f.line, "metadata is no mapping and is ignored", "write it as metadata: with key: value lines below")
		return nil
	}
	all := make(map[string]string, len(f.value.Content)/2)
	for i := 0; i+1 < len(f.value.Content); i += 2 {
		key, value := f.value.Content[i], f.value.Content[i+1]
		if _, twice := all[key.Value]; twice {
			r.warn("frontmatter_duplicate", 1+key.Line, quoted(key.Value)+" is written twice in metadata; the second is ignored", "remove one of the two")
			continue
		}
		if value.Kind == yaml.ScalarNode {
			all[key.Value] = value.Value
		} else if text, err := json.Marshal(plain(value)); err == nil {
			all[key.Value] = string(text)
		}
	}
	return all
}

// plain turns a node into what JSON can write. Aliases are named, not followed: they could grow without bound.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		all := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			all[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return all
	case yaml.SequenceNode:
		all := make([]any, len(n.Content))
		for i, c := range n.Content {
			all[i] = plain(c)
		}
		return all
	case yaml.AliasNode:
		return "*" + n.Value
	default:
		var v any
		if err := n.Decode(&v); err != nil {
			return n.Value
		}
		if _, err := json.Marshal(v); err != nil {
			return n.Value // infinities
		}
		return v
	}
}

// serves reads the domains a document declares: serves at the top level, or vak-serves under metadata, where strict
// validators of the format accept it.
func (r *reporter) serves(m metadata, extra map[string]string) capability.Domains {
	if f, written := m.get("serves"); written {
		list, ok := words(f.value)
		if !ok {
			r.warn("frontmatter_type", f.line, "serves is no list of words and is ignored", "write it as serves: web live-data")
			return nil
		}
		return capability.ParseDomains(list...)
	}
	return capability.ParseDomains(splitWords(extra["vak-serves"])...)
}
