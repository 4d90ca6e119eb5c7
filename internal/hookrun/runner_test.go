package hookrun

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pre(name, command string) *capability.Capability {
	return declared(name, capability.Hook{Event: "pre-tool-use", Command: command, Timeout: 20 * time.Second, FailureMode: capability.FailClosed})
}

func declared(name string, h capability.Hook) *capability.Capability {
	return &capability.Capability{Declaration: capability.Declaration{
		ID: capability.ID{Kind: capability.KindHook, Name: name}, Config: &h,
	}}
}

func writing(input string) hook.Input {
	return hook.Input{Event: hook.PreToolUse, SessionID: "s1", Call: recall(json.RawMessage(input))}
}

// recall is a call of a tool that writes files.
func recall(input json.RawMessage) *hook.Call {
	return &hook.Call{Name: "write", Input: input, ID: "c1", Requests: requests(input)}
}

// requests judges by the paths, as the dispatcher does for file tools.
func requests(input json.RawMessage) []policy.Request {
	all := []policy.Request{}
	for _, s := range policy.Subjects(input) {
		all = append(all, policy.Request{Tool: "write", Kind: s.Kind, Subject: s.Text})
	}
	return all
}

// V165: the hook finds the event on its stdin. Nothing of this process's environment is inherited but PATH.
func TestAHookSeesItsInputAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VAK_TEST_SECRET", "hunter2")
	d, deliveries := New(dir, "/home/x", nil).Deliver(t.Context(), []*capability.Capability{
		pre("see", "cat >in.json; env | sort >env.txt; pwd >pwd.txt"),
	}, writing(`{"path":"a"}`), recall)
	if d.Block != nil || len(deliveries) != 1 || deliveries[0].Verdict != hook.NoOpinion {
		t.Fatalf("%+v %+v", d, deliveries)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"event":"pre-tool-use","session_id":"s1","cwd":"` + dir + `","tool":{"name":"write","input":{"path":"a"}}}` + "\n"; text(t, dir, "in.json") != want {
		t.Errorf("stdin %s", text(t, dir, "in.json"))
	}
	if got := strings.TrimSpace(text(t, dir, "pwd.txt")); got != resolved && got != dir {
		t.Errorf("working folder %s", got)
	}
	var names []string
	for line := range strings.Lines(text(t, dir, "env.txt")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "_", "PWD", "OLDPWD", "SHLVL": // the shell's own
		default:
			names = append(names, name)
		}
		if name == "HOME" && value != "/home/x" {
			t.Errorf("HOME is %s", value)
		}
	}
	if diff := cmp.Diff([]string{"HOME", "PATH", "VAK_EVENT", "VAK_HOOK", "VAK_SESSION_ID", "VAK_TOOL", "VAK_WORKSPACE"}, names); diff != "" {
		t.Error(diff)
	}
}

func text(t *testing.T, dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// V166, V167: one after another in order, and nothing runs after the first block.
func TestTheFirstBlockWins(t *testing.T) {
	dir := t.TempDir()
	r := New(dir, dir, nil)
	d, deliveries := r.Deliver(t.Context(), []*capability.Capability{
		pre("1", "echo 1 >>order"),
		pre("2", `echo 2 >>order; echo '{"decision":"approve"}'`),
		pre("3", "echo 3 >>order; echo 'not this way' >&2; exit 2"),
		pre("4", "echo 4 >>order"),
	}, writing(`{}`), recall)
	if got := text(t, dir, "order"); got != "1\n2\n3\n" {
		t.Errorf("order %q", got)
	}
	if d.Block == nil || d.Block.Code != vakerr.HookBlocked || d.Block.Reason != "hook:3 blocks: not this way" || len(deliveries) != 3 {
		t.Errorf("%+v %+v", d, deliveries)
	}
	counts := r.Counts()
	if counts["3"].Blocked != 1 || counts["1"].Asked != 1 || counts["4"].Asked != 0 {
		t.Errorf("counts %+v", counts)
	}
}

func TestTheNextHookIsAskedAboutTheRewrite(t *testing.T) {
	dir := t.TempDir()
	guard := pre("guard", "cat >seen.json; exit 2")
	guard.Config.(*capability.Hook).Match = "write(secret/**)"
	rewrite := pre("rewrite", `echo '{"input":{"path":"secret/x"}}'`)
	d, _ := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{rewrite, guard}, writing(`{"path":"open/x"}`), recall)
	if d.Block == nil || d.Hook.Name != "guard" || !strings.Contains(text(t, dir, "seen.json"), `"input":{"path":"secret/x"}`) {
		t.Errorf("the guard did not see the rewrite: %+v", d)
	}
	d, deliveries := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{guard}, writing(`{"path":"open/x"}`), recall)
	if d.Block != nil || len(deliveries) != 0 {
		t.Errorf("the guard ran for another path: %+v", d)
	}
}

func TestAFileOfTheWorkspaceIsRunWithoutAShell(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nexit 2\n"
	if err := os.MkdirAll(filepath.Join(dir, "my hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "my hooks", "check.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	d, _ := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{pre("x", "my hooks/check.sh")}, writing(`{}`), recall)
	if d.Block == nil || d.Block.Code != vakerr.HookBlocked {
		t.Errorf("got %+v", d)
	}
}

// V169: failing to start or in time blocks for closed and passes for open. V168: what it started dies with it.
func TestFailureModes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dead"), []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, command, says string
		timeout             time.Duration
	}{
		{"no start", "./dead", "interpreter", 20 * time.Second},
		{"timeout", "sleep 60 & sleep 60", "longer than 50ms", 50 * time.Millisecond},
	} {
		for _, mode := range []capability.FailureMode{capability.FailOpen, capability.FailClosed} {
			t.Run(tt.name+" "+string(mode), func(t *testing.T) {
				r := New(dir, dir, nil)
				h := declared("h", capability.Hook{Event: "pre_tool_use", Command: tt.command, Timeout: tt.timeout, FailureMode: mode})
				d, deliveries := r.Deliver(t.Context(), []*capability.Capability{h}, writing(`{}`), recall)
				if len(deliveries) != 1 || !strings.Contains(deliveries[0].Failure, tt.says) {
					t.Fatalf("deliveries %+v", deliveries)
				}
				if blocks := d.Block != nil; blocks != (mode == capability.FailClosed) {
					t.Errorf("blocks: %t", blocks)
				}
				if d.Block != nil && d.Block.Code != vakerr.HookFailed {
					t.Errorf("code %s", d.Block.Code)
				}
				if c := r.Counts()["h"]; c.Failed != 1 || c.LastFailure == "" {
					t.Errorf("counts %+v", c)
				}
				if n := childproc.Count(); n != 0 {
					t.Errorf("%d processes are left", n)
				}
			})
		}
	}
}

// V168: killed on cancel, which is no failure of the hook and lets no call go on, even for a fail-open hook.
func TestCancelKillsAndBlocks(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := New(dir, dir, nil)
	h := declared("h", capability.Hook{Event: "pre-tool-use", Command: "touch begun; sleep 60", Timeout: time.Minute, FailureMode: capability.FailOpen})
	go cancelWhenThere(ctx, filepath.Join(dir, "begun"), cancel)
	d, deliveries := r.Deliver(ctx, []*capability.Capability{h}, writing(`{}`), recall)
	if d.Block == nil || d.Block.Code != vakerr.Canceled || len(deliveries) != 0 || len(r.Counts()) != 0 {
		t.Errorf("%+v %+v", d, deliveries)
	}
	if n := childproc.Count(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	late, stopLate := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stopLate()
	if d, _ := r.Deliver(late, []*capability.Capability{h}, writing(`{}`), recall); d.Block == nil || d.Block.Code != vakerr.DeadlineExceeded {
		t.Errorf("%+v", d)
	}
}

func cancelWhenThere(ctx context.Context, file string, cancel func()) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := os.Stat(file); err == nil {
				cancel()
				return
			}
		}
	}
}

// V168: 64 KiB are captured; an answer beyond them is a failure, not half an answer.
func TestOutputIsBounded(t *testing.T) {
	dir := t.TempDir()
	flood := "head -c 1000000 /dev/zero | tr '\\0' ' '; echo '{}'"
	d, deliveries := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{pre("h", flood)}, writing(`{}`), recall)
	if d.Block != nil || deliveries[0].Verdict != hook.NoOpinion {
		t.Errorf("blank stdout: %+v", d)
	}
	flood = `echo '{"decision":"approve","reason":"'; head -c 100000 /dev/zero | tr '\0' x; echo '"}'`
	d, _ = New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{pre("h", flood)}, writing(`{}`), recall)
	if d.Block == nil || d.Block.Code != vakerr.HookFailed {
		t.Errorf("cut answer: %+v", d)
	}
}

// V147: a refusing hook blocks without being started.
func TestARefusalIsNotRun(t *testing.T) {
	dir := t.TempDir()
	h := declared("h", capability.Hook{Event: "pre-tool-use", Command: "touch ran", FailureMode: capability.FailClosed, Refusal: "unreadable"})
	d, _ := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{h}, writing(`{}`), recall)
	if d.Block == nil || !strings.Contains(d.Block.Reason, "unreadable") {
		t.Errorf("%+v", d)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestStopNeedsNoRequest(t *testing.T) {
	dir := t.TempDir()
	h := declared("h", capability.Hook{Event: "stop", Match: "write", Command: "exit 2", Timeout: 20 * time.Second})
	d, _ := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{h}, hook.Input{Event: hook.Stop, Text: "done"}, nil)
	if d.Block == nil {
		t.Error("the stop hook did not block")
	}
}

func TestCountsAreBounded(t *testing.T) {
	var counted tally
	for i := range 10_000 {
		counted.add(Delivery{Hook: capability.ID{Kind: capability.KindHook, Name: fmt.Sprint("h", i)}})
		counted.add(Delivery{Hook: capability.ID{Kind: capability.KindHook, Name: "steady"}})
	}
	if n := len(counted.byHook); n > maxCounted {
		t.Errorf("%d hooks are counted", n)
	}
	if c := counted.byHook["steady"]; c.Asked != 10_000 {
		t.Errorf("a hook in use was forgotten: %+v", c)
	}
}
