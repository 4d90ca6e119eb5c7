package declare

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vak-actors/vak-actors/capability"
)

var commandNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// readCommand reads a slash command. Its name is its path below root: the folders and the file, joined with colons.
func readCommand(root, file string, raw []byte) *product {
	r := &reporter{path: file}
	name := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), path.Ext(file))
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if !commandNamePattern.MatchString(part) {
			r.error("command_name", 0, fmt.Sprintf("%s is no name of a command: it has 1 to 64 of A-Z a-z 0-9 _ -", quoted(part)), "rename the file or folder")
			return r.failed()
		}
	}
	text, f := normalise(raw)
	if f == nil && len(bytes.TrimSpace(text)) == 0 {
		f = &fault{"file_empty", 0, "the file is empty", "write a prompt, or remove the file"}
	}
	var doc document
	if f == nil {
		doc, f = split(text)
	}
	if f != nil {
		r.fault(f)
		return r.failed()
	}
	if doc.front == nil {
		if f = misplaced(doc.body); f != nil && f.line < 3 {
			r.warn(f.code, f.line, f.message+"; it is part of the prompt", f.hint)
		}
	}
	m, ok := r.readMetadata(doc.front)
	if !ok {
		return r.failed()
	}
	command := &capability.Command{Body: doc.body, Description: r.description(m), Invocation: capability.Invocation{ArgumentHint: argumentHint(m)}}
	if command.Description == "" {
		command.Description = firstLine(doc.body)
	}
	d := capability.Declaration{
		ID: capability.ID{Kind: capability.KindCommand, Name: strings.Join(parts, ":")}, Origin: workspace,
		Summary: summary(command.Description), Serves: r.serves(m, r.extra(m)), Digest: capability.ContentDigest(doc.body),
		Source: file, Config: command,
	}
	return &product{declarations: []capability.Declaration{d}, problems: r.problems}
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

// firstLine is the first line of a prompt that says something, without the marks of a heading.
func firstLine(body []byte) string {
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
			return line
		}
	}
	return ""
}
