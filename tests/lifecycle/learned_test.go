package lifecycle

import (
	"os"
	"slices"
	"strings"
	"testing"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	allow       = approvalv1.Decision_DECISION_ALLOW
	forSession  = approvalv1.Scope_SCOPE_SESSION
	forever     = approvalv1.Scope_SCOPE_WORKSPACE
	quiet       = "[reconcile]\ntick = \"1h\"\n"
	skillText   = ".claude/skills/tidy/SKILL.md"
	skillsRule  = "write(" + skillText + ")"
	anotherText = ".claude/skills/other/SKILL.md"
)

// save is a call that asks by mode: the file is a text that governs what an agent does.
func (u *aTurn) save(path string) going {
	return u.starts("write", object{"path": path, "content": "---\nname: tidy\ndescription: Tidies.\n---\nx\n"})
}

// V158: "always" is kept as a scoped rule in a local file: the next call does not ask, in no session and not after a restart
// either; other calls do. The file can be edited by hand, and is in force at the next turn.
func TestAlwaysForTheWorkspace(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": quiet})
	u := w.attended().begin()
	call := u.save(skillText)
	q := call.waits()
	if !slices.Equal(q.GetRules(), []string{skillsRule}) {
		t.Fatalf("always would mean %v", q.GetRules())
	}
	if rules, err := w.says(q.GetId(), allow, forever); err != nil || !slices.Equal(rules, []string{skillsRule}) {
		t.Fatalf("%v, %v", rules, err)
	}
	u.want(call.done())
	file := host.LearnedPath(dataOf(w.folder), "")
	info, err := os.Stat(file)
	w.must(err)
	text, err := os.ReadFile(file)
	w.must(err)
	if info.Mode().Perm() != 0o600 || !strings.Contains(string(text), skillsRule) || !strings.Contains(string(text), `by = "ann"`) {
		t.Errorf("%s holds:\n%s", info.Mode(), text)
	}
	u.want(u.save(skillText).done())
	u.end()
	if s := recorded[ledger.ApprovalSettled](u.agent); len(s) != 1 || s[0].Scope != "workspace" || !slices.Equal(s[0].Rules, []string{skillsRule}) {
		t.Errorf("recorded as %+v", s)
	}

	w.restart()
	u = w.open().begin() // with nobody there
	u.want(u.save(skillText).done())
	refused(t, u.save(anotherText).done().err, vakerr.ApprovalRequired)
	u.end()

	w.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "tidy", "other")), 0o600))
	u = w.open().begin()
	u.want(u.save(anotherText).done())
	refused(t, u.save(skillText).done().err, vakerr.ApprovalRequired)
	u.end()

	w.write("vak.toml", quiet+"[permissions]\nask = [\"write\"]\n")
	u = w.open().begin()
	refused(t, u.save(anotherText).done().err, vakerr.ApprovalRequired)
	u.end()
	w.write("vak.toml", quiet+"[permissions]\ndeny = [\"write\"]\n")
	u = w.open().begin()
	refused(t, u.save(anotherText).done().err, vakerr.PermissionDenied)
	u.end()
	w.verify()
}

// V158: what a session was allowed for good stays with it, through turns, its passivation and a restart, and goes to no other
// session and to none of its workers (V124).
func TestAlwaysForTheSession(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": quiet})
	a := w.attended()
	u := a.begin()
	first, second := u.save(skillText), u.save(skillText)
	eventually(t, "both ask", func() bool {
		return len(ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}).GetApprovals()) == 2
	})
	q := ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}).GetApprovals()[0]
	if _, err := w.says(q.GetId(), allow, forSession); err != nil {
		t.Fatal(err)
	}
	u.want(first.done())
	u.want(second.done()) // which the answer allows, too
	u.want(u.save(skillText).done())
	u.end()
	if _, err := os.Stat(host.LearnedPath(dataOf(w.folder), "")); err == nil {
		t.Error("what one session was allowed is in the file of the workspace")
	}
	if settled := recorded[ledger.ApprovalSettled](a); len(settled) != 2 {
		t.Errorf("settled: %+v", settled)
	}

	w.restart()
	for range 2 { // the rule is found behind the last turn, and then in it
		u = a.begin()
		u.want(u.save(skillText).done())
		u.end()
		w.restart()
	}
	u = w.open().begin()
	refused(t, u.save(skillText).done().err, vakerr.ApprovalRequired)
	u.end()
	w.verify()
}

// What can be allowed only once is not learned: what destroys, what a rule asks about, what would lift a limit.
func TestWhatIsNeverLearned(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", quiet+"[permissions]\nask = [\"write(secret/**)\"]\n"+s.config)
	w.reload()
	u := w.attended().begin()
	for what, call := range map[string]func() going{
		"vak.toml": func() going { return u.save("vak.toml") },
		"a rule":   func() going { return u.save("secret/a") },
		"it destroys": func() going {
			g := going{u, make(chan answer, 1)}
			go func() { g.end <- u.mcp("s", "write", nil) }()
			return g
		},
	} {
		g := call()
		q := g.waits()
		for _, scope := range []approvalv1.Scope{forSession, forever} {
			if _, err := w.says(q.GetId(), allow, scope); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				t.Errorf("%s: %s was taken: %v", what, scope, err)
			}
		}
		if _, err := w.says(q.GetId(), approvalv1.Decision_DECISION_DENY, 0); err != nil {
			t.Error(err)
		}
		refused(t, g.done().err, vakerr.ApprovalRejected)
	}
	u.end()
}

// A file of learned rules that cannot be trusted allows nothing, says so, and is not written over.
func TestLearnedFileThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		code string
	}{
		"broken":           {"[[allow]\n", 0o600, "learned_syntax"},
		"others may write": {"[[allow]]\nrule = \"" + skillsRule + "\"\n", 0o666, "learned_unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := emptyWorld(t, map[string]string{"vak.toml": quiet})
			file := host.LearnedPath(dataOf(w.folder), "")
			w.must(os.MkdirAll(dataOf(w.folder), 0o700))
			w.must(os.WriteFile(file, []byte(tc.text), tc.mode))
			w.must(os.Chmod(file, tc.mode))
			w.start(hostOptions())
			if report, _ := w.report(); len(report.Problems) != 1 || report.Problems[0].Code != tc.code || report.Problems[0].Hint == "" {
				t.Errorf("problems: %+v", report.Problems)
			}
			u := w.attended().begin()
			call := u.save(skillText)
			if _, err := w.says(call.waits().GetId(), allow, forever); vakerr.CodeOf(err) != vakerr.ConfigInvalid {
				t.Errorf("whoever answered is told %v", err)
			}
			u.want(call.done()) // this once
			if text, err := os.ReadFile(file); err != nil || string(text) != tc.text {
				t.Errorf("it was written over: %q, %v", text, err)
			}
			if s := recorded[ledger.ApprovalSettled](u.agent); len(s) != 1 || s[0].Scope != "once" || s[0].Rules != nil {
				t.Errorf("recorded as %+v", s)
			}
			u.end()
		})
	}
}

// A learned rule that a repository brings along is not read: a data folder within the workspace learns nothing.
func TestLearnedRulesInTheWorkspace(t *testing.T) {
	w := emptyWorld(t, map[string]string{"vak.toml": quiet, "state/learned.toml": "[[allow]]\nrule = \"" + skillsRule + "\"\n"})
	h, err := host.Start(w.Context(), host.Options{Workspace: workspaceOf(w.folder), Data: w.path("state")})
	w.must(err)
	w.host, w.door = h, h.Door()
	w.Cleanup(func() { w.stopHost(h) })
	w.must(h.Ready(w.Context()))
	if report, _ := w.report(); len(report.Problems) != 1 || report.Problems[0].Code != "learned_unreadable" {
		t.Errorf("problems: %+v", report.Problems)
	}
	u := w.attended().begin()
	call := u.save(skillText)
	if _, err := w.says(call.waits().GetId(), allow, forever); vakerr.CodeOf(err) != vakerr.ConfigInvalid {
		t.Errorf("whoever answered is told %v", err)
	}
	u.want(call.done())
	u.end()
}

// V158, V159: a command that a prompt runs is asked about like any other call, before any of them runs; always means exactly
// this command, from then on where nobody is there, too.
func TestApprovalOfACommandInAPrompt(t *testing.T) {
	w := newWorld(t, map[string]string{
		"vak.toml":                 quiet,
		".claude/commands/see.md":  "---\ndescription: Sees.\n---\nfirst !`echo one >> ran` second !`cat ran`\n",
		".claude/commands/see2.md": "---\ndescription: Sees.\n---\nfirst !`echo one >> ran2`\n",
	})
	a := w.attended()
	begins := func(prompt string) chan answer {
		end := make(chan answer, 1)
		go func() {
			r, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: prompt})
			if err == nil {
				_, err = try[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: a.id, TurnId: r.GetTurnId()})
			}
			end <- answer{text: r.GetPrompt(), err: err}
		}()
		return end
	}
	say := func(end chan answer, action string, decision approvalv1.Decision, scope approvalv1.Scope) {
		t.Helper()
		q := going{aTurn: &aTurn{agent: a}}.waits()
		if q.GetAction() != action || q.GetCapability() == "" || w.exists("ran2") {
			t.Errorf("asked about %v", q)
		}
		if _, err := w.says(q.GetId(), decision, scope); err != nil {
			t.Error(err)
		}
	}
	end := begins("/see")
	say(end, "bash(echo one >> ran)", allow, forever)
	if w.exists("ran") {
		t.Error("a command ran before all were allowed")
	}
	say(end, "bash(cat ran)", allow, forever)
	u := aTurn{agent: a}
	u.want(<-end, "first", "second one")
	u.want(<-begins("/see"), "second one\none")
	a = w.open()
	u.want(<-begins("/see"), "second one\none\none")
	refused(t, (<-begins("/see2")).err, vakerr.ApprovalRequired, "cannot be expanded")

	a = w.attended()
	w.write(".claude/commands/see3.md", "---\ndescription: Sees.\n---\nonce !`echo three`\n")
	end = begins("/see3")
	say(end, "bash(echo three)", allow, 0)
	u = aTurn{agent: a}
	u.want(<-end, "once three")
	end = begins("/see2")
	say(end, "bash(echo one >> ran2)", approvalv1.Decision_DECISION_DENY, 0)
	refused(t, (<-end).err, vakerr.ApprovalRejected, "ann says so")

	// A session that is closed does not wait for the answer.
	end = begins("/see2")
	q := going{aTurn: &aTurn{agent: a}}.waits()
	ask[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: a.id})
	refused(t, (<-end).err, vakerr.SessionClosed)
	if _, err := w.says(q.GetId(), allow, 0); vakerr.CodeOf(err) != vakerr.ApprovalExpired || w.exists("ran2") {
		t.Errorf("the late answer is told %v", err)
	}
	w.verify()
}

// V124: nobody answers for a worker, and what its parent was allowed, once or for good, it was not.
func TestWorkerIsNotItsParent(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": quiet})
	parent := w.attended()
	u := parent.begin()
	call := u.save(skillText)
	if _, err := w.says(call.waits().GetId(), allow, forSession); err != nil {
		t.Fatal(err)
	}
	u.want(call.done())
	worker := w.openWith(&sessionv1.OpenSession{Worker: &sessionv1.Worker{ParentSessionId: parent.id, ParentTurnId: u.GetTurnId()}})
	v := worker.begin()
	refused(t, v.save(skillText).done().err, vakerr.ApprovalRequired, "no approver can answer")
	if left := ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{}).GetApprovals(); len(left) != 0 {
		t.Errorf("somebody is asked for a worker: %v", left)
	}
	u.want(u.save(skillText).done())
	u.end()
}

// Tenants answer for themselves: what waits and what is learned of one is nothing to another.
func TestTenantsDoNotShareApprovals(t *testing.T) {
	w := emptyWorld(t, map[string]string{"vak.toml": quiet + "[tenants.other]\nworkspace = \"../other\"\n"})
	w.must(os.MkdirAll(w.outside("other"), 0o700))
	w.start(hostOptions())
	u := w.attended().begin()
	call := u.save(skillText)
	q := call.waits()
	theirs := ask[*approvalv1.ListApprovalsResult](w, &approvalv1.ListApprovals{Tenant: "other"})
	_, err := try[*approvalv1.AnswerApprovalResult](w, &approvalv1.AnswerApproval{Tenant: "other", Id: q.GetId(), Decision: allow})
	if len(theirs.GetApprovals()) != 0 || vakerr.CodeOf(err) != vakerr.ApprovalExpired && vakerr.CodeOf(err) != vakerr.ApprovalNotFound || w.exists(skillText) {
		t.Errorf("another tenant sees %v, and was told %v", theirs, err)
	}
	if _, err := w.says(q.GetId(), allow, forever); err != nil {
		t.Fatal(err)
	}
	u.want(call.done())
	u.end()
	if _, err := os.Stat(host.LearnedPath(dataOf(w.folder), "other")); err == nil {
		t.Error("another tenant has learned it")
	}
	stranger := &agent{w, ask[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{Tenant: "other"}).GetSession().GetSessionId()}
	r, err := try[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{
		Tenant: "other", SessionId: stranger.id, Name: "write", ArgumentsJson: []byte(`{"path":"` + skillText + `","content":"x"}`),
	})
	if err != nil || r.GetRefusal().GetCode() != string(vakerr.ApprovalRequired) {
		t.Errorf("another tenant's call: %v, %v", r, err)
	}
}
