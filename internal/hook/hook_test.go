package hook_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V163: the events, snake case accepted.
func TestParseEvent(t *testing.T) {
	for text, want := range map[string]hook.Event{
		"session-start": hook.SessionStart, "session_start": hook.SessionStart,
		"pre-tool-use": hook.PreToolUse, "pre_tool_use": hook.PreToolUse,
		"post-tool-use": hook.PostToolUse, "post_tool_use": hook.PostToolUse, " stop ": hook.Stop,
	} {
		if got, err := hook.ParseEvent(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "PreToolUse", "before-tool-use", "stop!"} {
		if _, err := hook.ParseEvent(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// V164: match has the syntax of a permission rule, over the tool and what it acts on.
func TestConcerns(t *testing.T) {
	hooks := map[string]*capability.Hook{
		"all":        {Event: "pre_tool_use"},
		"writes":     {Event: "pre-tool-use", Match: "write(src/**)"},
		"unreadable": {Event: "pre-tool-use", Match: "write("},
		"later":      {Event: "post-tool-use", Match: "write"},
		"end":        {Event: "stop", Match: "write"},
		"strange":    {Event: "sunrise"},
	}
	of := func(tool string, paths ...string) (all []policy.Request) {
		for _, p := range paths {
			all = append(all, policy.Request{Tool: tool, Kind: policy.SubjectPath, Subject: p})
		}
		return all
	}
	write, read := of("write", "doc/a", "src/x.go"), of("read", "src/x.go")
	for _, tt := range []struct {
		event hook.Event
		calls []policy.Request
		want  []string
	}{
		{hook.PreToolUse, write, []string{"all", "unreadable", "writes"}},
		{hook.PreToolUse, read, []string{"all", "unreadable"}},
		{hook.PreToolUse, of("write", "doc/a"), []string{"all", "unreadable"}},
		{hook.PostToolUse, write, []string{"later"}},
		{hook.PostToolUse, read, nil},
		{hook.Stop, nil, []string{"end"}},
		{hook.SessionStart, nil, nil},
	} {
		var got []string
		for name, h := range hooks {
			if hook.Concerns(h, hook.Input{Event: tt.event, Call: &hook.Call{Name: "x", Requests: tt.calls}}) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %v: %s", tt.event, tt.calls, diff)
		}
	}
}

// V165: event, session_id, cwd, and tool{name,input} or text.
func TestEncode(t *testing.T) {
	in := hook.Input{Event: hook.PreToolUse, SessionID: "s1", Cwd: "/w", Call: &hook.Call{Name: "write", Input: json.RawMessage(`{"path":"a"}`)}}
	line, err := in.Encode(&capability.Hook{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"event":"pre-tool-use","session_id":"s1","cwd":"/w","tool":{"name":"write","input":{"path":"a"}}}` + "\n"; string(line) != want {
		t.Errorf("got %s", line)
	}
	line, err = hook.Input{Event: hook.Stop, SessionID: "s1", Cwd: "/w", Text: "done"}.Encode(&capability.Hook{})
	if want := `{"event":"stop","session_id":"s1","cwd":"/w","text":"done"}` + "\n"; err != nil || string(line) != want {
		t.Errorf("got %s, %v", line, err)
	}
}

func TestEncodeCutsTextButNeverACall(t *testing.T) {
	line, err := hook.Input{Event: hook.Stop, Text: strings.Repeat("ä", hook.MaxInput)}.Encode(&capability.Hook{})
	if err != nil || len(line) > hook.MaxInput || !utf8.Valid(line) {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	big := json.RawMessage(`{"content":"` + strings.Repeat("x", hook.MaxInput) + `"}`)
	if _, err := (hook.Input{Event: hook.PreToolUse, Call: &hook.Call{Name: "write", Input: big}}).Encode(&capability.Hook{}); err == nil {
		t.Error("a call beyond the bound was encoded")
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name    string
		run     hook.Run
		verdict hook.Verdict // of a fail-open hook
		failure bool         // then a fail-closed one blocks
		says    string
	}{
		// V166
		{"silent exit 0", hook.Run{}, hook.NoOpinion, false, ""},
		{"blank exit 0", stdout(" \n"), hook.NoOpinion, false, ""},
		{"JSON block", stdout(`{"decision":"block","reason":"not on Fridays"}`), hook.Block, false, "not on Fridays"},
		{"JSON block without a reason", stdout(`{"decision":"block"}`), hook.Block, false, "it gave no reason"},
		{"JSON approve", stdout(`{"decision":"approve"}`), hook.Approve, false, ""},
		{"JSON without a decision", stdout(`{"note":1}`), hook.NoOpinion, false, ""},
		{"exit 2", hook.Run{ExitCode: 2, Stderr: []byte("no\x1b[31m\n")}, hook.Block, false, "no[31m"},
		{"exit 2 beats an approval", hook.Run{ExitCode: 2, Stdout: []byte(`{"decision":"approve"}`)}, hook.Block, false, "no reason"},
		// V169
		{"did not start", hook.Run{StartError: "no such command"}, hook.NoOpinion, true, "no such command"},
		{"timed out", hook.Run{TimedOut: true, ExitCode: -1}, hook.NoOpinion, true, "1s"},
		// Every other way not to answer is a failure too.
		{"exit 1", hook.Run{ExitCode: 1}, hook.NoOpinion, true, "exit status 1"},
		{"killed", hook.Run{ExitCode: -1}, hook.NoOpinion, true, "signal"},
		{"words", stdout("looks good"), hook.NoOpinion, true, "not the JSON object"},
		{"words before a block", stdout("checking\n" + `{"decision":"block"}`), hook.NoOpinion, true, "not the JSON object"},
		{"null", stdout("null"), hook.NoOpinion, true, "not the JSON object"},
		{"unknown decision", stdout(`{"decision":"maybe"}`), hook.NoOpinion, true, "neither"},
		{"input is no object", stdout(`{"input":[1]}`), hook.NoOpinion, true, "no JSON object"},
		{"cut", hook.Run{Stdout: []byte(`{}`), Truncated: true}, hook.NoOpinion, true, "too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, mode := range []capability.FailureMode{capability.FailOpen, capability.FailClosed, ""} {
				o := hook.Judge(&capability.Hook{Timeout: time.Second, FailureMode: mode}, hook.Input{}, tt.run)
				want := tt.verdict
				if tt.failure && mode != capability.FailOpen {
					want = hook.Block
				}
				if o.Verdict != want || (o.Failure != "") != tt.failure {
					t.Errorf("%q: %s, failure %q", mode, o.Verdict, o.Failure)
				}
				if !strings.Contains(o.Reason+o.Failure, tt.says) {
					t.Errorf("%q: reason %q, failure %q", mode, o.Reason, o.Failure)
				}
			}
		})
	}
}

// V147: a hook whose definition cannot be used blocks with its reason, whatever its run says.
func TestRefusalBlocks(t *testing.T) {
	o := hook.Judge(&capability.Hook{FailureMode: capability.FailClosed, Refusal: "no command"}, hook.Input{}, hook.Run{})
	if o.Verdict != hook.Block || !strings.Contains(o.Reason, "no command") {
		t.Errorf("got %+v", o)
	}
}

func id(name string) capability.ID { return capability.ID{Kind: capability.KindHook, Name: name} }

// V167: the first block wins.
func TestApply(t *testing.T) {
	var d hook.Decision
	d, goOn := d.Apply(id("a"), hook.Outcome{Verdict: hook.Approve, Input: json.RawMessage(`{"n":1}`)})
	if !goOn {
		t.Fatal("an approval ended the row")
	}
	d, _ = d.Apply(id("b"), hook.Outcome{Input: json.RawMessage(`{"n":2}`)})
	d, goOn = d.Apply(id("c"), hook.Outcome{Verdict: hook.Block, Reason: "no"})
	if goOn || d.Block == nil || d.Block.Code != vakerr.HookBlocked || d.Hook != id("c") || !strings.Contains(d.Block.Reason, "hook:c blocks: no") {
		t.Errorf("got %+v", d)
	}
	if string(d.Input) != `{"n":2}` || !cmp.Equal(d.Rewriters, []string{"a", "b"}) {
		t.Errorf("rewrites: %s by %v", d.Input, d.Rewriters)
	}
	d, _ = hook.Decision{}.Apply(id("x"), hook.Outcome{Verdict: hook.Block, Reason: "r", Failure: "f"})
	if d.Block.Code != vakerr.HookFailed {
		t.Errorf("a failure is told as %s", d.Block.Code)
	}
}

// V170: a post-tool block annotates, a stop block goes on until the bound.
func TestBlocksAfterTheFact(t *testing.T) {
	if got := (hook.Decision{}).Annotation(); got != "" {
		t.Errorf("no block annotates %q", got)
	}
	if _, goOn := (hook.Decision{}).Continuation(0, 5); goOn {
		t.Error("a run goes on without a block")
	}
	d, _ := hook.Decision{}.Apply(id("tests"), hook.Outcome{Verdict: hook.Block, Reason: "tests fail"})
	if got := d.Annotation(); !strings.Contains(got, "tests fail") {
		t.Errorf("annotation %q", got)
	}
	if text, goOn := d.Continuation(4, 5); !goOn || !strings.Contains(text, "tests fail") {
		t.Errorf("%q %t", text, goOn)
	}
	if _, goOn := d.Continuation(5, 5); goOn {
		t.Error("the bound does not hold")
	}
}

// A hook prints what it likes: a block always has a readable, bounded reason, an input is an object, and a fail-closed hook
// that was not understood never passes.
func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"decision":"block","reason":"x"}`), []byte(""), 0, true)
	f.Add([]byte(`{"decision":"approve","input":{"a":1}}`), []byte(""), 0, false)
	f.Add([]byte("\xff{"), []byte("\x00\xff why"), 2, true)
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, exit int, closed bool) {
		h := &capability.Hook{FailureMode: capability.FailOpen}
		if closed {
			h.FailureMode = capability.FailClosed
		}
		o := hook.Judge(h, hook.Input{}, hook.Run{Stdout: stdout, Stderr: stderr, ExitCode: exit})
		if o.Verdict == hook.Block && (o.Reason == "" || len(o.Reason) > 2100 || !utf8.ValidString(o.Reason)) {
			t.Fatalf("reason %q", o.Reason)
		}
		if o.Failure != "" && closed && o.Verdict != hook.Block {
			t.Fatalf("a fail-closed hook passed: %s", o.Failure)
		}
		if o.Input != nil && (o.Verdict == hook.Block || !json.Valid(o.Input) || o.Input[0] != '{') {
			t.Fatalf("input %q with %s", o.Input, o.Verdict)
		}
	})
}
