package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/cmd/vak-actors/cli"
)

// broken are inputs that cannot be read as their author meant them, in every file that a workspace has, each with the line
// that is to blame; 0: the file as a whole.
var broken = []struct {
	file, text string
	line       int
}{
	{"vak.toml", "a = \n", 1},
	{"vak.toml", "listen = 1\n", 1},
	{"vak.toml", "[permissions]\nmode = \"bold\"\n", 2},
	{"vak.toml", "[permissions]\nallow = [\"read\",\n  \"write(\"]\n", 3},
	{"vak.toml", "[permissions]\nask = [\n  \"\"]\n", 3},
	{"vak.toml", "[permissions]\ndeny = [\"a\", \"write([)\"]\n", 2},
	{"vak.toml", "[permissions]\ndeny = [\n\"bash(a\"]\n", 3},
	{"vak.toml", "[permissions]\ndeny = \"read\"\n", 2},
	{"vak.toml", "[permissions]\nalow = [\"read\"]\n", 2},
	{"vak.toml", "[channels.web]\ntools = 1\n", 2},
	{"vak.toml", "[channels.web]\n[channels.web.tools]\nallow = [\"[\"]\n", 3},
	{"vak.toml", "[channels.web]\n[channels.web.tools]\ndeny = [\"\"]\n", 3},
	{"vak.toml", "[channels.web]\ntoools = []\n", 2},
	{"vak.toml", "[pins]\ntools = \"maybe\"\n", 2},
	{"vak.toml", "[pins]\ntool = \"keep\"\n", 2},
	{"vak.toml", "[[hooks]]\nevent = \"pre-tool-us\"\ncommand = \"x\"\n", 2},
	{"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\n", 1},
	{"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"x\"\nmatch = \"[\"\n", 4},
	{"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"x\"\ntimeout = \"soon\"\n", 4},
	{"vak.toml", "[mcp.servers.x]\n", 1},
	{"vak.toml", "[mcp.servers.x]\ncommand = \"\"\n", 1},
	{"vak.toml", "[mcp.servers.x]\ncommand = \"a\"\nurl = \"https://h\"\n", 3},
	{"vak.toml", "[mcp.servers.x]\nurl = \"ftp://h\"\n", 2},
	{"vak.toml", "[mcp.servers.x]\ncommand = \"a\"\nisolation = \"none\"\n", 3},
	{".vak/config.toml", "[permissions]\ndeny = [\"write(\"]\n", 2},
	{".vak/config.toml", "[mcp.servers.x]\ncomand = \"a\"\n", 2},
	{".mcp.json", "{\n", 2},
	{".mcp.json", "", 0},
	{".mcp.json", "{\"mcpServers\": {\n\"x\": {\"command\": 1}}}", 2},
	{".cursor/mcp.json", "{\"mcpServers\":\n{\"x\": {\"url\": \"nowhere\"}}}", 2},
	{".vscode/mcp.json", "{\"servers\": {\n\"x\": {\"type\": \"pipe\", \"command\": \"c\"}}}", 2},
	{".codex/config.toml", "[mcp_servers.x]\ncommand = []\n", 1},
	{".codex/config.toml", "[mcp_servers\n", 1},
	{".gemini/settings.json", "{\"mcpServers\": {\n\"x\": {\"args\": []}}}", 2},
	{".claude/settings.json", "{\"permissions\":\n{\"deny\": [\"Bash(\"]}}", 2},
	{".claude/settings.json", "{\"permissions\":\n{\"allow\": [\"mcp__*\"]}}", 2},
	{".claude/settings.json", "{\"permissions\":\n{\"ask\": \"Bash\"}}", 1},
	{".claude/settings.json", "{\"permissions\":\n{\"defaultMode\": \"bold\"}}", 2},
	{".claude/settings.json", "{\"hooks\": {\n\"PreTool\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}", 2},
	{".claude/settings.local.json", "{\"hooks\": {\"PreToolUse\": [\n{\"matcher\": \"(\", \"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}", 2},
	{".claude/settings.local.json", "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [\n{\"type\": \"command\"}]}]}}", 2},
	{".cursor/hooks.json", "{\"version\": 1, \"hooks\": {\n\"beforeEverything\": [{\"command\": \"x\"}]}}", 2},
	{".codex/hooks.json", "{\"hooks\": {\"PreToolUse\":\n7}}", 1},
	{"skills/x/SKILL.md", "---\nname: x\n- y\n---\n", 2},
	{"skills/x/SKILL.md", "no head", 1},
	{"skills/x/README.md", "no skill", 0},
	{"commands/x.md", "---\na: b\nDo.", 1},
	{"commands/a b.md", "Do.", 0},
	{".gemini/commands/x.toml", "prompt = 1\n", 1},
	{".gemini/commands/x.toml", "description = \"d\"\n", 0},
}

// Whatever cannot be read is told with its file, its line, a code, what is wrong and what to do about it.
func TestEveryBrokenFileIsTold(t *testing.T) {
	for _, c := range broken {
		t.Run(c.file+" "+c.text, func(t *testing.T) {
			workspace := t.TempDir()
			at := filepath.Join(workspace, filepath.FromSlash(c.file))
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			code := cli.Main([]string{"check", "--workspace", workspace, "--json", "--strict"}, strings.NewReader(""), &out, &errs)
			var said struct{ Problems []capability.Problem }
			if err := json.Unmarshal(out.Bytes(), &said); err != nil || code != 1 {
				t.Fatalf("exit code %d, %v\n%s%s", code, err, out.Bytes(), errs.Bytes())
			}
			found := false
			for _, p := range said.Problems {
				if p.Code == "" || p.Message == "" || p.Hint == "" || !strings.HasPrefix(c.file, p.Path) {
					t.Errorf("something is missing: %+v", p)
				}
				found = found || p.Line == c.line
			}
			if !found {
				t.Errorf("nothing is told of line %d: %+v", c.line, said.Problems)
			}
		})
	}
}
