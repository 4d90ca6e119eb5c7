package lifecycle

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V164: an edited match counts from the next turn on, and an unreadable file leaves the last good hooks in force until the old
// one is back.
func TestEditedHooks(t *testing.T) {
	w := newWorld(t, nil)
	block := func(match string) string { return toml(hook("pre-tool-use", match, "echo no >&2; exit 2")) }
	a := w.open()
	blocks := func(what, tool, file string, want bool) {
		t.Helper()
		u := a.begin()
		defer u.end()
		got := u.call(tool, object{"path": file, "content": "x"})
		if want {
			refused(t, got.err, vakerr.HookBlocked, "no")
		} else if got.err != nil {
			t.Errorf("%s: %v", what, got.err)
		}
	}
	w.write("vak.toml", block("write(a/**)"))
	blocks("matched", "write", "a/x", true)
	blocks("not matched", "write", "b/x", false)
	w.write("vak.toml", block("write(b/**)"))
	blocks("not matched any more", "write", "a/x", false)
	blocks("matched since the edit", "write", "b/x", true)

	settings := func(text string) { w.write(".claude/settings.json", text) }
	const good = `{"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]}}`
	w.write("vak.toml", toml())
	settings(good)
	blocks("settings", "write", "c/x", true)
	settings(good[:len(good)-9])
	blocks("settings cut short", "write", "c/x", true)
	settings(good)
	blocks("settings restored", "write", "c/x", true)

	settings(strings.Replace(good, `"PreToolUse"`, `"NoSuchEvent": [{"hooks": [{"type": "command", "command": "true"}]}], "PreToolUse"`, 1))
	blocks("one unknown event beside it", "write", "c/x", true)
	if _, text := w.report(); !strings.Contains(text, "NoSuchEvent") {
		t.Errorf("nobody is told of the unknown event: %s", text)
	}
}

// V169: what takes too long, is not there or is not executable blocks where the hook is fail-closed, and only there.
func TestHooksThatDoNotRun(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text", "hooks/plain.sh": "#!/bin/sh\nexit 0\n"})
	w.must(os.Chmod(w.path("hooks/plain.sh"), 0o600))
	a := w.open()
	for what, command := range map[string]string{
		"too long": "sleep 60", "missing": "./hooks/none.sh", "not executable": "./hooks/plain.sh",
	} {
		for _, mode := range []string{"open", "closed"} {
			w.write("vak.toml", toml(hook("pre-tool-use", "read", command, fmt.Sprintf("failure_mode = %q", mode), "timeout_ms = 300")))
			u := a.begin()
			got := u.call("read", object{"path": "a.txt"})
			if mode == "closed" {
				refused(t, got.err, vakerr.HookFailed, "fail-closed")
			} else if got.err != nil {
				t.Errorf("%s, open: %v", what, got.err)
			}
			u.end()
		}
	}
	for _, ran := range recorded[ledger.HookRan](a) {
		if ran.Error == nil {
			t.Errorf("a failure is not on the ledger: %+v", ran)
		}
	}
}

// V166: exit 2 blocks though it says nothing.
func TestSilentBlock(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": toml(hook("pre-tool-use", "write", "exit 2"))})
	u := w.open().begin()
	refused(t, u.call("write", object{"path": "a", "content": "x"}).err, vakerr.HookBlocked, "no reason")
	if w.exists("a") {
		t.Error("it was written")
	}
}

// V168: on a machine that is busy with other things guards still guard.
func TestGuardsOnABusyMachine(t *testing.T) {
	w := newWorld(t, nil)
	const guard = `{"type": "command", "command": "exit 2", "timeout": 10}`
	w.write(".claude/settings.json", `{"hooks": {"PreToolUse": [{"hooks": [`+guard+`]}]}}`)
	done := make(chan struct{})
	var busy sync.WaitGroup
	for range 20 {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	var calls sync.WaitGroup
	for _, a := range w.openMany(10) {
		u := a.begin()
		calls.Go(func() {
			for range 4 {
				if got := u.call("write", object{"path": "a", "content": "x"}); vakerr.CodeOf(got.err) != vakerr.HookBlocked {
					t.Errorf("a guard was inert: %v", got)
				}
			}
		})
	}
	calls.Wait()
	close(done)
	busy.Wait()
}

// Fifty edits leave as many hooks as the file has, each run once a call; and over five hundred calls none is left out.
func TestHooksAreNeitherDoubledNorLost(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text"})
	a := w.open()
	for n := range 50 {
		w.write("vak.toml", toml(fmt.Sprintf("# edit %d", n), hook("pre-tool-use", "read", fmt.Sprintf("echo %d >> edits", n%3))))
		u := a.begin()
		u.want(u.call("read", object{"path": "a.txt"}), "text")
		u.end()
		report, _ := w.report()
		hooks := 0
		for _, row := range report.Capabilities {
			if strings.HasPrefix(row.ID, "hook:") {
				hooks++
			}
		}
		if hooks != 1 {
			t.Fatalf("after edit %d there are %d hooks", n, hooks)
		}
	}
	if n := w.lines("edits"); n != 50 {
		t.Errorf("%d runs in 50 calls", n)
	}
	w.write("vak.toml", toml(hook("pre-tool-use", "read", "echo >> soak")))
	const calls = 500
	u := a.begin()
	for range calls {
		u.want(u.call("read", object{"path": "a.txt"}), "text")
	}
	u.end()
	if n := w.lines("soak"); n != calls {
		t.Errorf("%d runs in %d calls", n, calls)
	}
	row := w.row("hook:pre-tool-use/echo >> soak")
	if row == nil || row.Deliveries == nil || row.Deliveries.Asked != calls {
		t.Errorf("the report says %+v", row)
	}
	if n := a.events()["pre-tool-use"]; n != calls+50 {
		t.Errorf("%d deliveries on the ledger, want %d", n, calls+50)
	}
}
