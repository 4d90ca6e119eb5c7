package hook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func command(text string) *hook.Call {
	return &hook.Call{Name: "bash", Input: json.RawMessage(`{"command":"` + text + `"}`), ID: "c1", Requests: []policy.Request{{Tool: "bash", Kind: policy.SubjectCommand, Subject: text}}}
}

func file(tool, path string, reads bool) *hook.Call {
	return &hook.Call{Name: tool, Input: json.RawMessage(`{"path":"` + path + `","n":1}`), ID: "c1", Requests: []policy.Request{{Tool: tool, Kind: policy.SubjectPath, Subject: path, ReadOnly: reads}}}
}

func ofServer(server, tool string) *hook.Call {
	return &hook.Call{
		Name: "mcp", Input: json.RawMessage(`{"action":"call","server":"` + server + `","tool":"` + tool + `","arguments":{"a":1}}`), ID: "c1",
		Server: server, ServerTool: tool, ServerInput: json.RawMessage(`{"a":1}`), Requests: []policy.Request{{Tool: "mcp", Server: server, ServerTool: tool}},
	}
}

// The matchers that users of other programs write, over calls of this host's tools.
func TestMatchersOfOtherPrograms(t *testing.T) {
	for _, tc := range []struct {
		dialect        capability.Dialect
		event, matcher string
		call           *hook.Call
		want           bool
	}{
		{capability.DialectClaude, "PreToolUse", "", command("ls"), true},
		{capability.DialectClaude, "PreToolUse", "*", command("ls"), true},
		{capability.DialectClaude, "PreToolUse", "Bash", command("ls"), true},
		{capability.DialectClaude, "PreToolUse", "bash", command("ls"), false},
		{capability.DialectClaude, "PreToolUse", "Ba", command("ls"), false},  // exact
		{capability.DialectClaude, "PreToolUse", "Ba.", command("ls"), true},  // unanchored
		{capability.DialectClaude, "PreToolUse", "^as", command("ls"), false}, // a regular expression
		{capability.DialectClaude, "PreToolUse", "Write|Edit", file("edit", "a", false), true},
		{capability.DialectClaude, "PreToolUse", "Write, Edit", file("edit", "a", false), true},
		{capability.DialectClaude, "PreToolUse", "Write", file("edit", "a", false), false},
		{capability.DialectClaude, "PreToolUse", "Edit|MultiEdit", file("save_file", "a", false), true}, // by what it does
		{capability.DialectClaude, "PreToolUse", "SaveFile", file("save_file", "a", false), true},
		{capability.DialectClaude, "PreToolUse", "Read", file("read", "a", true), true},
		{capability.DialectClaude, "PreToolUse", "Grep", file("grep", "a", true), true},
		{capability.DialectClaude, "PreToolUse", "Read", file("grep", "a", true), false},
		{capability.DialectClaude, "PreToolUse", "mcp__memory", ofServer("memory", "add"), false},
		{capability.DialectClaude, "PreToolUse", "mcp__memory__.*", ofServer("memory", "add"), true},
		{capability.DialectClaude, "PreToolUse", "mcp__memory__add", ofServer("memory", "add"), true},
		{capability.DialectClaude, "PreToolUse", "(?=x)", command("ls"), true}, // unreadable here: asked every time
		{capability.DialectClaude, "PostToolUse", "Bash", command("ls"), false},
		{capability.DialectCodex, "PreToolUse", "Bash", command("ls"), true},
		{capability.DialectGemini, "BeforeTool", "run_shell_command", command("ls"), true},
		{capability.DialectGemini, "BeforeTool", "write_file|replace", file("edit", "a", false), true},
		{capability.DialectGemini, "BeforeTool", "mcp_memory_.*", ofServer("memory", "add"), true},
		{capability.DialectCursor, "preToolUse", "Shell", command("ls"), true},
		{capability.DialectCursor, "preToolUse", "MCP:add", ofServer("memory", "add"), true},
		{capability.DialectCursor, "beforeShellExecution", "", command("ls"), true},
		{capability.DialectCursor, "beforeShellExecution", "", file("write", "a", false), false},
		{capability.DialectCursor, "beforeMCPExecution", "", ofServer("memory", "add"), true},
		{capability.DialectCursor, "beforeMCPExecution", "", command("ls"), false},
		{capability.DialectCursor, "beforeReadFile", "", file("read", "a", true), true},
		{capability.DialectCursor, "beforeReadFile", "", file("write", "a", false), false},
	} {
		h := &capability.Hook{Dialect: tc.dialect, Event: tc.event, Match: tc.matcher}
		if got := hook.Concerns(h, hook.Input{Event: hook.PreToolUse, Call: tc.call}); got != tc.want {
			t.Errorf("%s %s %q about %s: %t", tc.dialect, tc.event, tc.matcher, tc.call.Name, got)
		}
	}
	h := &capability.Hook{Dialect: capability.DialectClaude, Event: "PreToolUse", Match: "Bash", If: "Bash(rm *)"}
	if hook.Concerns(h, hook.Input{Event: hook.PreToolUse, Call: command("ls")}) || !hook.Concerns(h, hook.Input{Event: hook.PreToolUse, Call: command("ls; rm x")}) {
		t.Error("the rule beside the matcher does not narrow it")
	}
	h.Idle = "it never fires"
	if hook.Concerns(h, hook.Input{Event: hook.PreToolUse, Call: command("rm x")}) {
		t.Error("an idle hook is asked")
	}
}

// A hook of another program is told what its program would tell it.
func TestInputsOfOtherPrograms(t *testing.T) {
	in := hook.Input{Event: hook.PreToolUse, SessionID: "s", Cwd: "/srv/ws", Mode: "workspace-write", Call: file("write", "a/b", false)}
	for _, tc := range []struct {
		dialect capability.Dialect
		event   string
		in      hook.Input
		want    string
	}{
		{capability.DialectClaude, "PreToolUse", in, `{"cwd":"/srv/ws","hook_event_name":"PreToolUse","permission_mode":"workspace-write","session_id":"s","tool_input":{"file_path":"/srv/ws/a/b","n":1,"path":"a/b"},"tool_name":"Write","tool_use_id":"c1"}`},
		{capability.DialectGemini, "BeforeTool", hook.Input{Event: hook.PreToolUse, Cwd: "/w", Call: ofServer("m", "add")}, `{"cwd":"/w","hook_event_name":"BeforeTool","session_id":"","tool_input":{"a":1},"tool_name":"mcp_m_add","tool_use_id":"c1"}`},
		{capability.DialectCursor, "beforeShellExecution", hook.Input{Event: hook.PreToolUse, Cwd: "/w", Call: command("ls")}, `{"command":"ls","conversation_id":"","cwd":"/w","generation_id":"c1","hook_event_name":"beforeShellExecution","tool_input":{"command":"ls"},"tool_name":"Shell","workspace_roots":["/w"]}`},
		{capability.DialectClaude, "UserPromptSubmit", hook.Input{Event: hook.UserPrompt, Cwd: "/w", Text: "hi"}, `{"cwd":"/w","hook_event_name":"UserPromptSubmit","prompt":"hi","session_id":""}`},
		{capability.DialectClaude, "Stop", hook.Input{Event: hook.Stop, Cwd: "/w", Continued: true}, `{"cwd":"/w","hook_event_name":"Stop","session_id":"","stop_hook_active":true}`},
	} {
		line, err := tc.in.Encode(&capability.Hook{Dialect: tc.dialect, Event: tc.event})
		if err != nil || strings.TrimSpace(string(line)) != tc.want {
			t.Errorf("%s %s: %s, %v", tc.dialect, tc.event, line, err)
		}
	}
}

// What hooks of other programs answer, and what it comes to.
func TestAnswersOfOtherPrograms(t *testing.T) {
	pre := hook.Input{Event: hook.PreToolUse, Cwd: "/srv/ws", Call: file("write", "a", false)}
	server := hook.Input{Event: hook.PreToolUse, Call: ofServer("m", "add")}
	post := hook.Input{Event: hook.PostToolUse, Call: command("ls")}
	for name, tc := range map[string]struct {
		dialect capability.Dialect
		in      hook.Input
		run     hook.Run
		verdict hook.Verdict
		says    string // within reason, context, output, input or failure
	}{
		"deny":                       {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`), hook.Block, "no"},
		"ask":                        {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`), hook.Ask, "sure?"},
		"defer":                      {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"permissionDecision":"defer"}}`), hook.Ask, "no reason"},
		"allow":                      {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`), hook.Approve, ""},
		"the older words":            {capability.DialectClaude, pre, stdout(`{"decision":"block","reason":"old"}`), hook.Block, "old"},
		"the stricter of two":        {capability.DialectClaude, pre, stdout(`{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny"}}`), hook.Block, ""},
		"continue false":             {capability.DialectClaude, pre, stdout(`{"continue":false,"stopReason":"enough"}`), hook.Block, "enough"},
		"JSON beside a status":       {capability.DialectClaude, pre, hook.Run{ExitCode: 1, Stdout: []byte(`{"decision":"block","reason":"still"}`)}, hook.Block, "still"},
		"exit 2 beats allow":         {capability.DialectClaude, pre, hook.Run{ExitCode: 2, Stdout: []byte(`{"decision":"approve"}`), Stderr: []byte("hard")}, hook.Block, "hard"},
		"exit 2 alone":               {capability.DialectClaude, pre, hook.Run{ExitCode: 2}, hook.Block, "no reason"},
		"exit 1":                     {capability.DialectClaude, pre, hook.Run{ExitCode: 1}, hook.NoOpinion, "exit status 1"},
		"a time-out does not block":  {capability.DialectClaude, pre, hook.Run{TimedOut: true, ExitCode: -1}, hook.NoOpinion, "longer than"},
		"plain text before a call":   {capability.DialectClaude, pre, stdout("all is well"), hook.NoOpinion, ""},
		"plain text at a prompt":     {capability.DialectClaude, hook.Input{Event: hook.UserPrompt}, stdout("it is Monday"), hook.NoOpinion, "it is Monday"},
		"context":                    {capability.DialectClaude, post, stdout(`{"hookSpecificOutput":{"additionalContext":"formatted"}}`), hook.NoOpinion, "formatted"},
		"another result":             {capability.DialectClaude, post, stdout(`{"hookSpecificOutput":{"updatedToolOutput":"short"}}`), hook.NoOpinion, `"short"`},
		"input replaced":             {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"updatedInput":{"file_path":"/srv/ws/b"}}}`), hook.NoOpinion, `{"path":"/srv/ws/b"}`},
		"input with its path kept":   {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"updatedInput":{"file_path":"/srv/ws/a","n":2}}}`), hook.NoOpinion, `{"n":2,"path":"a"}`},
		"input of a server's tool":   {capability.DialectClaude, server, stdout(`{"hookSpecificOutput":{"updatedInput":{"b":2}}}`), hook.NoOpinion, `"arguments":{"b":2}`},
		"Gemini merges":              {capability.DialectGemini, pre, stdout(`{"hookSpecificOutput":{"tool_input":{"n":2}}}`), hook.NoOpinion, `{"n":2,"path":"a"}`},
		"Gemini denies":              {capability.DialectGemini, pre, stdout(`{"decision":"deny","reason":"g"}`), hook.Block, "g"},
		"Cursor denies":              {capability.DialectCursor, pre, stdout(`{"permission":"deny","agent_message":"c","user_message":"u"}`), hook.Block, "c"},
		"Cursor asks":                {capability.DialectCursor, pre, stdout(`{"permission":"ask","user_message":"u"}`), hook.Ask, "u"},
		"an unknown word is failure": {capability.DialectClaude, pre, stdout(`{"decision":"perhaps"}`), hook.NoOpinion, "none of allow"},
		"an input that is no object": {capability.DialectClaude, pre, stdout(`{"hookSpecificOutput":{"updatedInput":[1]}}`), hook.NoOpinion, "no JSON object"},
	} {
		o := hook.Judge(&capability.Hook{Dialect: tc.dialect, FailureMode: capability.FailOpen}, tc.in, tc.run)
		if all := o.Reason + o.Context + string(o.Output) + string(o.Input) + o.Failure; o.Verdict != tc.verdict || !strings.Contains(all, tc.says) {
			t.Errorf("%s: %s, %s", name, o.Verdict, all)
		}
	}
	closed := hook.Judge(&capability.Hook{Dialect: capability.DialectCursor, FailureMode: capability.FailClosed}, pre, hook.Run{TimedOut: true})
	if closed.Verdict != hook.Block {
		t.Errorf("a fail-closed hook that timed out: %+v", closed)
	}
}

func stdout(s string) hook.Run { return hook.Run{Stdout: []byte(s)} }

// One lattice over all dialects: a block, then a question, then nothing; the first of each is told.
func TestTheStrictestOpinionCounts(t *testing.T) {
	var d hook.Decision
	d, _ = d.Apply(id("a"), hook.Outcome{Verdict: hook.Ask, Reason: "one", Context: "x"})
	d, _ = d.Apply(id("b"), hook.Outcome{Verdict: hook.Approve, Context: "y"})
	d, goOn := d.Apply(id("c"), hook.Outcome{Verdict: hook.Ask, Reason: "two"})
	if !goOn || d.Block != nil || d.Ask != "hook:a asks: one" || d.Hook != id("a") || strings.Join(d.Context, ",") != "x,y" {
		t.Errorf("%+v", d)
	}
	d, goOn = d.Apply(id("d"), hook.Outcome{Verdict: hook.Block, Reason: "no"})
	if goOn || d.Block == nil || d.Hook != id("d") {
		t.Errorf("%+v", d)
	}
}

// Every event that a dialect documents is known, and says when it happens or why never.
func TestMoments(t *testing.T) {
	for dialect, count := range map[capability.Dialect]int{capability.DialectClaude: 31, capability.DialectCodex: 31, capability.DialectGemini: 11, capability.DialectCursor: 20} {
		names := hook.EventsOf(dialect)
		if len(names) < count {
			t.Errorf("%s has %d events: %v", dialect, len(names), names)
		}
		for _, name := range names {
			m, known := hook.MomentOf(dialect, name)
			if !known || (len(m.Events) == 0) != (m.Idle != "") {
				t.Errorf("%s %s: %+v", dialect, name, m)
			}
		}
	}
	if _, known := hook.MomentOf(capability.DialectClaude, "preEditHook"); known {
		t.Error("an invented event is known")
	}
}
