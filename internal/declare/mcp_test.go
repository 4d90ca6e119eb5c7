package declare

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

// servers reads one file of a workspace.
func servers(t *testing.T, file, text string) (map[string]*capability.Server, Result) {
	t.Helper()
	r := scan(t, files(file, text))
	all := map[string]*capability.Server{}
	for _, d := range r.Declarations {
		all[d.ID.Name] = d.Config.(*capability.Server)
	}
	return all, r
}

// Codex: both spellings of its table, dotted keys, its keys for headers and times, and its errors.
func TestCodex(t *testing.T) {
	const file = ".codex/config.toml"
	got, r := servers(t, file, `[mcp_servers."x"]
command = "c"
env.KEY = "v"
env_vars = ["HOME"]
startup_timeout_sec = 20.5
tool_timeout_sec = 90
enabled_tools = ["a"]
disabled_tools = ["b"]
[mcp_servers.web]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { A = "1" }
env_http_headers = { B = "VAR" }
[mcp_servers.off]
command = "c"
enabled = false
[mcp_servers.both]
command = "c"
http_headers = { A = "1" }
[mcp_servers.inline]
url = "https://h/mcp"
bearer_token = "x"
[mcp_servers.none]
[mcp_servers.seconds]
command = "c"
tool_timeout_sec = 120000
[mcp_servers.tools]
command = "c"
tools.t.approval_mode = "approve"
`)
	if diff := cmp.Diff([]string{"seconds", "tools", "web", "x"}, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatal(diff)
	}
	x, web := got["x"], got["web"]
	if x.Env["KEY"] != "v" || x.Env["HOME"] != "${HOME:-}" || x.StartTimeout != 20500*time.Millisecond || x.CallTimeout != 90*time.Second ||
		x.EnabledTools[0] != "a" || x.DisabledTools[0] != "b" {
		t.Errorf("%+v", x)
	}
	if web.Transport != capability.TransportHTTP || web.Headers["Authorization"] != "Bearer ${TOKEN}" || web.Headers["A"] != "1" || web.Headers["B"] != "${VAR}" {
		t.Errorf("%+v", web)
	}
	for _, want := range []string{
		"e server_transport " + file + ":17", "e mcp_unsupported " + file + ":22", "e server_transport " + file + ":23", "w mcp_timeout " + file + ":26",
		"w mcp_grant " + file + ":29",
	} {
		if !slices.Contains(codes(r), want) {
			t.Errorf("no %s in %v", want, codes(r))
		}
	}

	got, r = servers(t, file, "[mcp.servers.\"y\"]\ncommand = \"c\"\nenv.KEY = \"v\"\n")
	if got["y"] == nil || got["y"].Env["KEY"] != "v" || !slices.Contains(codes(r), "w mcp_root "+file+":1") {
		t.Errorf("%v, %v", got, codes(r))
	}
	if _, r = servers(t, file, "model = \"m\"\n"); len(r.Problems) > 0 {
		t.Errorf("settings without servers: %v", r.Problems)
	}
}

// Each root is known in every file, and no two are merged.
func TestRoots(t *testing.T) {
	for root, text := range map[string]string{
		"servers": `{"servers": {"x": {"command": "c"}}}`, "mcp.servers": `{"mcp": {"servers": {"x": {"command": "c"}}}}`,
		"mcp.servers in one": `{"mcp.servers": {"x": {"command": "c"}}}`, "context_servers": `{"context_servers": {"x": {"command": {"path": "c"}}}}`,
		"mcp": `{"mcp": {"x": {"type": "local", "command": ["c"]}}}`, "mcp_servers": `{"mcp_servers": {"x": {"command": "c"}}}`,
	} {
		got, r := servers(t, ".mcp.json", text)
		if got["x"] == nil || got["x"].Command != "c" || !slices.Contains(codes(r), "w mcp_root .mcp.json:1") {
			t.Errorf("%s: %v, %v", root, got, codes(r))
		}
	}
	got, r := servers(t, ".cursor/mcp.json", `{"servers": {"a": {"command": "c"}}, "mcpServers": {"b": {"command": "c"}}}`)
	if got["a"] != nil || got["b"] == nil || !slices.Contains(codes(r), "w mcp_root .cursor/mcp.json:1") {
		t.Errorf("%v, %v", got, codes(r))
	}
}

// Gemini: its addresses, its lists, its dollars; and that a file of settings need hold no servers.
func TestGemini(t *testing.T) {
	const file = ".gemini/settings.json"
	got, _ := servers(t, file, `{"mcp": {"allowed": ["a", "h"], "excluded": ["h"]}, "mcpServers": {"a": {"url": "https://h/sse"},
		"h": {"httpUrl": "https://h/mcp", "headers": {"K": "$key"}, "timeout": 5000}, "left": {"command": "c"}}}`)
	if got["a"].Transport != capability.TransportSSE || got["a"].Unready != "" || got["h"].Headers["K"] != "${key}" || got["h"].CallTimeout != 5*time.Second {
		t.Errorf("%+v, %+v", got["a"], got["h"])
	}
	if !strings.Contains(got["h"].Unready, "mcp.excluded") || !strings.Contains(got["left"].Unready, "mcp.allowed") {
		t.Errorf("%q, %q", got["h"].Unready, got["left"].Unready)
	}
	if _, r := servers(t, file, `{"mcp": {"serverCommand": "x"}, "ui": {}}`); len(r.Problems) > 0 {
		t.Errorf("%v", r.Problems)
	}
}

// A name that vak.toml switches off is off, whoever declares it below.
func TestSwitchedOffAbove(t *testing.T) {
	r := scan(t, files("vak.toml", "[mcp.servers.x]\nenabled = false\n", ".mcp.json", `{"mcpServers": {"x": {"command": "c"}, "y": {"command": "c"}}}`))
	if diff := cmp.Diff([]string{"mcp:y"}, ids(r)); diff != "" {
		t.Error(diff)
	}
	if len(r.Shadowed) != 1 || r.Shadowed[0].By != "vak.toml" || r.Shadowed[0].Source != ".mcp.json" {
		t.Errorf("%+v", r.Shadowed)
	}
}

func FuzzMCPFiles(f *testing.F) {
	for _, s := range []string{
		"", "[mcp_servers.a]\ncommand = \"c\"\n", "[mcp.servers.a]\nurl = \"u\"\n[[x]]\n", `{"servers": {"a/b": {"command": ["c"]}}, "inputs": [{"id": "a", "default": "b"}]}`,
		`{"mcp": {"a": {"type": "remote", "url": "https://h", "headers": {"A": "{env:B} $C ${input:d}"}}}}`, "mcpServers:\n- name: x\n", `{"mcp": {"allowed": [1]}, "mcpServers": {"a": {"tools": {"t": {"approval_mode": "approve"}}}}}`,
		"a = 1979-05-27\n[mcp_servers.a]\nstartup_timeout_sec = inf\n", "<<<<<<< a\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, file := range []string{
			".cursor/mcp.json", ".vscode/mcp.json", ".vscode/settings.json", ".codex/config.toml", ".gemini/settings.json", "opencode.json",
			".zed/settings.json", ".roo/mcp.json", ".continue/config.yaml",
		} {
			p := readMCP(file, text)
			if path.Ext(file) == ".toml" && len(bytes.TrimSpace(text)) == 0 {
				continue // settings may be empty
			}
			if readable(t, p, text); p.broken && len(p.problems) == 0 {
				t.Errorf("%s is broken without a reason", file)
			}
		}
		readLayer(".vak/config.toml", text)
	})
}
