package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func engine(t testing.TB, rules PermissionRules) *Engine {
	t.Helper()
	e, problems := CompileEngine(Host{ReadTool: "read", WriteTool: "write"}, rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

var (
	reading  = Request{Tool: "read", Subject: "a/b", Kind: SubjectPath, ReadOnly: true}
	writing  = Request{Tool: "write", Subject: "src/a.go", Kind: SubjectPath}
	outside  = Request{Tool: "write", Subject: "src/../../a", Kind: SubjectPath}
	absolute = Request{Tool: "write", Subject: "/etc/passwd", Kind: SubjectPath}
	deleting = Request{Tool: "delete", Subject: "src/a.go", Kind: SubjectPath, Destructive: true}
	fetching = Request{Tool: "fetch", Subject: "https://example.org/a/b", Kind: SubjectURL}
	shell    = Request{Tool: "bash", Subject: "git status", Kind: SubjectCommand}
	remote   = Request{Tool: "mcp", Server: "git", ServerTool: "commit"}
	dropping = Request{Tool: "mcp", Server: "git", ServerTool: "drop", Destructive: true}
	status   = Request{Tool: "mcp", Server: "git", ServerTool: "status", ReadOnly: true}
)

// V155: what each mode says where no rule speaks.
func TestModes(t *testing.T) {
	for mode, want := range map[string][10]Effect{
		//                reading writing outside absolute deleting fetching shell remote status dropping
		"read-only":       {Allow, Deny, Deny, Deny, Deny, Deny, Deny, Deny, Allow, Deny},
		"":                {Allow, Allow, Ask, Ask, Ask, Ask, Ask, Allow, Allow, Ask},
		"workspace-write": {Allow, Allow, Ask, Ask, Ask, Ask, Ask, Allow, Allow, Ask},
		"full-access":     {Allow, Allow, Allow, Allow, Allow, Allow, Allow, Allow, Allow, Allow},
	} {
		e := engine(t, PermissionRules{Mode: mode})
		for i, req := range []Request{reading, writing, outside, absolute, deleting, fetching, shell, remote, status, dropping} {
			if got := e.Decide(req); got.Effect != want[i] || got.Rule != "" || got.Reason == "" {
				t.Errorf("mode %q, %s: %+v, want %s", mode, req.Rule(), got, want[i])
			}
		}
	}
}

// V156: the forms of a rule and what each matches.
func TestRules(t *testing.T) {
	for _, tc := range []struct {
		rule string
		req  Request
		want bool
	}{
		{"write", writing, true},
		{"WRITE", writing, true},
		{"writ", writing, false},
		{"w*", writing, true},
		{"write(src/**)", writing, true},
		{"write(src/*)", writing, true},
		{"write(*.go)", writing, false}, // paths match by segments
		{"write(**/*.go)", writing, true},
		{"write(src/**)", outside, false}, // src/../../a is not below src
		{"write(../a)", outside, true},
		{"write(*)", outside, true},
		{"fetch(https://example.org/*)", fetching, true}, // texts do not have segments
		{"fetch(https://example.com/*)", fetching, false},
		{"bash(git *)", shell, true},
		{"bash(GIT *)", shell, false},
		{"bash(git *)", Request{Tool: "bash", Subject: "git status; rm -rf /", Kind: SubjectCommand}, false},
		{"bash(git *)", Request{Tool: "bash", Subject: "git log $(rm x)", Kind: SubjectCommand}, false},
		{"bash(git *)", Request{Tool: "bash", Subject: "git log\nrm x", Kind: SubjectCommand}, false},
		{"bash", Request{Tool: "bash", Subject: "git status; rm -rf /", Kind: SubjectCommand}, true},
		{"mcp", remote, true},
		{"mcp(git/commit)", remote, true},
		{"mcp(git/*)", remote, true},
		{"mcp(*/status)", remote, false},
		{"mcp__git__commit", remote, true},
		{"MCP__git__com*", remote, true},
		{"mcp__git", remote, true},
		{"mcp__github", remote, false},
		{"git/commit", remote, true},
		{"git/*", remote, true},
		{"*/push", remote, false},
		{"skill(pdf)", Request{Tool: "skill", Subject: "pdf", Kind: SubjectName, ReadOnly: true}, true},
	} {
		e := engine(t, PermissionRules{Allow: []string{tc.rule}})
		got := e.Decide(tc.req)
		if (got.Rule == tc.rule) != tc.want {
			t.Errorf("%s matches %s: %+v, want %v", tc.rule, tc.req.Rule(), got, tc.want)
		}
	}
}

// V156: deny before ask before allow, whatever the order; a prefix may be stricter than its list.
func TestSeverity(t *testing.T) {
	for name, tc := range map[string]struct {
		rules PermissionRules
		req   Request
		want  Effect
	}{
		"deny over all":                      {PermissionRules{Allow: []string{"write"}, Ask: []string{"write"}, Deny: []string{"write"}}, writing, Deny},
		"ask over allow":                     {PermissionRules{Allow: []string{"write(src/a.go)"}, Ask: []string{"write"}}, writing, Ask},
		"allow over mode":                    {PermissionRules{Allow: []string{"delete"}}, deleting, Allow},
		"prefix deny":                        {PermissionRules{Mode: "full-access", Allow: []string{"delete", "-delete"}}, deleting, Deny},
		"prefix ask":                         {PermissionRules{Mode: "full-access", Allow: []string{"?delete"}}, deleting, Ask},
		"prefix of its own":                  {PermissionRules{Allow: []string{"+delete"}}, deleting, Allow},
		"no rule loosens the mode read-only": {PermissionRules{Mode: "read-only", Allow: []string{"delete"}}, deleting, Deny},
	} {
		if got := engine(t, tc.rules).Decide(tc.req); got.Effect != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A call with several subjects is judged by the strictest.
func TestDecideAll(t *testing.T) {
	e := engine(t, PermissionRules{Deny: []string{"fetch"}})
	if d, about := e.DecideAll([]Request{writing, fetching, deleting}); d.Effect != Deny || about != fetching {
		t.Errorf("%+v about %s", d, about.Rule())
	}
	if d, _ := e.DecideAll(nil); d.Effect != Deny {
		t.Errorf("nothing is %+v", d)
	}
}

// An unreadable deny rule denies everything and says why; what else cannot be read grants nothing.
func TestUnreadableRulesFailClosed(t *testing.T) {
	for _, rule := range []string{"", "read(", "read()", "read([)", "re ad", "mcp__git__commit(x)", "git/commit(x)", "+read"} {
		e, problems := CompileEngine(Host{}, PermissionRules{Mode: "full-access", Deny: []string{rule}})
		if len(problems) != 1 || problems[0].Code != "permission_rule" || problems[0].Hint == "" {
			t.Errorf("deny %q: problems %v", rule, problems)
		}
		if got := e.Decide(reading); got.Effect != Deny || !strings.Contains(got.Reason, "deny, entry 1") {
			t.Errorf("deny %q: reading is %+v", rule, got)
		}
	}
	e, problems := CompileEngine(Host{}, PermissionRules{Mode: "ful-access", Allow: []string{"write("}, Ask: []string{"["}})
	if len(problems) != 3 || e.mode != ReadOnly || e.Decide(writing).Effect != Deny || e.Decide(reading).Effect != Allow {
		t.Errorf("problems %v, mode %s", problems, e.mode)
	}
	if e, _ := CompileEngine(Host{}, PermissionRules{Mode: "full-access", Allow: []string{"-write("}}); e.Decide(reading).Effect != Deny {
		t.Error("an unreadable deny rule in the allow list does not shut the engine")
	}
}

// A stricter section never decides looser: adding a deny or ask rule, or a stricter mode, does not raise an effect.
func TestRestrictingRestricts(t *testing.T) {
	rule := rapid.SampledFrom([]string{"read", "write", "write(src/**)", "mcp", "git/*", "bash(git *)", "*", "delete"})
	some := rapid.SliceOfN(rule, 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		base := PermissionRules{
			Mode:  rapid.SampledFrom([]string{"read-only", "workspace-write", "full-access"}).Draw(t, "mode"),
			Allow: some.Draw(t, "allow"), Ask: some.Draw(t, "ask"), Deny: some.Draw(t, "deny"),
		}
		loose, _ := CompileEngine(Host{}, base)
		base.Ask = append(base.Ask, some.Draw(t, "more ask")...)
		base.Deny = append(base.Deny, some.Draw(t, "more deny")...)
		strict, _ := CompileEngine(Host{}, base)
		strict = strict.Restricted(Mode(rapid.IntRange(0, 2).Draw(t, "restricted")))
		for _, req := range []Request{reading, writing, outside, deleting, fetching, shell, remote, dropping, status} {
			if strict.Decide(req).Effect > loose.Decide(req).Effect {
				t.Fatalf("%s: %+v became %+v", req.Rule(), loose.Decide(req), strict.Decide(req))
			}
		}
	})
}

// V160: an ask that nobody can answer is a refusal that names the rule to add; adding it allows exactly that.
func TestRefusal(t *testing.T) {
	e := engine(t, PermissionRules{})
	for _, req := range []Request{outside, deleting, fetching, shell, dropping, {Tool: "anything"}} {
		err := e.Decide(req).Refusal(req)
		if err.Code != vakerr.ApprovalRequired || !strings.Contains(err.Remedy, req.Rule()) {
			t.Errorf("%s: %v, remedy %s", req.Rule(), err, err.Remedy)
			continue
		}
		if req == outside {
			req.Subject = "../a" // a rule for a path is written clean
		}
		if got := engine(t, PermissionRules{Allow: []string{req.Rule()}}).Decide(req); got.Effect != Allow {
			t.Errorf("with the rule %s: %+v", req.Rule(), got)
		}
	}
	hides := bash("git log $(date)")
	if err := e.Decide(hides).Refusal(hides); err.Code != vakerr.ApprovalRequired || strings.Contains(err.Remedy, "add") {
		t.Errorf("the remedy names a rule that would allow nothing: %s", err.Remedy)
	}
	denied := engine(t, PermissionRules{Deny: []string{"write"}})
	if err := denied.Decide(writing).Refusal(writing); err.Code != vakerr.PermissionDenied || !strings.Contains(err.Remedy, "write") {
		t.Errorf("denied: %v", err)
	}
	if err := e.Decide(reading).Refusal(reading); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"read", "-write(src/**)", "?mcp(git/*)", "bash(git *)", "((", "\\", "{a,{b"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, text, subject string) {
		e, problems := CompileEngine(Host{}, PermissionRules{Mode: "read-only", Allow: []string{text}})
		for _, kind := range []SubjectKind{SubjectPath, SubjectCommand, SubjectURL} {
			if d := e.Decide(Request{Tool: "write", Subject: subject, Kind: kind}); d.Effect != Deny {
				t.Fatalf("allow %q loosened read-only: %+v (%v)", text, d, problems)
			}
		}
	})
}

// 200 rules, none of which is about most calls.
func BenchmarkDecide(b *testing.B) {
	var rules PermissionRules
	for i := range 50 {
		rules.Deny = append(rules.Deny, fmt.Sprintf("write(secret%d/**)", i), fmt.Sprintf("mcp__server%d__drop*", i))
		rules.Ask = append(rules.Ask, fmt.Sprintf("bash(deploy%d *)", i))
		rules.Allow = append(rules.Allow, fmt.Sprintf("mcp(server%d/get_*)", i))
	}
	e := engine(b, rules)
	for name, req := range map[string]Request{"path": writing, "server": remote, "command": shell} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Decide(req)
			}
		})
	}
}

// An engine that denies everything says why; a rule that leaves anything callable is no such rule.
func TestDeniesAll(t *testing.T) {
	shut, _ := CompileEngine(Host{}, PermissionRules{Deny: []string{"("}})
	for want, e := range map[bool]*Engine{true: engine(t, PermissionRules{Deny: []string{"*"}}), false: engine(t, PermissionRules{Deny: []string{"read", "*(x)"}})} {
		if got := e.DeniesAll() != ""; got != want {
			t.Errorf("%t: %q", want, e.DeniesAll())
		}
	}
	if shut.DeniesAll() == "" {
		t.Error("an unreadable deny rule")
	}
}
