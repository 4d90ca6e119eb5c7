package plugin

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func folder(files ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i+1 < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return fsys
}

func codes(problems []capability.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, string(p.Severity[:1])+":"+p.Code)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

const agentHead = `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"kit"`

// V199, V201: what each format's manifest says, and what refuses it.
func TestManifests(t *testing.T) {
	for _, c := range []struct {
		what   string
		files  []string
		format Format
		codes  string // of the problems, with the letter of their severity
		failed bool
	}{
		{"native", []string{"vak-plugin.json", `{"schema":1,"name":"kit","components":{"skills":"./skills"}}`, "skills/a/SKILL.md", ""}, FormatNative, "", false},
		{"native with an unknown key", []string{"vak-plugin.json", `{"schema":1,"name":"kit","colour":"red"}`}, FormatNative, "w:plugin_unknown_key", false},
		{"native with an unknown component", []string{"vak-plugin.json", `{"schema":1,"name":"kit","components":{"daemons":"./d"}}`}, FormatNative, "e:plugin_incompatible", false},
		{"native of a later schema", []string{"vak-plugin.json", `{"schema":2,"name":"kit"}`}, FormatNative, "e:plugin_incompatible", false},
		{"native without a schema", []string{"vak-plugin.json", `{"name":"kit"}`}, FormatNative, "e:plugin_schema", true},
		{"claude", []string{".claude-plugin/plugin.json", `{"name":"kit"}`}, FormatClaude, "", false},
		{"claude without a name", []string{".claude-plugin/plugin.json", `{"version":"1"}`}, FormatClaude, "e:plugin_name", true},
		{"author a text", []string{".claude-plugin/plugin.json", `{"name":"kit","author":"Ann"}`}, FormatClaude, "", false},
		{"a wrong type", []string{".claude-plugin/plugin.json", `{"name":"kit","keywords":"a, b"}`}, FormatClaude, "e:plugin_type", true},
		{"metadata of any type", []string{".claude-plugin/plugin.json", `{"name":"kit","metadata":7,"experimental":7}`}, FormatClaude, "", false},
		{"comments", []string{".claude-plugin/plugin.json", "{\"name\":\"kit\", // me\n}"}, FormatClaude, "w:plugin_jsonc", false},
		{"a name twice", []string{".claude-plugin/plugin.json", `{"name":"a","name":"b"}`}, FormatClaude, "e:plugin_duplicate", true},
		{"a path without ./", []string{".claude-plugin/plugin.json", `{"name":"kit","skills":"more"}`, "more/a/SKILL.md", ""}, FormatClaude, "w:plugin_path_style", false},
		{"a path with ..", []string{".claude-plugin/plugin.json", `{"name":"kit","commands":"./../x"}`}, FormatClaude, "e:plugin_path", true},
		{"an absolute path", []string{".claude-plugin/plugin.json", `{"name":"kit","hooks":"/etc/hooks.json"}`}, FormatClaude, "e:plugin_path", true},
		{"a path that is not there", []string{".claude-plugin/plugin.json", `{"name":"kit","commands":"./x"}`}, FormatClaude, "e:plugin_missing", false},
		{"a name that is a path", []string{".claude-plugin/plugin.json", `{"name":"../kit"}`}, FormatClaude, "e:plugin_name", true},
		{"codex", []string{".codex-plugin/plugin.json", `{"name":"kit","skills":"./more","interface":{"displayName":"Kit"}}`, "more/a/SKILL.md", "", "skills/b/SKILL.md", ""}, FormatCodex, "", false},
		{"cursor", []string{".cursor-plugin/plugin.json", `{"name":"kit","rules":"./rules"}`, "rules/a.mdc", ""}, FormatCursor, "", false},
		{"gemini", []string{"gemini-extension.json", `{"name":"kit","version":"1","mcpServers":{},"excludeTools":["x"],"settings":[{"name":"Key","envVar":"KEY","sensitive":true}]}`}, FormatGemini, "", false},
		{"gemini broken", []string{"gemini-extension.json", `{"name":"kit" "version":"1"}`}, FormatGemini, "e:plugin_syntax", true},
		{"agent plugin", []string{"plugin.json", agentHead + `}`}, FormatAgentPlugins, "", false},
		{"agent plugin with an unknown field", []string{"plugin.json", agentHead + `,"hooks":"./h"}`}, FormatAgentPlugins, "w:plugin_unknown_key", false},
		{"agent plugin, extensions a list", []string{"plugin.json", agentHead + `,"extensions":[]}`}, FormatAgentPlugins, "w:plugin_schema", false},
		{"agent plugin, an extension a list", []string{"plugin.json", agentHead + `,"extensions":{"a.b":[]}}`}, FormatAgentPlugins, "e:plugin_schema", true},
		{"agent plugin, author a text", []string{"plugin.json", agentHead + `,"author":"Ann"}`}, FormatAgentPlugins, "e:plugin_type", true},
		{"agent plugin, author with a phone", []string{"plugin.json", agentHead + `,"author":{"phone":"1"}}`}, FormatAgentPlugins, "e:plugin_schema", true},
		{"agent plugin of another version", []string{"plugin.json", strings.Replace(agentHead, "1.0.0", "2.0.0", 1) + `}`}, FormatAgentPlugins, "e:plugin_incompatible", false},
		{"agent plugin, a capital in its name", []string{"plugin.json", strings.Replace(agentHead, "kit", "Kit", 1) + `}`}, FormatAgentPlugins, "e:plugin_name", true},
		{"a plugin.json without the schema is no agent plugin", []string{"plugin.json", `{"name":"kit"}`}, FormatPlain, "", false},
		{"registry", []string{"server.json", `{"name":"io.x/kit","description":"d","version":"1.0.0","packages":[{"registryType":"npm","identifier":"kit","version":"1.0.0","transport":{"type":"stdio"}}]}`}, FormatRegistry, "", false},
		{"registry with a range", []string{"server.json", `{"name":"io.x/kit","description":"d","version":"^1.0.0","packages":[]}`}, FormatRegistry, "e:plugin_schema", true},
		{"registry with nothing to run", []string{"server.json", `{"name":"io.x/kit","description":"d","version":"1.0.0","remotes":[{"type":"sse","url":"https://x"}]}`}, FormatRegistry, "e:plugin_server", false},
		{"bundle", []string{"manifest.json", `{"manifest_version":"0.3","name":"kit","version":"1","server":{"type":"node","entry_point":"a.js"}}`}, FormatMCPB, "", false},
		{"bundle that leaves its folder", []string{"manifest.json", `{"manifest_version":"0.3","name":"kit","version":"1","server":{"type":"node","entry_point":"../a.js"}}`}, FormatMCPB, "e:plugin_path", true},
		{"no manifest", []string{"skills/a/SKILL.md", ""}, FormatNone, "", false},
		{"a manifest of a web page is none", []string{"manifest.json", `{"name":"page"}`, "skills/a/SKILL.md", ""}, FormatNone, "", false},
		{"nothing", []string{"README.md", ""}, "", "", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			m, problems, err := Read(folder(c.files...), "kit")
			if (err != nil) != c.failed || codes(problems) != c.codes {
				t.Fatalf("%v, problems %+v, want %s", err, problems, c.codes)
			}
			if err != nil {
				if vakerr.CodeOf(err) != vakerr.PluginInvalid {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if m.Format != c.format || m.Name != "kit" {
				t.Errorf("read %s %q", m.Format, m.Name)
			}
			if incompatible := strings.Contains(c.codes, "e:plugin_incompatible"); incompatible != (m.Problem != nil) {
				t.Errorf("incompatible: %+v", m.Problem)
			}
		})
	}
}

// Of several manifests the first of the order is read; what the others name is not merged in.
func TestSeveralManifests(t *testing.T) {
	files := []string{
		"vak-plugin.json", `{"schema":1,"name":"native"}`,
		"plugin.json", strings.Replace(agentHead, "kit", "agent", 1) + `}`,
		".claude-plugin/plugin.json", `{"name":"claude","commands":"./claude.md"}`, "claude.md", "x",
		".codex-plugin/plugin.json", `{"name":"codex"}`,
		".cursor-plugin/plugin.json", `{"name":"cursor"}`,
		"gemini-extension.json", `{"name":"gemini"}`,
	}
	for at, want := range []string{"native", "agent", "claude", "codex", "cursor", "gemini"} {
		fsys := folder(files...)
		for _, gone := range []string{"vak-plugin.json", "plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json", ".cursor-plugin/plugin.json"}[:at] {
			delete(fsys, gone)
		}
		m, _, err := Read(fsys, "x")
		if err != nil || m.Name != want || len(m.Others) != 5-at {
			t.Errorf("read %q, %v, ignored %q; want %q", m.Name, err, m.Others, want)
		}
		if want != "claude" && len(m.Components.Commands) > 0 {
			t.Errorf("%s took the commands of another manifest: %q", want, m.Components.Commands)
		}
	}
}

// A manifest that names the hooks file which is loaded anyway loads it once.
func TestNamedUsualHooksFileIsLoadedOnce(t *testing.T) {
	for _, path := range []string{"./hooks/hooks.json", "hooks/hooks.json", "./hooks/../hooks/hooks.json", "./hooks//hooks.json"} {
		m, _, err := Read(folder(".claude-plugin/plugin.json", `{"name":"kit","hooks":"`+path+`"}`, "hooks/hooks.json", "{}"), "")
		if strings.Contains(path, "..") {
			if err == nil {
				t.Errorf("%s was taken", path)
			}
			continue
		}
		if err != nil || !slices.Equal(m.Components.Hooks, []string{"hooks/hooks.json"}) {
			t.Errorf("%s: %q, %v", path, m.Components.Hooks, err)
		}
	}
}

// Components that this program has no use for are listed, and fail nothing.
func TestUnsupportedComponentsAreListed(t *testing.T) {
	m, problems, err := Read(folder(
		".claude-plugin/plugin.json", `{"name":"kit","agents":["./one.md"],"experimental":{"monitors":[]}}`, "one.md", "", "agents/two.md", "",
		".lsp.json", "{}", "output-styles/x.md", "", "monitors/monitors.json", "[]", "skills/a/SKILL.md", ""), "")
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var kinds []string
	for _, u := range m.Unsupported {
		kinds = append(kinds, u.Kind)
	}
	slices.Sort(kinds)
	if want := []string{"agents", "experimental.monitors", "lspServers", "monitors", "outputStyles"}; !slices.Equal(kinds, want) {
		t.Errorf("listed %q, want %q", kinds, want)
	}
	if !slices.Equal(m.Components.Skills, []string{"skills"}) {
		t.Errorf("its skills are %q", m.Components.Skills)
	}
}

// The rules of mcp.json in Agent Plugins 1.0: a server that breaks one costs itself.
func TestAgentPluginServers(t *testing.T) {
	const head = `{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"good":{"type":"stdio","command":"node"},"s":`
	for _, c := range []struct {
		server string
		ok     bool
	}{
		{`{"type":"stdio","command":"./bin/run","args":["${PLUGIN_ROOT}/x"],"env":{"A":"${PLUGIN_DATA}"},"cwd":"${PLUGIN_DATA}/w"}`, true},
		{`{"type":"streamable-http","url":"https://x.example/mcp","headers":{"A":"b"}}`, true},
		{`{"type":"sse","url":"http://127.0.0.1:80/mcp"}`, true},
		{`{"type":"sse","url":"http://[::1]/mcp"}`, true},
		{`{"command":"node"}`, false},
		{`{"type":"http","url":"https://x.example"}`, false},
		{`{"type":"stdio","command":"node server.js"}`, false},
		{`{"type":"stdio","command":"${PLUGIN_ROOT}/run"}`, false},
		{`{"type":"stdio","command":"/usr/bin/node"}`, false},
		{`{"type":"stdio","command":"./../run"}`, false},
		{`{"type":"stdio","command":"node","cwd":"/tmp"}`, false},
		{`{"type":"stdio","command":"node","cwd":"${PLUGIN_ROOT}/../x"}`, false},
		{`{"type":"stdio","command":"node","env":{"PLUGIN_ROOT":"/"}}`, false},
		{`{"type":"stdio","command":"node","url":"https://x.example"}`, false},
		{`{"type":"stdio","command":"node","timeout":5}`, false},
		{`{"type":"streamable-http","url":"http://x.example"}`, false},
		{`{"type":"streamable-http","url":"https://me:pw@x.example"}`, false},
		{`{"type":"streamable-http","url":"https://x.example/#a"}`, false},
		{`{"type":"stdio","command":["node"]}`, false},
		{`7`, false},
	} {
		m, problems, err := Read(folder("plugin.json", agentHead+"}", "mcp.json", head+c.server+`}}`), "")
		if err != nil || m.Refused["s"] == c.ok || m.Refused["good"] || len(m.Components.Servers) != 1 || (len(problems) == 0) != c.ok {
			t.Errorf("%s: refused %v, problems %v, %v", c.server, m.Refused, problems, err)
		}
	}
	for _, whole := range []string{`{"mcpServers":{}}`, `{"$schema":"x","mcpServers":{}}`, head + `{}},"more":1}`, `[]`, `{`} {
		m, problems, err := Read(folder("plugin.json", agentHead+"}", "mcp.json", whole), "")
		if err != nil || len(m.Components.Servers) != 0 || len(problems) == 0 {
			t.Errorf("%s: servers of %v, problems %v, %v", whole, m.Components.Servers, problems, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("vak-plugin.json", []byte(`{"schema":1,"name":"kit","components":{"skills":"./s"}}`))
	f.Add(".claude-plugin/plugin.json", []byte(`{"name":"kit","userConfig":{"a":{"type":"string"}},"hooks":{},"skills":["./a","."]}`))
	f.Add("plugin.json", []byte(agentHead+`}`))
	f.Add("mcp.json", []byte(`{"$schema":"","mcpServers":{"a":{"type":"stdio","command":"x"}}}`))
	f.Add("server.json", []byte(`{"name":"a/b","version":"1","packages":[{"registryType":"npm","identifier":"x"}]}`))
	f.Add("manifest.json", []byte(`{"manifest_version":"1","server":{"type":"node","entry_point":"x"}}`))
	f.Add(".claude-plugin/marketplace.json", []byte(`{"name":"m","plugins":[{"name":"a","source":"./a"},{"name":"b","source":{"source":"github"}}]}`))
	f.Add(EntryName, []byte(`{"name":"a","skills":"./x"}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		fsys := fstest.MapFS{"skills/a/SKILL.md": {Data: []byte("x")}}
		if name == "mcp.json" {
			fsys["plugin.json"] = &fstest.MapFile{Data: []byte(agentHead + "}")}
		}
		fsys[name] = &fstest.MapFile{Data: text}
		m, problems, err := Read(fsys, "kit")
		if err == nil && CheckName(m.Name) != "" {
			t.Errorf("the name %q was taken", m.Name)
		}
		if err != nil && vakerr.CodeOf(err) != vakerr.PluginInvalid {
			t.Errorf("the error is %v", err)
		}
		if len(problems) > 4*maxProblems {
			t.Errorf("%d problems", len(problems))
		}
		c := m.Components
		for _, p := range slices.Concat(c.Skills, c.Commands, c.Hooks, c.Servers) {
			if strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") {
				t.Errorf("the path %q was taken", p)
			}
		}
		market, _, _, _ := FindMarketplace(fsys)
		for _, e := range market.Entries {
			if strings.HasPrefix(e.Folder, "/") || slices.Contains(strings.Split(e.Folder, "/"), "..") {
				t.Errorf("the folder %q was taken", e.Folder)
			}
		}
	})
}
