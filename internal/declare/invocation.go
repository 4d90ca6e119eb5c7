package declare

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/phrase"
)

// knownKeys are the keys of a document's metadata that are read.
var knownKeys = []string{
	"name", "description", "license", "compatibility", "metadata", "allowed-tools", "disallowed-tools", "when_to_use",
	"argument-hint", "arguments", "disable-model-invocation", "user-invocable", "model", "effort", "context", "agent",
	"background", "paths", "shell", "hooks", "serves",
}

// otherKeys are names under which other programs, or earlier versions of them, have a known key.
var otherKeys = map[string]string{
	"userinvokable": "user-invocable", "disableagentinvocation": "disable-model-invocation",
	"hidefromslashcommandtool": "disable-model-invocation", "whentouse": "when_to_use",
}

var canonicalKeys = func() map[string]string {
	all := maps.Clone(otherKeys)
	for _, key := range knownKeys {
		all[folded(key)] = key
	}
	return all
}()

// folded is a key without what authors vary: case, hyphens, underscores.
func folded(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, key)
}

// restricts reports whether a key narrows what a document may do. Such a key is never repaired by guess: a reading that is
// wrong in one letter could widen it.
func restricts(key string) bool {
	switch name := folded(key); canonicalKeys[name] {
	case "allowed-tools", "disallowed-tools", "disable-model-invocation", "user-invocable":
		return true
	default:
		return name == "tools"
	}
}

// spell gives keys that were meant their known names, and names what looks like one and is not read.
func (r *reporter) spell(m *metadata) {
	for i := range m.fields {
		f := &m.fields[i]
		if slices.Contains(knownKeys, f.key) {
			continue
		}
		meant, known := canonicalKeys[folded(f.key)]
		_, written := m.get(meant)
		switch {
		case known && written:
			r.warn("frontmatter_key", f.line, fmt.Sprintf("%s is not read, for %s is written, too", quoted(f.key), meant), "remove it")
		case known:
			r.warn("frontmatter_key", f.line, fmt.Sprintf("%s was read as %s", quoted(f.key), meant), "write "+meant)
			f.key = meant
		case r.vscode && f.key == "tools":
			f.key = "allowed-tools"
		case folded(f.key) == "tools":
			r.warn("frontmatter_key", f.line, "tools is not read and restricts nothing", "write allowed-tools, if it was meant")
		default:
			if near := nearKey(f.key); near != "" {
				r.warn("frontmatter_key", f.line, fmt.Sprintf("the key %s is not known", quoted(f.key)), "write "+near+", if it was meant")
			}
		}
	}
}

// nearKey is the long key that differs from key by a slip of the fingers. Short ones resemble too much.
func nearKey(key string) string {
	const short, slips = 9, 2
	for _, known := range knownKeys {
		if len(known) >= short && phrase.Distance(strings.ToLower(key), known, slips) <= slips {
			return known
		}
	}
	return ""
}

var argumentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// invocation reads what a document says of how it is called and run. It is false where a restriction cannot be read:
// then nobody may call the document at all.
func (r *reporter) invocation(m metadata) (capability.Invocation, bool) {
	var v capability.Invocation
	var allowed, disallowed bool
	v.ArgumentHint = argumentHint(m)
	v.Arguments = r.arguments(m)
	v.AllowedTools, allowed = r.tools(m, "allowed-tools")
	v.DisallowedTools, disallowed = r.tools(m, "disallowed-tools")
	v.Model = r.short(m, "model")
	v.Agent = r.short(m, "agent")
	v.Effort = r.oneOf(m, "effort", "low", "medium", "high", "xhigh", "max")
	v.Context = r.oneOf(m, "context", "fork")
	v.Shell = r.oneOf(m, "shell", "bash", "powershell")
	v.Background = r.flag(m, "background", false)
	// Where the text of a restriction means nothing, it restricts.
	v.DisableModelInvocation = r.flag(m, "disable-model-invocation", true)
	if f, written := m.get("user-invocable"); written && f.value.Tag != "!!null" {
		v.DisableUserInvocation = !r.flag(m, "user-invocable", false)
	}
	if f, written := m.get("hooks"); written && f.value.Tag != "!!null" {
		r.warn("frontmatter_unsupported", f.line, "hooks of a document are not supported and are never asked", "declare them in [[hooks]] of vak.toml")
	}
	return v, allowed && disallowed
}

// tools reads a list of tools. It never grants anything; but one that cannot be read must not count as none.
func (r *reporter) tools(m metadata, key string) ([]string, bool) {
	f, written := m.get(key)
	if !written {
		return nil, true
	}
	list, ok := words(f.value)
	if !ok {
		r.error("frontmatter_type", f.line, key+" is no list of tools", "write it as "+key+": Read Grep Bash(git:*)")
	}
	return list, ok
}

// short reads a word or two that are handed on as they are.
func (r *reporter) short(m metadata, key string) string {
	const most = 256
	text, line, ok := m.text(key)
	if !ok || len(text) > most {
		r.warn("frontmatter_type", line, fmt.Sprintf("%s is no text of at most %d bytes and is ignored", key, most), "write it as "+key+": name")
		return ""
	}
	return text
}

// plainText reads a text of any length.
func (r *reporter) plainText(m metadata, key string) string {
	text, line, ok := m.text(key)
	if !ok {
		r.warn("frontmatter_type", line, key+" is no text and is ignored", "write it as "+key+": text")
	}
	return text
}

// oneOf reads one of a few words.
func (r *reporter) oneOf(m metadata, key string, choices ...string) string {
	text, line, ok := m.text(key)
	if ok && (text == "" || slices.Contains(choices, text)) {
		return text
	}
	r.warn("frontmatter_type", line, fmt.Sprintf("%s is none of %s and is ignored", key, strings.Join(choices, ", ")), "write one of them, or remove the line")
	return ""
}

// flag reads a boolean. What is neither true nor false counts as unclear.
func (r *reporter) flag(m metadata, key string, unclear bool) bool {
	f, written := m.get(key)
	if !written || f.value.Tag == "!!null" {
		return false
	}
	value, ok := truth(f.value)
	if !ok {
		r.warn("frontmatter_type", f.line, fmt.Sprintf("%s is neither true nor false and counts as %t", key, unclear), "write true or false")
		return unclear
	}
	return value
}

// arguments reads the names of arguments: a text of words, a list of words, or a list of mappings with a name.
func (r *reporter) arguments(m metadata) []string {
	f, written := m.get("arguments")
	if !written {
		return nil
	}
	list, ok := words(f.value)
	if !ok {
		list, ok = namesIn(f.value)
	}
	for _, name := range list {
		ok = ok && argumentName.MatchString(name)
	}
	if !ok {
		r.warn("frontmatter_type", f.line, "arguments is no list of names and is ignored", "write it as arguments: file mode")
		return nil
	}
	return list
}

func namesIn(list *yaml.Node) ([]string, bool) {
	if list.Kind != yaml.SequenceNode {
		return nil, false
	}
	var names []string
	for _, item := range list.Content {
		name := ""
		for i := 0; i+1 < len(item.Content) && item.Kind == yaml.MappingNode; i += 2 {
			if item.Content[i].Value == "name" && item.Content[i+1].Kind == yaml.ScalarNode {
				name = strings.TrimSpace(item.Content[i+1].Value)
			}
		}
		if name == "" {
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

// argumentHint is what its author wrote: [file] is a list to YAML and a hint to people.
func argumentHint(m metadata) string {
	f, written := m.get("argument-hint")
	switch {
	case !written:
		return ""
	case f.value.Kind == yaml.ScalarNode:
		return strings.TrimSpace(f.value.Value)
	}
	return f.source
}

// globs reads the patterns of files that a skill is about: a list, or a text with commas.
func (r *reporter) globs(m metadata) []string {
	f, written := m.get("paths")
	if !written || f.value.Tag == "!!null" {
		return nil
	}
	if f.value.Kind == yaml.ScalarNode {
		return splitAt(f.value.Value, '{', '}', func(c rune) bool { return c == ',' })
	}
	list, ok := words(f.value)
	if !ok {
		r.warn("frontmatter_type", f.line, "paths is no list of globs and is ignored", "write it as paths: src/**/*.go, docs/**")
	}
	return list
}
