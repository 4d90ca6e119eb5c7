package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const claudeSettings = ".claude/settings.json"

// claudeHook is a settings file with one hook before the calls that the matcher meets.
func claudeHook(matcher, command string) string {
	return fmt.Sprintf(`{"hooks": {"PreToolUse": [{"matcher": %q, "hooks": [{"type": "command", "command": %q}]}]}}`, matcher, command)
}

const blocks = "echo not now >&2; exit 2"

// problems are those of a file.
func (w *world) problems(path string) (found []capability.Problem) {
	w.Helper()
	report, _ := w.report()
	return slices.DeleteFunc(report.Problems, func(p capability.Problem) bool { return !strings.HasSuffix(p.Path, path) })
}

// hookRows are the hooks of the report.
func (w *world) hookRows() []capability.Row {
	w.Helper()
	report, _ := w.report()
	return slices.DeleteFunc(report.Capabilities, func(r capability.Row) bool { return r.Kind != capability.KindHook })
}

// A matcher that is edited while a session lives counts from the next turn on; the open turn keeps the one it began with.
func TestAMatcherIsEditedLive(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text", claudeSettings: claudeHook("Write", blocks)})
	u := w.open().begin()
	read := func() answer { return u.call("read", object{"path": "a.txt"}) }
	write := func() answer { return u.call("write", object{"path": "b.txt", "content": "x"}) }
	u.want(read(), "text")
	refused(t, write().err, vakerr.HookBlocked, "not now")

	w.replace(claudeSettings, claudeHook("Read", blocks))
	w.reload()
	u.want(read(), "text")
	refused(t, write().err, vakerr.HookBlocked, "not now")
	u.end()
	u = u.begin()
	refused(t, read().err, vakerr.HookBlocked, "not now")
	u.want(write())
	if rows := w.hookRows(); len(rows) != 1 {
		t.Errorf("%d hooks after the edit: %+v", len(rows), rows)
	}
}

// A settings file that cannot be read for a while costs no hook: the last good ones stay in force, the fault is reported,
// and the old text brings nothing but the end of the fault.
func TestHooksOutliveAnInvalidFile(t *testing.T) {
	good := claudeHook("Read", blocks)
	w := newWorld(t, map[string]string{"a.txt": "text", claudeSettings: good})
	a := w.open()
	for _, step := range []struct {
		name, text string
		faulty     bool
	}{{"as it was", good, false}, {"invalid", good[:len(good)/2], true}, {"as it was again", good, false}} {
		w.write(claudeSettings, step.text)
		u := a.begin()
		refused(t, u.call("read", object{"path": "a.txt"}).err, vakerr.HookBlocked, "not now")
		u.want(u.call("glob", object{"pattern": "*.txt"}), "a.txt")
		u.end()
		if got := w.problems(claudeSettings); (len(got) > 0) != step.faulty {
			t.Errorf("%s: problems %+v", step.name, got)
		}
	}
	w.write(claudeSettings, `{}`)
	u := a.begin()
	u.want(u.call("read", object{"path": "a.txt"}), "text")
}

// An event that nobody knows costs neither the hooks nor the rules beside it, and is named with its line.
func TestOneBadEventBesideGoodOnes(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text", claudeSettings: `{
		"permissions": {"deny": ["Edit(b.txt)"]},
		"hooks": {
			"PreToolUs": [{"hooks": [{"type": "command", "command": "echo never >> never"}]}],
			"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "echo not now >&2; exit 2"}]}]
		}}`})
	u := w.open().begin()
	refused(t, u.call("read", object{"path": "a.txt"}).err, vakerr.HookBlocked, "not now")
	refused(t, u.call("write", object{"path": "b.txt", "content": "x"}).err, vakerr.PermissionDenied, "b.txt")
	u.want(u.call("write", object{"path": "c.txt", "content": "x"}))
	got := w.problems(claudeSettings)
	if len(got) != 1 || got[0].Code != "hook_event" || got[0].Line != 4 || !strings.Contains(got[0].Message, "PreToolUs") {
		t.Errorf("problems %+v", got)
	}
}

// V168: a hook that counts has no gap over 500 calls of four sessions, while its file is saved again and again: as many
// deliveries are reported and recorded as calls were made.
func TestACounterHookHasNoGap(t *testing.T) {
	const sessions, calls = 4, 125
	counter := toml(hook("post-tool-use", "read", "echo x >> count"))
	w := newWorld(t, map[string]string{"a.txt": "text"})
	w.write("vak.toml", counter)
	w.reload()
	agents := w.openMany(sessions)
	parallel(sessions, func(i int) {
		for n := range calls {
			u := agents[i].loose()
			if n%5 == 0 && i == 0 {
				w.write("vak.toml", counter+strings.Repeat("# saved\n", n+1))
				w.reload()
			}
			u.want(u.call("read", object{"path": "a.txt"}), "text")
		}
	})
	if n := w.lines("count"); n != sessions*calls {
		t.Errorf("the hook counted %d calls", n)
	}
	rows := w.hookRows()
	if len(rows) != 1 || rows[0].Deliveries == nil || rows[0].Deliveries.Asked != sessions*calls || rows[0].Deliveries.Failed != 0 {
		t.Errorf("reported are %+v", rows)
	}
	for _, a := range agents {
		if n := len(recorded[ledger.HookRan](a)); n != calls {
			t.Errorf("%d deliveries of %s are on the ledger", n, a.id)
		}
	}
	wantChildren(t, 0, "the calls")
}
