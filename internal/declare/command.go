package declare

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

var commandNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// The endings of files that are commands. The longest one counts.
const (
	endMarkdown = ".md"        // Claude Code, Cursor, this program
	endPrompt   = ".prompt.md" // VS Code
	endTOML     = ".toml"      // Gemini
)

// onlyEnding is what alone is a command in folders that hold other files of that kind, too.
var onlyEnding = map[string]string{".github/prompts": endPrompt, ".gemini/commands": endTOML}

// commandEnding is the ending by which a file below root is a command; empty for one that is none.
func commandEnding(root, file string) string {
	for _, ending := range []string{endPrompt, endMarkdown, endTOML} {
		if !strings.HasSuffix(file, ending) || path.Base(file) == ending {
			continue
		}
		if only := onlyEnding[root]; only == "" || only == ending {
			return ending
		}
		return ""
	}
	return ""
}

// commandPath is the name of a command in parts: the folders below root, and the file.
func commandPath(root, file string) []string {
	if root == "." {
		root = ""
	}
	name := strings.TrimSuffix(strings.TrimPrefix(file, root), commandEnding(root, file))
	return strings.Split(strings.TrimPrefix(name, "/"), "/")
}

// readCommand reads a slash command. Its name is its path below root: the folders and the file, joined with colons.
func readCommand(root, file string, raw []byte) *product {
	r := &reporter{path: file, vscode: strings.HasSuffix(file, endPrompt)}
	ending, parts := commandEnding(root, file), commandPath(root, file)
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
	if f != nil {
		r.fault(f)
		return r.failed()
	}
	d := capability.Declaration{ID: capability.ID{Kind: capability.KindCommand, Name: strings.Join(parts, ":")}, Source: file}
	if ending == endTOML {
		return r.promptTOML(d, text)
	}
	return r.promptMarkdown(d, text)
}

// promptMarkdown reads a command that is a document.
func (r *reporter) promptMarkdown(d capability.Declaration, text []byte) *product {
	doc, f := split(text)
	if f != nil {
		r.fault(f)
		return r.failedWith(restrictions(text))
	}
	if doc.front == nil {
		if f = misplaced(doc.body); f != nil && (f.line < 3 || metadataFrom(doc.body, f.line)) {
			r.warn(f.code, f.line, f.message+"; it is part of the prompt", f.hint)
		}
	}
	m, ok := r.readMetadata(doc.front)
	if !ok {
		return r.failedWith(restrictions(doc.front))
	}
	invocation, ok := r.invocation(m)
	if !ok {
		return r.failedWith(restrictions(doc.front))
	}
	command := &capability.Command{Body: doc.body, Description: r.description(m), Invocation: invocation}
	d.Serves = r.serves(m, r.extra(m))
	return r.command(d, command, restrictions(doc.front))
}

// command completes a declaration by what all dialects have in common.
func (r *reporter) command(d capability.Declaration, command *capability.Command, restricting []string) *product {
	if command.Description == "" {
		command.Description = firstLine(command.Body)
	}
	d.Summary, d.Digest, d.Config = summary(command.Description), capability.ContentDigest(command.Body), command
	return &product{declarations: []capability.Declaration{d}, problems: r.problems, restricting: restricting}
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
