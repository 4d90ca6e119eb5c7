package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// asking is a vak.toml under which writing below secret asks.
const asking = "[reconcile]\ntick = \"1h\"\n[permissions]\nask = [\"write(secret/**)\"]\n"

func (w *world) attended() *agent {
	w.Helper()
	return w.openWith(&sessionv1.OpenSession{Attended: true})
}

// going is a call on its way.
type going struct {
	*aTurn
	end chan answer
}

// starts makes a call and does not wait for it.
func (u *aTurn) starts(name string, arguments object) going {
	g := going{u, make(chan answer, 1)}
	go func() { g.end <- u.call(name, arguments) }()
	return g
}

// waits returns the one approval that the session waits for.
func (g going) waits() *approvalv1.Approval {
	g.Helper()
	r := ask[*approvalv1.ListApprovalsResult](g.world, &approvalv1.ListApprovals{SessionId: g.id, WaitMs: 20_000})
	if len(r.GetApprovals()) != 1 {
		g.Fatalf("%d calls wait for an approval", len(r.GetApprovals()))
	}
	return r.GetApprovals()[0]
}

// done is what the call answered.
func (g going) done() answer {
	g.Helper()
	select {
	case a := <-g.end:
		return a
	case <-time.After(patience):
		g.Fatal("the call does not end")
		return answer{}
	}
}

func (w *world) says(id string, decision approvalv1.Decision, scope approvalv1.Scope) ([]string, error) {
	w.Helper()
	r, err := try[*approvalv1.AnswerApprovalResult](w, &approvalv1.AnswerApproval{
		Id: id, Decision: decision, Scope: scope, By: "ann", Reason: "ann says so",
	})
	return r.GetRules(), err
}

func (w *world) allows(id string) {
	w.Helper()
	if _, err := w.says(id, approvalv1.Decision_DECISION_ALLOW, approvalv1.Scope_SCOPE_ONCE); err != nil {
		w.Fatal(err)
	}
}

func (w *world) exists(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

// V159: in an attended session the call waits; a yes lets it have its effect once, a no none, and whoever answers late is
// told so. Everything is on the ledger.
func TestApproval(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking})
	u := w.attended().begin()

	call := u.starts("write", object{"path": "secret/a", "content": "x"})
	q := call.waits()
	if q.GetAction() != "write(secret/a)" || q.GetRule() != "write(secret/**)" || q.GetCapability() != "tool:write" ||
		!strings.Contains(string(q.GetArgumentsJson()), `"content":"x"`) || q.GetInputDigest() == "" || q.GetPolicy() == "" {
		t.Errorf("what waits is described as %v", q)
	}
	if w.exists("secret/a") {
		t.Fatal("it was written before anybody answered")
	}
	w.allows(q.GetId())
	u.want(call.done())
	if !w.exists("secret/a") {
		t.Error("it was approved and not written")
	}
	if _, err := w.says(q.GetId(), approvalv1.Decision_DECISION_DENY, 0); vakerr.CodeOf(err) != vakerr.ApprovalConsumed {
		t.Errorf("a second answer is told %v", err)
	}

	call = u.starts("write", object{"path": "secret/b", "content": "x"})
	q = call.waits()
	if _, err := w.says(q.GetId(), approvalv1.Decision_DECISION_DENY, 0); err != nil {
		t.Fatal(err)
	}
	refused(t, call.done().err, vakerr.ApprovalRejected, "write(secret/b)", "ann says so")
	if w.exists("secret/b") {
		t.Error("it was denied and written")
	}
	u.end()

	asked, settled := recorded[ledger.ApprovalAsked](u.agent), recorded[ledger.ApprovalSettled](u.agent)
	if len(asked) != 2 || len(settled) != 2 || settled[0].Outcome != ledger.ApprovalAllowed || settled[1].Outcome != ledger.ApprovalRejected ||
		settled[0].By != "ann" || settled[0].Approval != asked[0].Approval || asked[0].InputDigest == "" || settled[1].ErrorCode != vakerr.ApprovalRejected {
		t.Errorf("recorded as %+v, %+v", asked, settled)
	}
	started := recorded[ledger.CallStarted](u.agent)
	if len(started) != 1 || started[0].ArgumentsDigest != asked[0].InputDigest {
		t.Errorf("started: %+v", started)
	}
	w.verify()
}

// V160: an unattended session does not wait, and neither does an MCP client's.
func TestUnattendedFailsClosed(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", asking+s.config)
	w.reload()
	u := w.open().begin()
	refused(t, u.call("write", object{"path": "secret/a", "content": "x"}).err, vakerr.ApprovalRequired, "no approver can answer")
	refused(t, w.openWith(&sessionv1.OpenSession{Channel: "mcp"}).loose().call("s__write", object{}).err, vakerr.ApprovalRequired, "no approver can answer")
	if s.called() > 0 {
		t.Error("the server was called")
	}
	u.end()
	if w.exists("secret/a") {
		t.Error("it was written")
	}
	if r := ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}); len(r.GetApprovals()) != 0 {
		t.Errorf("somebody is asked: %v", r)
	}
}

// An MCP client's session is attended where an operator opened it so; what the client says itself does not make it so.
func TestOperatorAttendsToAnMCPClient(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", asking+s.config)
	w.reload()
	w.openWith(&sessionv1.OpenSession{SessionId: "client-1", Channel: "mcp", Attended: true})
	client := w.openWith(&sessionv1.OpenSession{SessionId: "client-1", Channel: "mcp"}) // as the front does when it attaches
	u := client.loose()
	call := u.starts("s__write", object{})
	w.allows(call.waits().GetId())
	u.want(call.done())

	w.openWith(&sessionv1.OpenSession{SessionId: "client-2", Channel: "mcp"})
	_, err := try[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: "client-2", Channel: "mcp", Attended: true})
	refused(t, err, vakerr.InvalidRequest, "not attended")
}

// V159: without an answer the call is refused after the limit of [permissions], or its caller's own.
func TestApprovalExpires(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking + "approval_timeout = \"50ms\"\n"})
	u := w.attended().begin()
	refused(t, u.call("write", object{"path": "secret/a", "content": "x"}).err, vakerr.ApprovalExpired, "write(secret/a)")
	asked := recorded[ledger.ApprovalAsked](u.agent)
	if _, err := w.says(asked[0].Approval, approvalv1.Decision_DECISION_ALLOW, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
		t.Errorf("the late answer is told %v", err)
	}
	w.write("vak.toml", asking)
	u.end()
	u = u.begin()
	refused(t, u.within(50*time.Millisecond, "write", object{"path": "secret/a", "content": "x"}).err, vakerr.ApprovalExpired)
	u.end()
	if w.exists("secret/a") {
		t.Error("it was written")
	}
}

// What settles a call that waits, besides an answer: each at once, with its own error, and nothing runs.
func TestWhatSettlesAnApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		act  func(w *world, u *aTurn)
		want vakerr.Code
	}{
		"V98 a revocation": {func(w *world, _ *aTurn) { w.revoke("tool:write", false) }, vakerr.CapabilityRevoked},
		"V97 a deny rule":  {func(w *world, _ *aTurn) { w.write("vak.toml", asking+"deny = [\"write\"]\n"); w.reload() }, vakerr.PermissionDenied},
		"a stricter mode":  {func(w *world, _ *aTurn) { w.write("vak.toml", asking+"mode = \"read-only\"\n"); w.reload() }, vakerr.PermissionDenied},
		"a hidden tool": {func(w *world, _ *aTurn) {
			w.write("vak.toml", asking+"[channels.api.tools]\ndeny = [\"write\"]\n")
			w.reload()
		}, vakerr.ChannelDenied},
		"the end of a turn": {func(_ *world, u *aTurn) { u.end() }, vakerr.TurnEnded},
		"a closed session": {func(w *world, u *aTurn) {
			ask[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: u.id})
		}, vakerr.SessionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"vak.toml": asking})
			u := w.attended().begin()
			call := u.starts("write", object{"path": "secret/a", "content": "x"})
			q := call.waits()
			tc.act(w, u)
			got := call.done()
			if name == "a closed session" && vakerr.CodeOf(got.err) == vakerr.ActorStopped {
				got.err = vakerr.New(vakerr.SessionClosed, "its activation has ended")
			}
			refused(t, got.err, tc.want)
			eventually(t, "nothing waits any more", func() bool { // whoever asked is told before the question is withdrawn
				return len(ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}).GetApprovals()) == 0
			})
			if _, err := w.says(q.GetId(), approvalv1.Decision_DECISION_ALLOW, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
				t.Errorf("the answer is told %v", err)
			}
			if w.exists("secret/a") {
				t.Error("it was written")
			}
		})
	}
}

// A rule that comes while a call waits, and allows it, is an answer, too.
func TestAllowedWhileItWaits(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking})
	u := w.attended().begin()
	call := u.starts("write", object{"path": "secret/a", "content": "x"})
	call.waits()
	w.write("vak.toml", settings)
	w.reload()
	u.want(call.done())
	if s := recorded[ledger.ApprovalSettled](u.agent); len(s) != 1 || s[0].Outcome != ledger.ApprovalNotNeeded || !w.exists("secret/a") {
		t.Errorf("settled as %+v", s)
	}
	u.end()
}

// A caller that is gone does not leave its question behind.
func TestCallerOfAnApprovalGoes(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking})
	u := w.attended().begin()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = w.door.Ask(ctx, &sessionv1.Dispatch{SessionId: u.id, TurnId: u.GetTurnId(), Name: "write", ArgumentsJson: []byte(`{"path":"secret/a","content":"x"}`)})
	}()
	going{aTurn: u}.waits()
	cancel()
	<-gone
	eventually(t, "nothing waits any more", func() bool {
		return len(ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}).GetApprovals()) == 0
	})
	eventually(t, "its end is recorded", func() bool {
		s := recorded[ledger.ApprovalSettled](u.agent)
		return len(s) == 1 && s[0].Outcome == ledger.ApprovalWithdrawn && s[0].ErrorCode == vakerr.Canceled
	})
	if w.exists("secret/a") {
		t.Error("it was written")
	}
}

// A restart settles what waits as expired: nothing has run, an answer says so, and so does the ledger.
func TestRestartSettlesApprovals(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking})
	a := w.attended()
	u := a.begin()
	call := u.starts("write", object{"path": "secret/a", "content": "x"})
	q := call.waits()
	w.restart()
	if got := call.done(); got.err == nil {
		t.Error("the call went on")
	}
	if _, err := w.says(q.GetId(), approvalv1.Decision_DECISION_ALLOW, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired {
		t.Errorf("the answer is told %v", err)
	}
	a.begin().end()
	settled := recorded[ledger.ApprovalSettled](a)
	if i := slices.IndexFunc(settled, func(s ledger.ApprovalSettled) bool { return s.Approval == q.GetId() }); i < 0 ||
		settled[i].Outcome != ledger.ApprovalExpired && settled[i].Outcome != ledger.ApprovalWithdrawn || len(settled) != 1 {
		t.Errorf("settled: %+v", settled)
	}
	if w.exists("secret/a") {
		t.Error("it was written")
	}
	w.verify()
}

// A link that leads to what asks is asked about by what it leads to.
func TestApprovalOfALink(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": asking, "secret/key": "old"})
	w.must(os.Symlink(filepath.Join("secret", "key"), w.path("innocent")))
	u := w.attended().begin()
	call := u.starts("write", object{"path": "innocent", "content": "new"})
	if q := call.waits(); q.GetAction() != "write(secret/key)" {
		t.Errorf("asked about %s", q.GetAction())
	} else {
		w.allows(q.GetId())
	}
	u.want(call.done())
	if text, err := os.ReadFile(w.path("secret/key")); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	u.end()
}

// A tool of a server whose catalog nobody knows yet is asked about once its server said that it destroys; the request that
// was approved is the one that is sent.
func TestApprovalOfWhatAServerDeclares(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", "[reconcile]\ntick = \"1h\"\n"+s.config)
	w.reload()
	u := w.attended().begin()
	call := going{u, make(chan answer, 1)}
	go func() { call.end <- u.mcp("s", "write", object{"n": 1}) }()
	q := call.waits()
	if q.GetAction() != "mcp(s/write)" || q.GetCapability() != "mcp:s" || !strings.Contains(string(q.GetArgumentsJson()), `"n":1`) {
		t.Errorf("asked about %v", q)
	}
	w.allows(q.GetId())
	u.want(call.done())
	u.end()
}

// V161: when the mode becomes stricter, calls that it does not allow are cancelled while they run; those that it allows, and
// those that a person allowed, go on.
func TestStricterModeCancelsWhatRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		mode, annotations string
		cancelled         bool
	}{
		"a writing tool, read-only now":       {"read-only", `{}`, true},
		"a reading tool, read-only now":       {"read-only", `{"readOnlyHint":true}`, false},
		"a destroying tool, which asks now":   {"workspace-write", `{"destructiveHint":true}`, true},
		"a writing tool, which is allowed":    {"workspace-write", `{}`, false},
		"the mode of before, written anew":    {"full-access\"\nallow = [\"read\"]\n#\"", `{"destructiveHint":true}`, false},
		"a tool that a deny rule takes away ": {"full-access\"\ndeny = [\"mcp(s/sleep)\"]\n#\"", `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			catalog := w.outside("catalog.json")
			w.must(os.WriteFile(catalog, []byte(`[{"name":"sleep","inputSchema":{"type":"object"},"annotations":`+tc.annotations+`},{"name":"echo","inputSchema":{"type":"object"}}]`), 0o600))
			s := w.fault("s", []string{"-catalog-file", catalog})
			w.write("vak.toml", toml(s.config))
			w.reload()
			u := w.open().begin()
			u.want(u.mcp("s", "echo", object{"text": "x"}))
			ms := 60_000
			if !tc.cancelled {
				ms = 1000
			}
			call := going{u, make(chan answer, 1)}
			go func() { call.end <- u.mcp("s", "sleep", object{"ms": ms}) }()
			eventually(t, "the call has reached the server", func() bool { return s.called() == 2 })
			w.write("vak.toml", strings.Replace(toml(s.config), "full-access", tc.mode, 1))
			w.reload()
			got := call.done()
			if !tc.cancelled {
				u.want(got, "slept")
				return
			}
			refused(t, got.err, vakerr.PermissionDenied, "mcp(s/sleep)", "mode became stricter", "may have had its effect")
			eventually(t, "it is recorded that nobody knows whether it had its effect", func() bool {
				finished := recorded[ledger.CallFinished](u.agent)
				last := finished[len(finished)-1]
				return last.Outcome == ledger.CallUnknown && last.Error != nil && last.Error.Code == vakerr.PermissionDenied
			})
			refused(t, u.mcp("s", "sleep", object{"ms": 1}).err, map[string]vakerr.Code{"read-only": vakerr.PermissionDenied, "workspace-write": vakerr.ApprovalRequired}[tc.mode])
			u.want(u.call("mcp", object{"action": "list"}), "s")
		})
	}
}

// V161: what a person allowed goes on under a mode that asks about it.
func TestApprovedCallOutlivesAMode(t *testing.T) {
	w := newWorld(t, nil)
	catalog := w.outside("catalog.json")
	w.must(os.WriteFile(catalog, []byte(`[{"name":"sleep","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}]`), 0o600))
	s := w.fault("s", []string{"-catalog-file", catalog})
	const ask = "\n[permissions]\nask = [\"mcp(s/*)\"]\nmode = "
	w.write("vak.toml", "[reconcile]\ntick = \"1h\"\n"+s.config+ask+`"full-access"`)
	w.reload()
	u := w.attended().begin()
	call := going{u, make(chan answer, 1)}
	go func() { call.end <- u.mcp("s", "sleep", object{"ms": 500}) }()
	w.allows(call.waits().GetId())
	eventually(t, "the call has reached the server", func() bool { return s.called() == 1 })
	w.write("vak.toml", "[reconcile]\ntick = \"1h\"\n"+s.config+ask+`"workspace-write"`)
	w.reload()
	u.want(call.done(), "slept")
}

// V161: so is a command that a prompt runs.
func TestStricterModeCancelsACommandOfAPrompt(t *testing.T) {
	w := newWorld(t, map[string]string{".claude/commands/wait.md": "---\ndescription: Waits.\n---\n!`touch begun; sleep 60`\n"})
	a := w.open()
	end := make(chan error, 1)
	go func() {
		_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/wait"})
		end <- err
	}()
	eventually(t, "the command runs", func() bool { return w.exists("begun") })
	w.write("vak.toml", "[reconcile]\ntick = \"1h\"\n")
	w.reload()
	refused(t, <-end, vakerr.PermissionDenied, "mode became stricter")
}
