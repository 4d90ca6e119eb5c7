package declare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every problem code with its line, and a good neighbour that must not suffer.
func TestProblems(t *testing.T) {
	const front = "---\nname: x\ndescription: d\n"
	long := strings.Repeat("d", 1025)
	for _, c := range []struct {
		file, text, want string
		declared         bool
	}{
		{"skills/x/SKILL.md", "", "e file_empty skills/x/SKILL.md:0", false},
		{"skills/x/SKILL.md", "caf\xe9\n", "e file_not_text skills/x/SKILL.md:1", false},
		{"skills/x/SKILL.md", front + "---\n\x00\n", "e file_not_text skills/x/SKILL.md:5", false},
		{"skills/x/SKILL.md", "# X\n", "e frontmatter_missing skills/x/SKILL.md:1", false},
		{"skills/x/SKILL.md", "\n" + front + "---\n", "e frontmatter_misplaced skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "Text\n" + front + "---\n", "e frontmatter_misplaced skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "```yaml\n" + front + "---\n```\n", "e frontmatter_misplaced skills/x/SKILL.md:1", false},
		{"skills/x/SKILL.md", front, "e frontmatter_unclosed skills/x/SKILL.md:1", false},
		{"skills/x/SKILL.md", front + "--------\nBody\n", "e frontmatter_unclosed skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "origin: here---\nBody\n", "e frontmatter_unclosed skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "<<<<<<< HEAD\n---\nBody\n", "e frontmatter_conflict skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "name: y\n---\n", "e frontmatter_duplicate skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", "---\n- a\n---\n", "e frontmatter_yaml skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", front + "? [a]\n: b\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "metadata: {[a]: b}\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "metadata:\n  a: 1\n  a: 2\n---\n", "w frontmatter_duplicate skills/x/SKILL.md:6", true},
		{"skills/x/SKILL.md", front + "...\nallowed-tools: Read\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "--- {allowed-tools: Read}\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "<<: {allowed-tools: Read}\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "\tallowed-tools: Read\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", "---\n## name: x\ndescription: d\n---\n", "e frontmatter_heading skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "---\nname: x\ndescription: caf\u0080\n---\n", "e frontmatter_yaml skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", front + "more: a\n  b: c\n---\n", "e frontmatter_yaml skills/x/SKILL.md:5", false},
		{"skills/x/SKILL.md", front + "allowed-tools: [Read] [Write]\n---\n", "e frontmatter_yaml skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", front + "allowed-tools:\n  Read: yes\n---\n", "e frontmatter_type skills/x/SKILL.md:4", false},
		{"skills/x/SKILL.md", "---\nname: x\ndescription: use: when\n---\n", "w frontmatter_repaired skills/x/SKILL.md:3", true},
		{"skills/x/SKILL.md", "---\nname: x\ndescription: 触发词: 'a' — Triggers on: 'b'\n---\n", "w frontmatter_repaired skills/x/SKILL.md:3", true},
		{"skills/x/SKILL.md", front + "tag: !health\n---\n", "w frontmatter_repaired skills/x/SKILL.md:4", true},
		{"skills/x/SKILL.md", front + "metadata: text\n---\n", "w frontmatter_type skills/x/SKILL.md:4", true},
		{"skills/x/SKILL.md", front + "serves: {a: b}\n---\n", "w frontmatter_type skills/x/SKILL.md:4", true},
		{"skills/x/SKILL.md", front + "disable-model-invocation: maybe\n---\n", "w frontmatter_type skills/x/SKILL.md:4", true},
		{"skills/x/SKILL.md", front + "allowed_tools: Read\n---\n", "w frontmatter_key skills/x/SKILL.md:4", true},
		{"skills/x/SKILL.md", "---\nname: x\ndescription: [a]\n---\nBody\n", "w frontmatter_type skills/x/SKILL.md:3", true},
		{"skills/x/SKILL.md", "---\nname: x\n---\nBody\n", "w skill_description skills/x/SKILL.md:1", true},
		{"skills/x/SKILL.md", "---\nname: x\n---\n", "e skill_description skills/x/SKILL.md:1", false},
		{"skills/x/SKILL.md", "---\nname: x\ndescription: " + long + "\n---\n", "w description_long skills/x/SKILL.md:3", true},
		{"skills/x/SKILL.md", "---\ndescription: d\n---\n", "w skill_name_missing skills/x/SKILL.md:1", true},
		{"skills/y/SKILL.md", front + "---\n", "w skill_name_mismatch skills/y/SKILL.md:2", true},
		{"skills/X y/SKILL.md", "---\nname: X y\ndescription: d\n---\n", "w skill_name_style skills/X y/SKILL.md:2", true},
		{"skills/x/SKILL.md", "---\nname: a/b\ndescription: d\n---\n", "w skill_name_style skills/x/SKILL.md:2", true},
		{"skills/x/SKILL.md", "---\nname: /b\ndescription: d\n---\n", "e skill_name skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "---\nname: a//b\ndescription: d\n---\n", "e skill_name skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "---\nname: ../b\ndescription: d\n---\n", "e skill_name skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "---\nname: \"a\\u0007\"\ndescription: d\n---\n", "e skill_name skills/x/SKILL.md:2", false},
		{"skills/x/SKILL.md", "---\nname: [a]\ndescription: d\n---\n", "e skill_name skills/x/SKILL.md:2", false},
		{"skills/x/README.md", "no skill", "w skill_file_missing skills/x:0", false},
		{"skills/x/SKILL.MD", front + "---\n", "w skill_file_name skills/x/SKILL.MD:0", false},
		{"skills/x/skill.md", front + "---\n", "w skill_file_name skills/x/skill.md:0", true},

		{"commands/x.md", "", "e file_empty commands/x.md:0", false},
		{"commands/a b.md", "Do.", "e command_name commands/a b.md:0", false},
		{"commands/x.md", "\n---\na: b\n---\nDo.", "w frontmatter_misplaced commands/x.md:2", true},
		{"commands/x.md", "---\na: b\nDo.", "e frontmatter_unclosed commands/x.md:1", false},
		{"commands/x.md", "---\nargument-hint: <a: b>\n---\nDo.", "w frontmatter_repaired commands/x.md:2", true},

		{".mcp.json", "", "e file_empty .mcp.json:0", false},
		{".mcp.json", "{\n  \"mcpServers\": {,}\n}", "e mcp_syntax .mcp.json:2", false},
		{".mcp.json", "[]", "e mcp_syntax .mcp.json:1", false},
		{".mcp.json", strings.Repeat(`{"a":`, 100_000), "e mcp_syntax .mcp.json:1", false},
		{".mcp.json", "{} {}", "e mcp_syntax .mcp.json:1", false},
		{".mcp.json", "{\"inputs\": []}", "w mcp_root .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": []}", "e mcp_entry .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\n\"x\": 1}}", "e mcp_entry .mcp.json:2", false},
		{".mcp.json", "{\"mcpServers\": {\n\"x\": {\"url\": \"https://h\"}}}", "w mcp_type_missing .mcp.json:2", true},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"type\": \"ws\", \"url\": \"https://h\"}}}", "w server_unready .mcp.json:1", true},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"type\": \"pipe\", \"command\": \"c\"}}}", "e mcp_type .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"transport\": {\"url\": \"https://h\"}}}}", "e mcp_unsupported .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"c\", \"args\": \"a\"}}}", "e mcp_type .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"c\", \"env\": {\n\"A\": []}}}}", "e mcp_type .mcp.json:2", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"type\": \"http\", \"url\": \"\"}}}", "e server_url .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"args\": []}}}", "e server_transport .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"../x\": {\"command\": \"c\"}}}", "w server_name_style .mcp.json:1", true},
		{".mcp.json", "{\"mcpServers\": {\"../\": {\"command\": \"c\"}}}", "e server_name .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"c\", \"disabled\": false, \"disabled\": true}}}", "e mcp_duplicate .mcp.json:1", false},
		{".mcp.json", "{\"mcpServers\": {\"x\": {\"command\": \"c\",},}}", "w mcp_jsonc .mcp.json:0", true},
		{".mcp.json", "{\"x\": {\"command\": \"c\", \"cmd\": 1}}", "w mcp_unknown_key .mcp.json:1", true},
		{".mcp.json", "{\"X y\": {\"command\": \"c\"}}", "w server_name_style .mcp.json:1", true},
		{".mcp.json", "{\"x\": {\"command\": \"c\", \"autoApprove\": [\"a\"]}}", "w mcp_grant .mcp.json:1", true},
		{".mcp.json", "{\"x\": {\"command\": \"c\", \"timeout\": 60}}", "w mcp_timeout .mcp.json:1", true},
		{".mcp.json", "{\"x\": {\"command\": \"c\", \"args\": [\"--api-key\", \"CANARY\"]}}", "w literal_secret .mcp.json:1", true},
		{"mcp.json", "{}", "w file_not_read mcp.json:0", false},
		{"vak.toml", "[mcp_servers.x]\ncommand = \"c\"\n", "e config_unknown_key vak.toml:1", false},
		{"vak.toml", "[mcp.servers.\"x/y\"]\ncommand = \"c\"\n", "e server_name vak.toml:1", false},
	} {
		t.Run(c.want+" "+c.text[:min(len(c.text), 20)], func(t *testing.T) {
			r := scan(t, files(c.file, c.text, "skills/good/SKILL.md", "---\nname: good\ndescription: d\n---\n", "commands/good.md", "Do.\n"))
			if !slices.Contains(codes(r), c.want) {
				t.Errorf("problems %q, want %q", codes(r), c.want)
			}
			got := slices.DeleteFunc(ids(r), func(id string) bool { return strings.HasSuffix(id, ":good") })
			if len(r.Declarations)-len(got) != 2 {
				t.Errorf("a bad %s cost its neighbours: %v left", c.file, ids(r))
			}
			if (len(got) > 0) != c.declared {
				t.Errorf("declared %v, want declared %t", got, c.declared)
			}
			for _, p := range r.Problems {
				if strings.Contains(p.Message+p.Hint, "CANARY") {
					t.Errorf("a secret is told: %+v", p)
				}
			}
		})
	}
}

// Metadata of 10 MB is refused by its own bound, and nothing else is lost.
func TestHugeFrontmatter(t *testing.T) {
	big := "---\nname: x\ndescription: |\n" + strings.Repeat("  line\n", 10<<20/7)
	for name, text := range map[string]string{"closed": big + "---\nBody\n", "open": big} {
		r := scan(t, files("skills/x/SKILL.md", text, "skills/a/SKILL.md", skillText))
		if diff := cmp.Diff([]string{"e frontmatter_too_large skills/x/SKILL.md:1"}, codes(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff([]string{"skill:a"}, ids(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r := scan(t, files("skills/x/SKILL.md", skillText+strings.Repeat("x", 2<<20)))
	if diff := cmp.Diff([]string{"e file_too_large skills/x/SKILL.md:0"}, codes(r)); diff != "" {
		t.Error(diff)
	}
}

// Hostile files fill no report, and cost no more than their length: this test would run for minutes.
func TestHostileFiles(t *testing.T) {
	var keys, members, unknown strings.Builder
	for i := range 60_000 {
		if i < 8000 {
			fmt.Fprintf(&keys, "k%d: 1\n", i)
		}
		fmt.Fprintf(&members, "%q: 1,\n", fmt.Sprint(i))
		fmt.Fprintf(&unknown, "k%d = 1\n", i)
	}
	for name, text := range map[string]string{
		"skills/x/SKILL.md": "---\n" + keys.String() + "---\n",
		".mcp.json":         `{"x": {"command": "c",` + members.String() + `"y": 1}}`,
		"vak.toml":          unknown.String(),
		"commands/x.md":     "---\na: " + strings.Repeat("[", 60_000) + "\n---\n",
	} {
		r := scan(t, files(name, text))
		if n := len(r.Problems); n == 0 || n > maxProblems+1 {
			t.Errorf("%s: %d problems", name, n)
		}
	}
}
