package lifecycle

import (
	"os"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func (w *world) lines(name string) int {
	w.Helper()
	text, err := os.ReadFile(w.path(name))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

func (w *world) close(a *agent, reason string) {
	w.Helper()
	ask[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: a.id, Reason: reason})
}

func (u *aTurn) ends() *sessionv1.EndTurnResult {
	u.Helper()
	return ask[*sessionv1.EndTurnResult](u.world, &sessionv1.EndTurn{SessionId: u.id, TurnId: u.GetTurnId()})
}

// events counts deliveries on the ledger by event.
func (a *agent) events() map[string]int {
	a.Helper()
	all := map[string]int{}
	for _, b := range recorded[ledger.HookRan](a) {
		all[b.Event]++
	}
	return all
}

// V163: hooks hear of the first explicit turn of a session once, also after the session slept; of its prompts; and of its end.
// The own dialect and that of Claude Code say it in their words, and a matcher of the latter counts.
func TestSessionHooks(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text", ".claude/settings.json": `{"hooks": {
		"SessionStart": [
			{"matcher": "startup", "hooks": [{"type": "command", "command": "cat >> claude; echo the build is broken"}]},
			{"matcher": "resume", "hooks": [{"type": "command", "command": "echo wrong >> wrong"}]}],
		"SessionEnd": [
			{"matcher": "other", "hooks": [{"type": "command", "command": "cat >> claude"}]},
			{"matcher": "clear", "hooks": [{"type": "command", "command": "echo wrong >> wrong"}]}]}}`})
	w.write("vak.toml", toml(
		hook("session-start", "", "cat >> started"),
		hook("user_prompt", "", `in=$(cat); echo "$in" >> prompts; case $in in *forbidden*) echo not that >&2; exit 2;; esac`),
		hook("session-end", "", "cat >> ended"),
	))
	a := w.open()
	u := a.loose()
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	if w.lines("started") != 0 {
		t.Error("a call without a turn started the session for hooks")
	}
	if _, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "do the forbidden"}); err == nil {
		t.Error("a prompt was blocked and the turn began")
	} else {
		refused(t, err, vakerr.HookBlocked, "not that")
	}
	u = a.prompt("go on")
	if u.GetContext() != "" { // of session-start, which the refused turn has had
		t.Errorf("context %q", u.GetContext())
	}
	u.end()
	a.begin().end() // no prompt, no hook
	for range 100 { // more than is read back at once
		u.want(a.loose().call("read", object{"path": "a.txt"}), "text")
	}
	w.restart()
	a.begin().end()
	if w.lines("started") != 1 || w.lines("prompts") != 2 {
		t.Errorf("%d starts and %d prompts were told, want 1 and 2", w.lines("started"), w.lines("prompts"))
	}
	fresh := w.open()
	first := fresh.begin()
	if first.GetContext() != "the build is broken" {
		t.Errorf("hooks' context is %q", first.GetContext())
	}
	first.end()
	w.close(a, "done for today")
	if text, err := os.ReadFile(w.path("ended")); err != nil || !strings.Contains(string(text), "done for today") || !strings.Contains(string(text), a.id) {
		t.Errorf("the end was told as %s, %v", text, err)
	}
	if text, err := os.ReadFile(w.path("claude")); err != nil || strings.Count(string(text), `"source":"startup"`) != 2 ||
		strings.Count(string(text), `"reason":"other"`) != 1 || w.lines("wrong") != 0 {
		t.Errorf("hooks of another program were told %s, %v", text, err)
	}
	want := map[string]int{"session-start": 2, "user-prompt": 2, "session-end": 2}
	if got := a.events(); len(got) != len(want) || got["session-start"] != 2 || got["user-prompt"] != 2 || got["session-end"] != 2 {
		t.Errorf("on the ledger are %v, want %v", got, want)
	}
	if ran := recorded[ledger.HookRan](fresh); len(ran) == 0 || ran[len(ran)-1].Context+ran[0].Context == "" {
		t.Errorf("the context is not on the ledger: %+v", ran)
	}
	var turns int
	for _, b := range recorded[ledger.TurnBegan](a) {
		if !b.Implicit {
			turns++
		}
	}
	if turns != 3 {
		t.Errorf("%d turns began, want 3: the refused one is none", turns)
	}
	wantChildren(t, 0, "the hooks of sessions")
}

// V170: a hook that blocks the stop continues the run, eight times in a row at most, whatever it says, also across a restart.
func TestStopHooks(t *testing.T) {
	w := newWorld(t, map[string]string{".claude/settings.json": `{"hooks": {"Stop": [{"hooks": [
		{"type": "command", "command": "cat >> seen; echo run the tests >&2; exit 2"}]}]}}`})
	a := w.open()
	for n := 1; n <= 10; n++ {
		if n == 5 {
			w.restart()
		}
		got := a.begin().ends().GetContinuation()
		if n == 9 {
			if got != "" {
				t.Errorf("stop %d was continued once more: %q", n, got)
			}
		} else if !strings.Contains(got, "run the tests") {
			t.Errorf("stop %d: continuation %q", n, got)
		}
	}
	text, err := os.ReadFile(w.path("seen"))
	if err != nil || strings.Count(string(text), `"stop_hook_active":false`) != 2 || strings.Count(string(text), `"stop_hook_active":true`) != 8 {
		t.Errorf("the hook was told %s, %v", text, err)
	}
	loose := a.loose()
	loose.call("glob", object{"pattern": "*"})
	if n := a.events()["stop"]; n != 10 {
		t.Errorf("%d deliveries are on the ledger, want 10: a call without a turn stops nothing", n)
	}
}

// A hook that hangs does not keep a session from closing, and its failure is on the ledger.
func TestCloseDoesNotWaitForHooks(t *testing.T) {
	w := newWorld(t, nil)
	w.write("vak.toml", toml(hook("session-end", "", "touch ending; sleep 1000"), hook("session-end", "", "sleep 1001")))
	w.reload()
	a := w.open()
	begun := time.Now()
	others := make(chan error, 2)
	go func() {
		eventually(t, "the hook runs", func() bool { return w.exists("ending") })
		_, err := try[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: a.id})
		others <- err
	}()
	go func() {
		eventually(t, "the hook runs", func() bool { return w.exists("ending") })
		_, err := try[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{SessionId: a.id, Name: "glob", ArgumentsJson: []byte(`{"pattern":"*"}`)})
		if vakerr.CodeOf(err) == vakerr.SessionClosed {
			err = nil
		}
		others <- err
	}()
	w.close(a, "")
	for range 2 {
		if err := <-others; err != nil {
			t.Errorf("who came while the session ended was told %v", err)
		}
	}
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("closing took %s", took)
	}
	ran := recorded[ledger.HookRan](a)
	if len(ran) != 2 || ran[0].Error == nil || ran[1].Error == nil {
		t.Errorf("recorded %+v, want one that was ended and one that did not come to its turn", ran)
	}
	if _, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id}); vakerr.CodeOf(err) != vakerr.SessionClosed {
		t.Errorf("a turn of the closed session: %v", err)
	}
	wantChildren(t, 0, "a hook that hung")
}

// Hooks that were revoked, that a channel hides, or that lie in a clone nobody trusted do not run, at no event.
func TestHooksThatAreNotInForce(t *testing.T) {
	all := []string{"session-start", "user-prompt", "pre-tool-use", "stop", "session-end"}
	var entries []string
	for _, event := range all {
		entries = append(entries, hook(event, "", "echo ran >> ran"))
	}
	visit := func(w *world, a *agent) {
		u := a.prompt("hello")
		u.want(u.call("glob", object{"pattern": "*"}))
		u.end()
		w.close(a, "")
	}
	t.Run("in force", func(t *testing.T) {
		w := newWorld(t, map[string]string{"vak.toml": toml(entries...)})
		visit(w, w.open())
		if w.lines("ran") != len(all) {
			t.Errorf("%d of %d ran", w.lines("ran"), len(all))
		}
	})
	t.Run("revoked", func(t *testing.T) {
		w := newWorld(t, map[string]string{"vak.toml": toml(entries...)})
		a := w.open()
		u := a.begin() // binds them all
		for _, event := range all {
			w.revoke(capability.ID{Kind: capability.KindHook, Name: event + "/echo ran >> ran"}.String(), false)
		}
		before := w.lines("ran")
		u.want(u.call("glob", object{"pattern": "*"}))
		u.end()
		visit(w, a)
		if w.lines("ran") != before {
			t.Errorf("%d ran after they were revoked", w.lines("ran")-before)
		}
	})
	t.Run("hidden", func(t *testing.T) {
		w := newWorld(t, map[string]string{"vak.toml": toml(append(entries, "[channels.quiet]\nhooks.allow = []\n")...)})
		visit(w, w.openWith(&sessionv1.OpenSession{Channel: "quiet"}))
		if w.lines("ran") != 0 {
			t.Errorf("%d ran on a channel that hides them", w.lines("ran"))
		}
	})
	t.Run("held", func(t *testing.T) {
		w := emptyWorld(t, map[string]string{"vak.toml": toml(entries...), ".git/config": "[remote \"origin\"]\n\turl = https://example.org/x\n"})
		w.start(host.Options{TrustFile: w.outside("trust.json")})
		visit(w, w.open())
		if w.lines("ran") != 0 {
			t.Errorf("%d ran in a clone nobody trusted", w.lines("ran"))
		}
		for _, row := range w.hookRows() {
			if row.Usable || !strings.HasPrefix(row.Status, "held: ") {
				t.Errorf("%s: %s", row.ID, row.Status)
			}
		}
	})
	t.Run("hidden since the turn began", func(t *testing.T) {
		w := newWorld(t, map[string]string{"vak.toml": toml(entries...)})
		u := w.openWith(&sessionv1.OpenSession{Channel: "quiet"}).begin()
		w.write("vak.toml", toml(append(entries, "[channels.quiet]\nhooks.allow = []\n")...))
		w.reload()
		before := w.lines("ran")
		u.want(u.call("glob", object{"pattern": "*"}))
		u.end()
		if n := w.lines("ran") - before; n != 0 {
			t.Errorf("%d ran", n)
		}
	})
}

// With [hook_policy] rewrite = false hooks still block, and what they want to rewrite is ignored and said to be.
func TestRewritesTurnedOff(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text"})
	rewriter := hook("pre-tool-use", "read", `printf '{"input":{"path":"b.txt"}}'`)
	w.write("b.txt", "other")
	w.write("vak.toml", toml(rewriter))
	a := w.open()
	u := a.begin()
	u.want(u.call("read", object{"path": "a.txt"}), "other")
	u.end()
	w.write("vak.toml", toml("[hook_policy]\nrewrite = false\n", rewriter))
	u = a.begin()
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	u.end()
	ran := recorded[ledger.HookRan](a)
	if len(ran) != 2 || ran[0].InputIgnored || ran[0].InputAfter == "" || !ran[1].InputIgnored || ran[1].InputAfter != "" {
		t.Errorf("recorded %+v", ran)
	}
}
