package lifecycle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// hook is an entry of vak.toml.
func hook(event, match, command string, lines ...string) string {
	return fmt.Sprintf("[[hooks]]\nevent = %q\nmatch = %q\ncommand = %q\n%s\n", event, match, command, strings.Join(lines, "\n"))
}

// V9, V10: a pre-tool-use hook blocks what it concerns before it has an effect, and a post-tool-use hook adds to a result;
// each run is on the ledger.
func TestHooks(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text"})
	w.write("vak.toml", toml(
		hook("pre-tool-use", "write(**/*.lock)", "echo lock files are generated >&2; exit 2"),
		hook("pre-tool-use", "write(**/*.txt)", `printf '{"input":{"path":"moved.txt","content":"rewritten"}}'`),
		hook("post-tool-use", "read", `cat >> seen.json; printf '{"decision":"block","reason":"mind the style guide"}'`),
	))
	a := w.open()
	u := a.begin()
	refused(t, u.call("write", object{"path": "go.lock", "content": "x"}).err, vakerr.HookBlocked, "lock files are generated")
	if _, err := os.Stat(w.path("go.lock")); err == nil {
		t.Error("the blocked write was made")
	}
	u.want(u.call("write", object{"path": "b.txt", "content": "x"}), "moved.txt")
	if text, err := os.ReadFile(w.path("moved.txt")); string(text) != "rewritten" {
		t.Errorf("the rewritten input was not used: %q, %v", text, err)
	}
	u.want(u.call("read", object{"path": "a.txt"}), "text", "The call has run.", "mind the style guide")
	seen, err := os.ReadFile(w.path("seen.json"))
	if err != nil || !strings.Contains(string(seen), a.id) || !strings.Contains(string(seen), `"post-tool-use"`) {
		t.Errorf("the hook was told %s, %v", seen, err)
	}
	u.want(u.call("glob", object{"pattern": "*.txt"}), "a.txt")
	eventually(t, "the runs are on the ledger", func() bool { return len(recorded[ledger.HookRan](a)) == 3 })
	wantChildren(t, 0, "the hooks")
}

// V169: a hook that fails lets calls pass where it is fail-open, and is then reported as one that guards nothing; it blocks
// them where it is fail-closed.
func TestFailingHooks(t *testing.T) {
	for name, c := range map[string]struct {
		command, says string
	}{
		"crash":          {"exit 7", "exit status 7"},
		"hang":           {"sleep 60", "longer than 1s"},
		"nonsense":       {"echo nonsense", "is not the JSON object"},
		"missing":        {"./no/such/hook.sh", "exit status 127"},
		"not executable": {"./guard.sh", "may not be executed"},
	} {
		for _, mode := range []string{"open", "closed"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				w := newWorld(t, map[string]string{"a.txt": "text", "guard.sh": "#!/bin/sh\nexit 0\n"})
				w.write("vak.toml", toml(hook("pre-tool-use", "read", c.command, fmt.Sprintf("failure_mode = %q", mode), "timeout_ms = 1000")))
				u := w.open().begin()
				got := u.call("read", object{"path": "a.txt"})
				if mode == "closed" {
					refused(t, got.err, vakerr.HookFailed, "fail-closed", c.says)
				} else {
					u.want(got, "text")
				}
				report, _ := w.report()
				if !slices.ContainsFunc(report.Findings(), func(f capability.Finding) bool {
					return f.Subject == "hook:pre-tool-use/"+c.command && strings.Contains(f.Problem, c.says) && f.Remedy != ""
				}) {
					t.Errorf("it is not reported as one that guards nothing: %+v", report.Findings())
				}
				wantChildren(t, 0, "a failing hook")
			})
		}
	}
}

// V12: a fail-closed hook that cannot be read blocks every call, and says why to model and operator; it is no tool.
func TestUnreadableHookFailsClosed(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text"})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config, "[[hooks]]\nevent = \"pre-tool-use\"\nfailure_mode = \"closed\"\n"))
	u := w.open().begin()
	const why = "is fail-closed and cannot be read"
	for _, got := range []answer{
		u.call("read", object{"path": "a.txt"}), u.call("write", object{"path": "b.txt", "content": "x"}), u.mcp("s", "echo", nil),
	} {
		refused(t, got.err, vakerr.HookBlocked, why)
	}
	if n := s.started(); n != 0 {
		t.Errorf("a blocked call started the server %d times", n)
	}
	if _, text := w.report(); !strings.Contains(text, why) {
		t.Errorf("the report does not say why every call is blocked: %s", text)
	}
	if strings.Contains(string(u.GetToolsJson()), "hook-1") {
		t.Error("V12: a hook is among the tools")
	}
	u.end()
	w.write("vak.toml", toml(s.config))
	u = u.begin()
	u.want(u.call("read", object{"path": "a.txt"}), "text")
}
