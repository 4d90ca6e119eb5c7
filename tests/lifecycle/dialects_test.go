package lifecycle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"

	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// inJSON is a file of MCP servers that starts the fault server under a name, with more flags.
func inJSON(w *world, root, name string, flags ...string) string {
	w.Helper()
	command, args := faulttest.Command(w.TB, flags...)
	text, err := json.Marshal(map[string]any{root: map[string]any{name: map[string]any{"command": command, "args": append([]string{}, args...)}}})
	w.must(err)
	return string(text)
}

func inTOML(w *world, root, name string, flags ...string) string {
	w.Helper()
	command, args := faulttest.Command(w.TB, flags...)
	return strings.Replace(serverEntry(name, command, args), "mcp.servers", root, 1)
}

// V1, V213: every kind of file that declares servers is followed while the host runs: a server is added, changed, taken
// away and listed no more, in each, without a restart, and what a broken edit says is a finding.
func TestEveryConfigFileIsFollowedLive(t *testing.T) {
	w := newWorld(t, nil)
	u := w.open().loose()
	for file, text := range map[string]func(flags ...string) string{
		"vak.toml":              func(f ...string) string { return settings + inTOML(w, "mcp.servers", "s", f...) },
		".vak/config.toml":      func(f ...string) string { return inTOML(w, "mcp.servers", "s", f...) },
		".mcp.json":             func(f ...string) string { return inJSON(w, "mcpServers", "s", f...) },
		".cursor/mcp.json":      func(f ...string) string { return inJSON(w, "mcpServers", "s", f...) },
		".vscode/mcp.json":      func(f ...string) string { return inJSON(w, "servers", "s", f...) },
		".codex/config.toml":    func(f ...string) string { return inTOML(w, "mcp_servers", "s", f...) },
		".gemini/settings.json": func(f ...string) string { return inJSON(w, "mcpServers", "s", f...) },
	} {
		t.Run(file, func(t *testing.T) {
			starts := w.outside(strings.ReplaceAll(file, "/", "_"))
			w.write(file, text())
			w.reload()
			u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
			if row := w.row("mcp:s"); row == nil || row.Source != file {
				t.Fatalf("the report has %+v", row)
			}
			w.write(file, text("-start-log", starts))
			w.reload()
			u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
			if log, err := os.ReadFile(starts); err != nil || bytes.Count(log, []byte("\n")) != 1 {
				t.Errorf("the changed server was not started once: %q, %v", log, err)
			}
			w.write(file, "[{")
			if problems := w.reload().GetProblems(); len(problems) != 1 || problems[0].GetPath() != file || problems[0].GetLine() != 1 {
				t.Errorf("a broken file is no finding: %v", problems)
			}
			if w.row("mcp:s") == nil {
				t.Error("a broken file took its server away")
			}
			w.remove(file)
			if file == "vak.toml" {
				w.write(file, settings)
			}
			w.reload()
			if w.row("mcp:s") != nil || w.state("s") != nil {
				t.Error("a server that was taken away is still listed")
			}
			refused(t, u.mcp("s", "echo", object{"text": "three"}).err, vakerr.CapabilityRemoved)
		})
	}
}

// A command that cannot be run is an error at once that names it; when it is put right, that server alone is started.
func TestBrokenCommandIsPutRight(t *testing.T) {
	w := newWorld(t, nil)
	steady := w.fault("steady", nil)
	w.write("vak.toml", toml(steady.config))
	w.write(".mcp.json", `{"mcpServers": {"s": {"command": "no-such-program-here"}}}`)
	w.reload()
	u := w.open().loose()
	u.want(u.mcp("steady", "echo", object{"text": "one"}), "one")
	begun := time.Now()
	refused(t, u.mcp("s", "echo", nil).err, vakerr.ServerStartFailed, "no-such-program-here")
	if took := time.Since(begun); took > time.Second {
		t.Errorf("a missing program is told after %s", took)
	}
	w.write(".mcp.json", inJSON(w, "mcpServers", "s"))
	w.reload()
	u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
	u.want(u.mcp("steady", "echo", object{"text": "three"}), "three")
	if n := steady.started(); n != 1 {
		t.Errorf("the other server was started %d times", n)
	}
}

// A placeholder that nothing fills is never sent: the server is not started, and the name is told. A server that is not
// configured is in the report with the reason, and no demand starts it.
func TestUnfilledPlaceholders(t *testing.T) {
	w := newWorld(t, nil)
	unset := w.fault("unset", nil)
	blank := w.fault("blank", nil)
	w.write("vak.toml", toml(unset.config+"env = { A = \"${VAK_TEST_UNSET}\" }\n", blank.config+"env = { KEY = \"<your-key>\" }\n"))
	w.write(".gemini/settings.json", `{"mcpServers": {"header": {"httpUrl": "http://127.0.0.1:1/mcp", "headers": {"A": "Bearer $VAK_TEST_UNSET"}}}}`)
	w.write(".mcp.json", `{"mcpServers": {"socket": {"type": "ws", "url": "ws://127.0.0.1:1/mcp"}}}`)
	w.write(".vscode/mcp.json", `{"servers": {"asked": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"A": "${input:a-key}"}},
		"env": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"A": "${env:VAK_TEST_UNSET}"}}}}`)
	w.reload()
	u := w.open().loose()
	for server, name := range map[string]string{"unset": "VAK_TEST_UNSET", "header": "VAK_TEST_UNSET", "env": "VAK_TEST_UNSET", "asked": "INPUT_A_KEY"} {
		refused(t, u.mcp(server, "echo", nil).err, vakerr.SecretUnresolved, name)
	}
	for server, why := range map[string]string{"blank": "env KEY still holds a placeholder", "socket": "WebSocket"} {
		for range 2 { // no backoff: it is no failure
			refused(t, u.mcp(server, "echo", nil).err, vakerr.ServerUnready, why)
		}
		row := w.row("mcp:" + server)
		if row == nil || row.Usable || !strings.Contains(row.Status, why) || row.Remedy == "" {
			t.Errorf("the report has %+v", row)
		}
	}
	if unset.started()+blank.started() != 0 {
		t.Error("a server was started")
	}
	w.must(os.WriteFile(filepath.Join(dataOf(w.folder), "secrets.env"), []byte("VAK_TEST_UNSET=set\n"), 0o600))
	w.write("vak.toml", toml(unset.config+"env = { A = \"${VAK_TEST_UNSET}\" }\nidle_ttl = \"1m\"\n", strings.Replace(blank.config, "\n\n", "\n", 1)))
	w.reload()
	u.want(u.mcp("unset", "env", object{"name": "A"}), "set")
	u.want(u.mcp("blank", "echo", object{"text": "now"}), "now")
}

// What an editor's placeholders mean here is filled in: the workspace and the home folder.
func TestEditorPlaceholders(t *testing.T) {
	home := t.TempDir()
	command, args := faulttest.Command(t) // builds it, which needs the real home folder
	t.Setenv("HOME", home)
	w := newWorld(t, nil)
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"s": map[string]any{
		"command": command, "args": append([]string{}, args...), "env": map[string]string{"A": "${workspaceFolder}${/}x", "B": "${userHome}"},
	}}})
	w.must(err)
	w.write(".vscode/mcp.json", string(text))
	w.reload()
	u := w.open().loose()
	workspace, err := filepath.EvalSymlinks(workspaceOf(w.folder))
	w.must(err)
	u.want(u.mcp("s", "env", object{"name": "A"}), workspace+"/x")
	u.want(u.mcp("s", "env", object{"name": "B"}), home)
}

// A secret reaches a server by its environment, and is in no process's arguments; one that is written out in arguments
// or in an address is shown masked wherever servers are shown.
func TestSecretsOfServersAreNotShown(t *testing.T) {
	const canary = "CANARY-7f3a9c"
	w := emptyWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config+"env = { API_TOKEN = \"${VAK_TEST_TOKEN}\" }\n",
		serverEntry("argued", "no-such-program-here", []string{"--api-key", canary}), "[mcp.servers.query]\nurl = \"http://127.0.0.1:1/mcp?api_key="+canary+"\"\n"))
	w.must(os.MkdirAll(dataOf(w.folder), 0o700))
	w.must(os.WriteFile(filepath.Join(dataOf(w.folder), "secrets.env"), []byte("VAK_TEST_TOKEN="+canary+"\n"), 0o600))
	w.start(hostOptions())
	u := w.open().loose()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	w.must(err)
	for _, line := range lines {
		if text, err := os.ReadFile(line); err == nil && bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s shows the secret: %q", line, text)
		}
	}
	_ = u.mcp("argued", "echo", nil)
	_ = u.mcp("query", "echo", nil)
	_, report := w.report()
	shown := report + fmt.Sprint(ask[*poolv1.ListServersResult](w, &poolv1.ListServers{}))
	if strings.Contains(shown, canary) {
		t.Errorf("a secret is shown: %s", shown)
	}
	for _, warned := range []string{"has a secret written out in args", "has a secret written out in its url"} {
		if !strings.Contains(report, warned) {
			t.Errorf("nothing warns that a server %s", warned)
		}
	}
}

// Only files that declare create servers: what a server left behind in the data folder brings none back.
func TestLeftoversCreateNoServer(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("gone", nil)
	w.write("vak.toml", toml(s.config))
	w.reload()
	u := w.open().loose()
	u.want(u.mcp("gone", "echo", object{"text": "one"}), "one")
	w.write("vak.toml", settings)
	for _, name := range []string{"gone.token", "gone.json", ".mcp.json", "mcp-tokens/gone.json"} {
		file := filepath.Join(dataOf(w.folder), name)
		w.must(os.MkdirAll(filepath.Dir(file), 0o700))
		w.must(os.WriteFile(file, []byte(`{"mcpServers": {"gone": {"command": "x"}}}`), 0o600))
	}
	w.restart()
	if w.row("mcp:gone") != nil || w.state("gone") != nil {
		t.Error("a left-over file revived a server")
	}
}
