package declare

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/capability"
)

// readable holds what every reader must keep whatever it reads.
func readable(t *testing.T, p *product, text []byte) {
	t.Helper()
	lines := bytes.Count(text, []byte("\n")) + 1
	for _, q := range p.problems {
		if q.Code == "" || q.Message == "" || !utf8.ValidString(q.Message+q.Hint) || q.Line < 0 || q.Line > lines+1 {
			t.Errorf("problem %+v of a text of %d lines", q, lines)
		}
	}
	seen := map[capability.ID]bool{}
	for _, d := range p.declarations {
		if err := d.Check(); err != nil || seen[d.ID] {
			t.Errorf("declaration %s: %v", d.ID, err)
		}
		check := checkName
		if d.ID.Kind == capability.KindSkill {
			check = checkSkillName
		}
		if d.ID.Kind != capability.KindHook && check(d.ID.Name) != nil {
			t.Errorf("name %q", d.ID.Name)
		}
		seen[d.ID] = true
	}
	if _, err := capability.NewSet(p.declarations, nil); err != nil {
		t.Error(err)
	}
	if len(p.declarations) == 0 && p.config == nil && len(p.problems) == 0 && len(bytes.TrimSpace(text)) == 0 {
		t.Error("an empty file is neither declared nor reported")
	}
}

var documentSeeds = []string{
	"", skillText, "---\r\nname: a\r\ndescription: b\r\n---\r\n", "---\nname: a\ndescription: [x] [y]\n---\n", "---\n---\n", "---", "\xef\xbb\xbf---\na: &a [*a]\n---\n",
	"---\nallowed-tools: Bash(a b), Read\nmetadata: {a: {b: [c]}}\nserves: web\n---\n", "---\na: !!binary x\nb: .inf\nmetadata: {x: .nan}\n---\n", "```\n---\n", "---\n? x\n---\n",
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range documentSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, fault := normalise(raw)
		if fault != nil {
			return
		}
		doc, fault := split(text)
		if fault != nil {
			return
		}
		if len(doc.front) > maxFrontmatter || !bytes.HasSuffix(text, doc.body) || bytes.Count(text[:len(text)-len(doc.body)], []byte("\n")) > doc.bodyLine {
			t.Errorf("front of %d bytes, body on line %d", len(doc.front), doc.bodyLine)
		}
		r := &reporter{path: "x"}
		if m, ok := r.readMetadata(doc.front); ok {
			r.extra(m)
		} else if len(r.problems) == 0 {
			t.Error("metadata is refused without a reason")
		}
	})
}

func FuzzSkill(f *testing.F) {
	for _, s := range documentSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := readSkill("skills/a/SKILL.md", text)
		readable(t, p, text)
		if len(p.declarations) == 0 && len(p.problems) == 0 {
			t.Error("a skill is neither declared nor reported")
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, s := range documentSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := readCommand("commands", "commands/a/b.md", text)
		readable(t, p, text)
		if len(p.declarations) == 0 && len(p.problems) == 0 {
			t.Error("a command is neither declared nor reported")
		}
	})
}

func FuzzCommandTOML(f *testing.F) {
	for _, s := range []string{"", "prompt = 'x'", "description = \"d\"\nprompt = \"\"\"\nx\n\"\"\"\n", "[a]\nb = 1", "a.b = [1, {c = 2}]", "prompt = \"\\q\"", "a = \"\"\"\n", "= 1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := readCommand(".gemini/commands", ".gemini/commands/a/b.toml", text)
		readable(t, p, text)
		if len(p.declarations) == 0 && len(p.problems) == 0 {
			t.Error("a command is neither declared nor reported")
		}
	})
}

func FuzzMCPJSON(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"mcpServers": {"a": {"command": "c", "args": ["x"], "env": {"A": 1}}}}`, `{"a": {"type": "http", "url": "https://h", "headers": {"A": "b"}}}`,
		"// x\n{\"a\": {\"command\": [\"a\", \"b\"],},}", `{"mcpServers": null}`, `{"mcpServers": {"a": null, "a": {}}}`, `{"a": {"transport": {}}}`, "/*", `{"a": "\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { readable(t, readMCP(".mcp.json", text), text) })
}
