package real

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// patience bounds what the program is waited for, on a machine that is busy.
const patience = 60 * time.Second

// agent is a client that stays connected over pipes, and hears what is said unasked.
type agent struct {
	*client.Client
	w    *world
	told chan string
}

// attach starts `vak-actors mcp` for a client.
func (w *world) attach(env ...string) *agent {
	w.Helper()
	c := exec.Command(program, w.args("mcp", "--wait", "30s")...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		w.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.Fatal(err)
	}
	a := &agent{client.NewClient(transport.NewIO(out, in, io.NopCloser(strings.NewReader(""))), client.WithProtocolVersion("2025-11-25")), w, make(chan string, 100)}
	w.Cleanup(func() {
		_ = a.Close()
		if err := c.Wait(); err != nil {
			w.Errorf("mcp ended with %v", err)
		}
	})
	a.OnNotification(func(n mcp.JSONRPCNotification) { a.told <- n.Method })
	if err := a.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
	if _, err := a.Initialize(w.Context(), mcp.InitializeRequest{}); err != nil {
		w.Fatal(err)
	}
	return a
}

func (a *agent) names() string {
	a.w.Helper()
	ctx, cancel := context.WithTimeout(a.w.Context(), patience)
	defer cancel()
	list, err := a.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		a.w.Fatal(err)
	}
	var names strings.Builder
	names.WriteString(" ")
	for _, t := range list.Tools {
		names.WriteString(t.Name + " ")
	}
	return names.String()
}

// use calls a tool and returns its texts and whether they tell an error, or the error of the protocol.
func (a *agent) use(tool string, arguments map[string]any) (string, bool) {
	a.w.Helper()
	ctx, cancel := context.WithTimeout(a.w.Context(), patience)
	defer cancel()
	call := mcp.CallToolRequest{}
	call.Params.Name, call.Params.Arguments = tool, arguments
	r, err := a.CallTool(ctx, call)
	if err != nil {
		return err.Error(), true
	}
	var all strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(mcp.TextContent); ok {
			all.WriteString(t.Text)
		}
	}
	return all.String(), r.IsError
}

func (a *agent) hears() {
	a.w.Helper()
	for limit := time.After(patience); ; {
		select {
		case got := <-a.told:
			switch got {
			case "notifications/tools/list_changed":
				return
			case "notifications/prompts/list_changed", "notifications/resources/list_changed": // of a daemon that came back
			default:
				a.w.Fatalf("told %s", got)
			}
		case <-limit:
			a.w.Fatal("nothing was told")
		}
	}
}

const greet = "---\nname: greet\ndescription: Greets in the house style.\n---\nSay ahoy.\n"

// V86, V88, V121, V123: a client that stays connected is told of what changes its list, once, and of nothing else; what it
// may call and load follows the change, whether it lists again or not.
func TestClientFollowsTheWorkspace(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	w.serve()
	a := w.attach("CLAUDE_CODE_SESSION_ID=follower")
	if names := a.names(); strings.Contains(names, " skill ") {
		t.Fatalf("there is no skill yet, and the list is%s", names)
	}
	a.use("mcp", map[string]any{"action": "list"}) // a turn before the change
	w.write("skills/greet/SKILL.md", greet)
	w.vak(w.args("reload")...)
	a.hears()
	if got, failed := a.use("skill", map[string]any{"name": "greet"}); failed || !strings.Contains(got, "Say ahoy.") {
		t.Errorf("a skill that was added, before listing again: %s", got)
	}
	if names := a.names(); !strings.Contains(names, " skill ") {
		t.Errorf("the list after the addition:%s", names)
	}
	epoch := w.epoch()
	w.write("skills/greet/SKILL.md", greet) // as it was
	w.write("notes.txt", "x")
	w.vak(w.args("reload")...)
	if now := w.epoch(); now != epoch {
		t.Errorf("the epoch moved from %d to %d, and nothing differs", epoch, now)
	}
	if err := os.RemoveAll(w.dir + "/skills"); err != nil {
		t.Fatal(err)
	}
	w.vak(w.args("reload")...)
	a.hears()
	if got, failed := a.use("skill", map[string]any{"name": "greet"}); !failed || strings.Contains(got, "Say ahoy.") {
		t.Errorf("a skill that was removed: %s", got)
	}
	if names := a.names(); strings.Contains(names, " skill ") {
		t.Errorf("the list after the removal:%s", names)
	}
	if n := len(a.told); n != 0 {
		t.Errorf("told %d times of what is no change", n)
	}
	// What only reads is on the record at once and on the disk soon, so the record is read until it is there.
	want, got := []string{"+[skill:greet] -[]", "+[] -[skill:greet]"}, []string(nil)
	for end := time.Now().Add(patience); !slices.Equal(got, want) && time.Now().Before(end); {
		got = w.deltas("claude-follower")
	}
	if !slices.Equal(got, want) {
		t.Errorf("the session's record has the changes %q, want %q", got, want)
	}
}

// deltas are the changes of epoch on a session's record.
func (w *world) deltas(session string) []string {
	w.Helper()
	var all []string
	for line := range strings.Lines(w.vak(w.args("ledger", "show", session, "--json")...)) {
		var entry struct {
			Kind string
			Body struct {
				Delta struct{ Added, Removed []string }
			}
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			w.Fatal(err)
		}
		if d := entry.Body.Delta; entry.Kind == "capability_epoch_changed" {
			all = append(all, fmt.Sprintf("+%v -%v", d.Added, d.Removed))
		}
	}
	return all
}

// epoch is the tenant's.
func (w *world) epoch() int {
	w.Helper()
	var report struct{ Epoch int }
	if err := json.Unmarshal([]byte(w.vak(w.args("report", "--json")...)), &report); err != nil || report.Epoch == 0 {
		w.Fatalf("report: %v, %+v", err, report)
	}
	return report.Epoch
}

// What was revoked is refused from the next call on, to a client that has not listed again.
func TestClientMeetsRevocation(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	w.serve()
	a := w.attach()
	a.names()
	read := map[string]any{"action": "call", "server": "files", "tool": "read_text_file", "arguments": map[string]any{"path": w.path()}}
	if got, failed := a.use("mcp", read); failed || !strings.Contains(got, fileText) {
		t.Fatalf("before: %s", got)
	}
	w.vak(w.args("revoke", "mcp:files", "--reason", "lost trust")...)
	if got, failed := a.use("mcp", read); !failed || !strings.Contains(got, "capability_revoked") || !strings.Contains(got, "lost trust") {
		t.Errorf("revoked: %s", got)
	}
	if got, failed := a.use("files__read_text_file", map[string]any{"path": w.path()}); !failed || strings.Contains(got, fileText) {
		t.Errorf("revoked, by its exposed name: %s", got)
	}
	w.vak(w.args("restore", "mcp:files")...)
	if got, failed := a.use("mcp", read); failed || !strings.Contains(got, fileText) {
		t.Errorf("restored: %s", got)
	}
}

// The daemon is replaced under a client that does nothing about it; its session and its history stay.
func TestClientSurvivesTheDaemon(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	d := w.serve()
	a := w.attach("CLAUDE_CODE_SESSION_ID=11111111-2222-3333-4444-555555555555")
	list := map[string]any{"action": "list"}
	if got, failed := a.use("mcp", list); failed {
		t.Fatalf("before: %s", got)
	}
	for range 2 {
		d.stop()
		d = w.serve()
		a.hears()
		if got, failed := a.use("mcp", list); failed || !strings.Contains(got, "files") {
			t.Errorf("after a restart: %s", got)
		}
	}
	var sessions struct {
		Sessions []struct {
			ID string `json:"session"`
		}
	}
	out := w.vak(w.args("session", "list", "--json")...)
	if err := json.Unmarshal([]byte(out), &sessions); err != nil || len(sessions.Sessions) != 1 ||
		sessions.Sessions[0].ID != "claude-11111111-2222-3333-4444-555555555555" {
		t.Errorf("sessions: %v %s", err, out)
	}
}
