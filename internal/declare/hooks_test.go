package declare

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func hooksOf(r Result) map[string]*capability.Hook {
	all := map[string]*capability.Hook{}
	for _, d := range r.Declarations {
		if h, is := d.Config.(*capability.Hook); is {
			all[d.ID.Name] = h
		}
	}
	return all
}

func codesOnly(r Result) []string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, p.Code)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Hooks of all files add up, in order of precedence and of their files; a handler that two files have runs once.
func TestHooksOfAllFiles(t *testing.T) {
	r := scan(t, files(
		"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"z\"\n[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"a\"\n",
		".claude/settings.json", `{"hooks": {"PreToolUse": [
			{"matcher": "Bash", "hooks": [{"type": "command", "command": "both", "timeout": 5}, {"type": "command", "command": "one"}]},
			{"matcher": "*", "hooks": [{"type": "http", "url": "https://example.org/?token=secret"}]}]}}`,
		".claude/settings.local.json", `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "both"}]}],
			"Notification": [{"hooks": [{"type": "command", "command": "bell"}]}], "Stop": [{"hooks": [{"type": "prompt", "prompt": "done?"}]}]}}`,
		".cursor/hooks.json", `{"version": 1, "hooks": {"beforeShellExecution": [{"command": "guard", "failClosed": true}]}}`,
		".codex/hooks.json", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "codex"}]}]}}`,
		".gemini/settings.json", `{"hooks": {"BeforeTool": [{"matcher": "write_.*", "sequential": true, "hooks": [{"type": "command", "command": "gem", "timeout": 1500}]}]}}`,
		".codex/config.toml", "[hooks]\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"end\"\n",
	))
	got := hooksOf(r)
	var order []string
	for name := range got {
		order = append(order, name)
	}
	slices.SortFunc(order, func(a, b string) int { return got[a].Position - got[b].Position })
	for i, name := range order {
		order[i], _, _ = strings.Cut(name, "#")
	}
	if diff := cmp.Diff([]string{
		"pre-tool-use/z", "pre-tool-use/a", "PreToolUse[Bash]/both", "PreToolUse[Bash]/one", "PreToolUse/https://example.org/?token=***",
		"Notification/bell", "Stop/done?", "beforeShellExecution/guard", "PreToolUse/codex", "Stop/end", "BeforeTool[write_.*]/gem",
	}, order); diff != "" {
		t.Errorf("(-want +got):\n%s\n%v", diff, r.Problems)
	}
	for name, want := range map[string]capability.Hook{
		"PreToolUse[Bash]/both":      {Event: "PreToolUse", Dialect: capability.DialectClaude, Match: "Bash", Type: "command", Command: "both", Timeout: 5 * time.Second, FailureMode: "open"},
		"beforeShellExecution/guard": {Event: "beforeShellExecution", Dialect: capability.DialectCursor, Type: "command", Command: "guard", Timeout: 10 * time.Minute, FailureMode: "closed"},
		"PreToolUse/codex":           {Event: "PreToolUse", Dialect: capability.DialectCodex, Type: "command", Command: "codex", Timeout: 10 * time.Minute, FailureMode: "open"},
		"BeforeTool[write_.*]/gem":   {Event: "BeforeTool", Dialect: capability.DialectGemini, Match: "write_.*", Type: "command", Command: "gem", Timeout: 1500 * time.Millisecond, FailureMode: "open", Sequential: true},
	} {
		h := *got[name]
		h.Position = 0
		if diff := cmp.Diff(want, h); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if h := got["Notification/bell"]; h.Idle == "" {
		t.Error("a hook for a moment that never comes is not said to be idle")
	}
}

// disableAllHooks turns the hooks of its file off, and they stay visible.
func TestDisableAllHooks(t *testing.T) {
	r := scan(t, files(".claude/settings.json", `{"disableAllHooks": true, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}`))
	if h := hooksOf(r)["PreToolUse/x"]; h == nil || !strings.Contains(h.Idle, "disableAllHooks") {
		t.Errorf("%+v", r)
	}
}

// V146, V147: one bad handler never costs another; one that was to be fail-closed blocks with its reason.
func TestBadHandlers(t *testing.T) {
	r := scan(t, files(
		".claude/settings.json", `{"hooks": {"PreToolUse": [{"hooks": [{"command": "untyped"}, 5, {"type": "command"}, {"type": "x", "command": "y"}, {"type": "command", "command": "good"}]}, 7],
			"preEditHook": {"command": "x"}, "PreToolUs": [], "Stop": {"command": "x"}}, "permissions": {"deny": ["Bash(rm *)"]}}`,
		".cursor/hooks.json", `{"version": 1, "hooks": {"preToolUse": [{"failClosed": true}, {"command": "c", "failClosed": "perhaps"}]}}`,
	))
	got := hooksOf(r)
	if len(got) != 3 || got["PreToolUse/good"] == nil || got["preToolUse/c"].FailureMode != capability.FailClosed {
		t.Errorf("%v", got)
	}
	refuses := false
	for _, h := range got {
		refuses = refuses || h.Refusal != ""
	}
	if !refuses {
		t.Error("an unreadable fail-closed hook does not refuse")
	}
	if diff := cmp.Diff([]string{"hook_command", "hook_event", "hook_shape", "hook_type"}, codesOnly(r)); diff != "" {
		t.Error(diff)
	}
	for _, p := range r.Problems {
		if p.Line == 0 || p.Hint == "" {
			t.Errorf("%+v", p)
		}
	}
	e, _ := policy.CompileEngine(policy.Host{}, r.Permissions...)
	if d := e.Decide(policy.Request{Tool: "bash", Kind: policy.SubjectCommand, Subject: "rm x"}); d.Effect != policy.Deny {
		t.Errorf("broken hooks dropped the permissions: %+v", d)
	}
}

// A file that breaks keeps what it said before, hooks and rules; one that was never read, or whose rules cannot be read,
// denies every call.
func TestBrokenSettings(t *testing.T) {
	const good = `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}, "permissions": {"deny": ["Edit(a)"]}}`
	for name, tc := range map[string]struct {
		texts    []string
		hooks    int
		shut     bool // every call is denied
		problems []string
	}{
		"good":                   {[]string{good}, 1, false, nil},
		"broken later":           {[]string{good, `{"hooks": `}, 1, false, []string{"mcp_syntax"}},
		"repaired":               {[]string{good, `{"hooks": `, good}, 1, false, nil},
		"never read":             {[]string{`{"hooks": `}, 0, true, []string{"mcp_syntax"}},
		"rules are no object":    {[]string{`{"permissions": []}`}, 0, true, []string{"permissions_unreadable"}},
		"a rule is no text":      {[]string{`{"permissions": {"deny": [5]}}`}, 0, true, []string{"permissions_unreadable"}},
		"a deny cannot be read":  {[]string{`{"permissions": {"deny": ["Bash("]}}`}, 0, true, []string{"permission_rule"}},
		"an allow cannot be":     {[]string{`{"permissions": {"allow": ["Bash("]}}`}, 0, false, []string{"permission_rule"}},
		"keys that nobody knows": {[]string{`{"permissions": {"alow": []}}`}, 0, false, []string{"permissions_unknown_key"}},
	} {
		s := NewScanner(Options{})
		var r Result
		for i, text := range tc.texts {
			at := time.Unix(int64(1_000_000+100*i), 0)
			fsys := files(".claude/settings.json", text)
			fsys[".claude/settings.json"].ModTime = at
			var err error
			if r, err = s.Scan(fsys, at.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		e, _ := policy.CompileEngine(policy.Host{}, r.Permissions...)
		decided := e.Decide(policy.Request{Tool: "read", Kind: policy.SubjectPath, Subject: "b", ReadOnly: true})
		if len(hooksOf(r)) != tc.hooks || (decided.Effect == policy.Deny) != tc.shut || !slices.Equal(codesOnly(r), tc.problems) {
			t.Errorf("%s: %d hooks, %+v, %v", name, len(hooksOf(r)), decided, r.Problems)
		}
	}
}

func FuzzReadHooks(f *testing.F) {
	f.Add(".claude/settings.json", []byte(`{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x", "timeout": 5}]}]}}`))
	f.Add(".cursor/hooks.json", []byte(`{"version": 1, "hooks": {"stop": [{"command": "x", "failClosed": true}]}}`))
	f.Add(".codex/config.toml", []byte("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\n"))
	f.Add("hooks.json", []byte(`{"hooks": [1], "Stop": {}}`))
	f.Fuzz(func(t *testing.T, file string, raw []byte) {
		for _, e := range ReadHooks(file, raw).Hooks {
			h := e.Hook
			if h.Timeout <= 0 || h.Timeout > maxHookTime || hookName(h) == "" {
				t.Fatalf("%+v", h)
			}
			if h.Idle == "" && h.Refusal == "" && h.Command == "" && h.URL == "" {
				t.Fatalf("a hook that asks nothing: %+v", h)
			}
		}
		readRules(file, raw)
	})
}
