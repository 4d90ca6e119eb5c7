package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quickStart are the two commands a newcomer types. The suites that run them read them from here and the README alike.
var quickStart = []string{
	"go run ./cmd/vak-actors serve --workspace examples/workspace --trust",
	`go run ./cmd/vak-actors call --workspace examples/workspace mcp '{"action":"call","server":"notes","tool":"note_add","arguments":{"text":"hello"}}'`,
}

func TestQuickStartIsInTheReadme(t *testing.T) {
	code := codeBlocks(read(t, "README.md"))
	for _, command := range quickStart {
		if !slices.Contains(code, command) {
			t.Errorf("the README lacks, on a line of its own in a code block: %s", command)
		}
	}
	for _, needed := range []string{"cmd/vak-actors", "examples/workspace/vak.toml", "examples/workspace/servers/notes"} {
		if _, err := os.Stat(filepath.Join(root, needed)); err != nil {
			t.Errorf("the quick start needs %s: %v", needed, err)
		}
	}
}

// TestCommandsInDocumentsExist: every `make x` that a document names is a target.
func TestCommandsInDocumentsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	mention := regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)")
	for _, doc := range tracked(t, "*.md") {
		for _, m := range mention.FindAllStringSubmatch(read(t, doc), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", doc, m[1])
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)

func TestLinksResolve(t *testing.T) {
	for _, doc := range tracked(t, "*.md") {
		if strings.Contains(doc, "testdata/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(prose(read(t, doc)), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // another scheme: it lies elsewhere
			}
			file := doc
			if target != "" {
				file = path.Join(path.Dir(doc), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(file, ".md") && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", doc, m[1], file)
			}
		}
	}
}

// TestCodeMapIsComplete: whoever looks for a package finds it in ARCHITECTURE.md.
func TestCodeMapIsComplete(t *testing.T) {
	text := read(t, "ARCHITECTURE.md")
	for _, p := range packages(t) {
		dir, l, ok := room(p.Rel)
		if !ok || l == outside || dir == "messages" {
			continue
		}
		if name := unit(p.Rel); !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`"+name+"/") {
			t.Errorf("the code map of ARCHITECTURE.md lacks `%s`", name)
		}
	}
}

func TestDocumentsKeepTheirForm(t *testing.T) {
	if n := strings.Count(read(t, "AGENTS.md"), "\n"); n >= 80 {
		t.Errorf("AGENTS.md has %d lines; it is read before every task and stays under 80", n)
	}
	if !regexp.MustCompile(`Last reviewed: 20\d\d-\d\d-\d\d`).MatchString(read(t, "ARCHITECTURE.md")) {
		t.Error("ARCHITECTURE.md does not say when it was last reviewed")
	}
	if !strings.Contains(read(t, "CHANGELOG.md"), "## Unreleased") {
		t.Error("CHANGELOG.md has no section Unreleased")
	}
	if !strings.Contains(read(t, "LICENSE"), "Apache License") {
		t.Error("LICENSE is not the Apache License")
	}
}

// codeBlocks returns the lines that stand in fenced code blocks.
func codeBlocks(markdown string) []string {
	code, _ := split(markdown)
	return code
}

// prose returns the text outside of fenced code blocks and code spans.
func prose(markdown string) string {
	_, text := split(markdown)
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(strings.Join(text, "\n"), "")
}

func split(markdown string) (code, text []string) {
	inside := false
	for line := range strings.SplitSeq(markdown, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inside = !inside
		case inside:
			code = append(code, strings.TrimSpace(line))
		default:
			text = append(text, line)
		}
	}
	return code, text
}

// anchors returns the names that headings can be linked by, as GitHub makes them.
func anchors(markdown string) []string {
	_, text := split(markdown)
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	var names []string
	for _, line := range text {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			name := drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return names
}
