package lifecycle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// plugged is a world with a plugin store, and the folder that a plugin is installed from.
type plugged struct {
	*world
	store  *pluginstore.Store
	source string
	marks  string // a file to which the plugin's hook adds a line each time it runs
}

// newPlugged makes the source of a plugin with a part of each kind.
func newPlugged(t *testing.T) *plugged {
	w := newWorld(t, map[string]string{"a.txt": "text"})
	p := &plugged{w, pluginstore.Open(host.PluginFolder(dataOf(w.folder), "")), w.outside("kit"), w.outside("marks")}
	command, args := faulttest.Command(t)
	server, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"store": map[string]any{"command": command, "args": append([]string{}, args...)}}})
	w.must(err)
	p.file(".claude-plugin/plugin.json", `{"name":"kit","version":"1.0.0","hooks":"./hooks/hooks.json"}`)
	p.file(".mcp.json", string(server))
	p.file("skills/setup/SKILL.md", skill("setup", "body one"))
	p.file("commands/hello.md", "Say hello to $ARGUMENTS.\n")
	p.file("hooks/hooks.json", `{"hooks":{"PreToolUse":[{"matcher":"Read","hooks":[{"type":"command","command":"\"${CLAUDE_PLUGIN_ROOT}/mark.sh\""}]}]}}`)
	p.file("mark.sh", fmt.Sprintf("#!/bin/sh\necho ran >> %q\n", p.marks))
	w.must(os.Chmod(filepath.Join(p.source, "mark.sh"), 0o700))
	return p
}

func (p *plugged) file(name, text string) {
	p.Helper()
	at := filepath.Join(p.source, name)
	p.must(os.MkdirAll(filepath.Dir(at), 0o700))
	p.must(os.WriteFile(at, []byte(text), 0o600))
	if strings.HasSuffix(name, ".sh") {
		p.must(os.Chmod(at, 0o700))
	}
}

func (p *plugged) install() {
	p.Helper()
	_, _, err := p.store.Install(p.Context(), pluginstore.Request{Source: p.source, Scope: "user"})
	p.must(err)
}

// enable consents to whatever waits, as an operator who has looked at it.
func (p *plugged) enable() {
	p.Helper()
	r, err := p.store.Find("kit", "")
	p.must(err)
	c, err := p.store.Load(r.Pending().Digest)
	p.must(err)
	_, err = p.store.Enable("kit", "", plugin.Consent{Digest: c.Digest, Scope: r.Scope, Brings: c.Brings.Digest()}, nil)
	p.must(err)
	p.reload()
}

func (p *plugged) update() {
	p.Helper()
	_, err := p.store.Update(p.Context(), "kit", "", pluginstore.Request{})
	p.must(err)
	p.enable()
	p.must(p.store.Sweep())
}

func (p *plugged) disable() {
	p.Helper()
	_, err := p.store.Disable("kit", "")
	p.must(err)
	p.reload()
}

func (p *plugged) ran() int {
	p.Helper()
	text, err := os.ReadFile(p.marks)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "\n")
}

// parts counts what the report knows of the plugin.
func (p *plugged) parts() (n int) {
	p.Helper()
	report, _ := p.report()
	for _, row := range report.Capabilities {
		if row.Origin == "plugin:user:kit" {
			n++
		}
	}
	return n
}

// V16, V18, V196, V200: one enable bit governs every part. A hook file that the manifest names and that is loaded anyway
// runs once. When a disabled plugin has gone from the epoch, nothing of it starts, in a turn that was open before, too.
func TestPluginLifeWithALiveSession(t *testing.T) {
	p := newPlugged(t)
	p.install()
	p.reload()
	if n := p.parts(); n != 0 {
		t.Fatalf("installed, and %d parts of it are declared", n)
	}
	p.enable()
	if n := p.parts(); n != 4 {
		t.Fatalf("enabled, and %d parts of it are declared, want 4", n)
	}
	a := p.open()
	u := a.prompt("/kit:hello Ann")
	if !strings.Contains(u.GetPrompt(), "Say hello to Ann.") {
		t.Errorf("the command became %q", u.GetPrompt())
	}
	u.want(u.call("skill", object{"name": "kit:setup"}), "body one", "plugin:user:kit")
	u.want(u.mcp("plugin.kit.store", "echo", object{"text": "hi"}), "hi")
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	if n := p.ran(); n != 1 {
		t.Errorf("the hook ran %d times", n)
	}

	p.disable()
	if n := p.parts(); n != 0 {
		t.Errorf("disabled, and %d parts of it are declared", n)
	}
	refused(t, u.call("skill", object{"name": "kit:setup"}).err, vakerr.CapabilityRevoked, "plugin kit was disabled")
	refused(t, u.mcp("plugin.kit.store", "echo", object{"text": "hi"}).err, vakerr.CapabilityRevoked, "plugin kit")
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	if n := p.ran(); n != 1 {
		t.Errorf("the hook of a disabled plugin ran; %d runs", n)
	}
	eventually(t, "the server of the plugin has ended", func() bool { return len(children(t)) == 0 })
	u.end()
	if u := a.prompt("/kit:hello Ann"); strings.Contains(u.GetPrompt(), "Say hello") {
		t.Errorf("the command of a disabled plugin became %q", u.GetPrompt())
	}

	p.restart()
	if n := p.parts(); n != 0 {
		t.Errorf("disabled and restarted, and %d parts of it are declared", n)
	}
	p.enable()
	if n := p.parts(); n != 4 {
		t.Errorf("enabled again, and %d parts of it are declared", n)
	}
}

// V197: new content under the same version is in force after its consent, and gone after a rollback.
func TestPluginUpdateAndRollbackInASession(t *testing.T) {
	p := newPlugged(t)
	p.install()
	p.enable()
	a := p.open()
	load := func() string {
		u := a.begin()
		defer u.end()
		return u.call("skill", object{"name": "kit:setup"}).text
	}
	if text := load(); !strings.Contains(text, "body one") {
		t.Fatalf("loaded %s", text)
	}
	p.file("skills/setup/SKILL.md", skill("setup", "body two"))
	p.update()
	if text := load(); !strings.Contains(text, "body two") {
		t.Errorf("after the update: %s", text)
	}
	_, err := p.store.Rollback("kit", "")
	p.must(err)
	p.reload()
	if text := load(); !strings.Contains(text, "body one") {
		t.Errorf("after the rollback: %s", text)
	}
	// What is changed in the store is not in force.
	r, err := p.store.Find("kit", "")
	p.must(err)
	c, err := p.store.Load(r.Current.Digest)
	p.must(err)
	at := filepath.Join(c.Dir, "skills/setup/SKILL.md")
	p.must(os.Chmod(at, 0o600))
	p.must(os.WriteFile(at, []byte(skill("setup", "body evil")), 0o600))
	p.reload()
	if n := p.parts(); n != 0 {
		t.Errorf("changed in the store, and %d parts of it are declared", n)
	}
}

// Fifty updates leave the number of hooks, goroutines, processes and contents as it was.
func TestFiftyPluginUpdatesLeaveNothing(t *testing.T) {
	p := newPlugged(t)
	p.install()
	p.enable()
	a := p.open()
	use := func() {
		u := a.begin()
		u.want(u.call("read", object{"path": "a.txt"}), "text")
		u.end()
	}
	use()
	contents := func() int {
		all, err := filepath.Glob(filepath.Join(host.PluginFolder(dataOf(p.folder), ""), strings.Repeat("?", 64)))
		p.must(err)
		return len(all)
	}
	before, goroutines := p.parts(), 0
	for i := range 50 {
		p.file("skills/setup/SKILL.md", skill("setup", fmt.Sprint("body ", i)))
		p.update()
		ran := p.ran()
		use()
		if n := p.ran() - ran; n != 1 {
			t.Fatalf("after update %d the hook ran %d times for one call", i, n)
		}
		if i == 9 {
			goroutines = runtime.NumGoroutine()
		}
	}
	if n := p.parts(); n != before {
		t.Errorf("%d parts, %d before", n, before)
	}
	if n := contents(); n != 1+plugin.KeptVersions {
		t.Errorf("%d contents are kept", n)
	}
	eventually(t, "the goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+4 })
	wantChildren(t, 0, "the updates")
}

// Two plugins with a skill of the same name keep it under their own names, whatever order they are found in.
func TestTwoPluginsWithTheSameSkill(t *testing.T) {
	w := newWorld(t, nil)
	store := pluginstore.Open(host.PluginFolder(dataOf(w.folder), ""))
	for _, name := range []string{"one", "two"} {
		dir := w.outside(name)
		w.must(os.MkdirAll(filepath.Join(dir, "skills/setup"), 0o700))
		w.must(os.WriteFile(filepath.Join(dir, "skills/setup/SKILL.md"), []byte(skill("setup", "body of "+name)), 0o600))
		r, c, err := store.Install(w.Context(), pluginstore.Request{Source: dir, Scope: "user"})
		w.must(err)
		_, err = store.Enable(name, "", plugin.Consent{Digest: c.Digest, Scope: r.Scope, Brings: c.Brings.Digest()}, nil)
		w.must(err)
	}
	w.reload()
	u := w.open().begin()
	u.want(u.call("skill", object{"name": "one:setup"}), "body of one")
	u.want(u.call("skill", object{"name": "two:setup"}), "body of two")
	refused(t, u.call("skill", object{"name": "setup"}).err, vakerr.CapabilityNotAdmitted, "ambiguous", "one:setup", "two:setup")
	_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: w.open().id, Prompt: "/setup"})
	refused(t, err, vakerr.CapabilityNotAdmitted, "ambiguous", "one:setup", "two:setup")

	_, err = store.Disable("two", "")
	w.must(err)
	w.reload()
	u.end()
	u = u.agent.begin()
	u.want(u.call("skill", object{"name": "setup"}), "body of one", `name="one:setup"`) // nobody else has the name now
	w.write("skills/setup/SKILL.md", skill("setup", "body of the workspace"))
	u.end()
	u = u.agent.begin()
	u.want(u.call("skill", object{"name": "setup"}), "body of the workspace")
	u.want(u.call("skill", object{"name": "one:setup"}), "body of one")
}

// V203: no tool, of ours or of a plugin, and no path that a model may write, installs, enables or changes a plugin.
func TestPluginsAreTheOperators(t *testing.T) {
	p := newPlugged(t)
	p.install()
	p.reload()
	u := p.open().begin()
	if tools := string(u.GetToolsJson()); strings.Contains(tools, "plugin") {
		t.Errorf("a tool is about plugins: %s", tools)
	}
	for _, name := range []string{"plugin", "plugin_install", "plugin_enable", "plugin enable", "enable"} {
		refused(t, u.call(name, object{"name": "kit", "id": "kit"}).err, vakerr.UnknownTool)
	}
	folder := host.PluginFolder(dataOf(p.folder), "")
	states, err := filepath.Glob(filepath.Join(folder, "*"))
	p.must(err)
	if len(states) == 0 {
		t.Fatal("the store holds nothing")
	}
	for _, at := range append(states, filepath.Join(folder, "new")) {
		relative, err := filepath.Rel(p.path(""), at)
		p.must(err)
		for _, path := range []string{at, relative} {
			refused(t, u.call("write", object{"path": path, "content": "{}"}).err, vakerr.PathEscapes)
		}
	}
	p.reload()
	if n := p.parts(); n != 0 {
		t.Errorf("a model enabled %d parts", n)
	}
}
