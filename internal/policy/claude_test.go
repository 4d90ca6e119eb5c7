package policy

import (
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
)

func claude(t testing.TB, rules PermissionRules) *Engine {
	t.Helper()
	rules.Dialect = capability.DialectClaude
	e, problems := CompileEngine(Host{"/srv/ws", "/srv/u", "read", "write"}, rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}

func at(tool, subject string) Request {
	return Request{Tool: tool, Subject: subject, Kind: SubjectPath, ReadOnly: tool == "read" || tool == "grep" || tool == "glob"}
}

func onServer(server, tool, arguments string) Request {
	return Request{Tool: "mcp", Server: server, ServerTool: tool, Arguments: arguments}
}

// The tools, paths, hosts and servers that a rule of Claude Code covers here.
func TestClaudeRules(t *testing.T) {
	url := func(u string) Request { return Request{Tool: "fetch", Subject: u, Kind: SubjectURL} }
	for _, tc := range []struct {
		rule string
		req  Request
		want bool
	}{
		{"Bash", bash("anything"), true},
		{"Bash(*)", bash("anything"), true},
		{"Bash(ls *)", bash("ls"), true},
		{"Bash(ls *)", bash("lsof"), false},
		{"Bash(ls*)", bash("lsof"), true},
		{"Bash(git push:*)", bash("git push origin"), true},
		{"Bash(git [a])", bash("git [a]"), true}, // only * has a meaning
		{"Bash(npm run test *)", bash("npm run testing"), false},
		{"Bash(rm *)", Request{Tool: "deploy", Subject: "rm x", Kind: SubjectCommand}, true}, // whatever the tool is called
		{"Read(.env)", at("read", ".env"), true},
		{"Read(.env)", at("grep", "a/b/.env"), true}, // a name without a slash, at any depth
		{"Read(.env)", at("read", ".env.local"), false},
		{"Read(.env)", at("write", ".env"), false},
		{"Read(./.env)", at("read", ".env"), true},
		{"Read(./.env)", at("read", "a/.env"), false},
		{"Read(/src/**)", at("read", "src/a/b"), true},
		{"Read(secrets/**)", at("read", "secrets/a"), true},
		{"Read(secrets/)", at("read", "a/secrets/b"), true},
		{"Read(//etc/passwd)", at("read", "/etc/passwd"), true},
		{"Read(//srv/ws/a)", at("read", "a"), true},
		{"Read(~/.ssh/**)", at("read", "/srv/u/.ssh/id"), true},
		{"Read(~/.ssh)", at("read", "/srv/u/.ssh/id"), true},
		{"Read(../other/**)", at("read", "/srv/other/a"), true},
		{"Read(src/*.go)", at("read", "src/../src/a.go"), true},
		{"Grep(a/**)", at("grep", "a/b"), true},
		{"Grep(a/**)", at("read", "a/b"), false},
		{"Grep", at("read", "a/b"), false},
		{"Edit(src/**)", at("write", "src/a"), true},
		{"Edit(src/**)", at("edit", "src/a"), true},
		{"Edit(src/**)", at("read", "src/a"), false},
		{"Write(src/**)", at("write", "src/a"), true},
		{"WebFetch(domain:example.org)", url("https://Example.org/a"), true},
		{"WebFetch(domain:example.org)", url("https://example.org.evil.net/"), false},
		{"WebFetch(domain:*.example.org)", url("https://a.example.org"), true},
		{"WebFetch(domain:*.example.org)", url("https://example.org"), false},
		{"Skill(pdf)", Request{Tool: "skill", Subject: "pdf", Kind: SubjectName, ReadOnly: true}, true},
		{"Skill(pdf *)", Request{Tool: "skill", Subject: "pdf", Kind: SubjectName, ReadOnly: true}, true},
		{"Skill(pdf)", Request{Tool: "skill", Subject: "pdfs", Kind: SubjectName, ReadOnly: true}, false},
		{"*", at("write", "a"), true},
	} {
		e := claude(t, PermissionRules{Deny: []string{tc.rule}})
		if got := e.Decide(tc.req); (got.Effect == Deny) != tc.want {
			t.Errorf("%s matches %s: %+v, want %v", tc.rule, tc.req.Rule(), got, tc.want)
		}
	}
}

// The documented wildcards over servers' tools, with the characters that real names have.
func TestServerToolWildcards(t *testing.T) {
	for _, tc := range []struct {
		rule, server, tool string
		want               bool
	}{
		{"mcp__git", "git", "commit", true},
		{"mcp__git", "github", "commit", false},
		{"mcp__git__*", "git", "commit", true},
		{"mcp__git__*", "git", "a__b", true},
		{"mcp__git__commit", "git", "commit", true},
		{"mcp__git__com*", "git", "commit-all", true},
		{"mcp__git__commit", "git", "commit_all", false},
		{"mcp__my-server__get_x", "my-server", "get_x", true},
		{"mcp__my_server__get-x", "my_server", "get-x", true},
		{"mcp__a__b__c", "a__b", "c", true},
		{"mcp__a__b__c", "a", "b__c", true}, // the name alone does not tell which: a rule covers both
		{"mcp__Git__Commit", "git", "commit", true},
		{"mcp__memory__.*", "memory", "add", false}, // a regular expression is no glob
	} {
		for _, dialect := range []capability.Dialect{capability.DialectVAK, capability.DialectClaude} {
			for _, list := range []PermissionRules{{Allow: []string{tc.rule}}, {Deny: []string{tc.rule}}, {Ask: []string{tc.rule}}} {
				list.Dialect = dialect
				e, problems := CompileEngine(Host{}, list)
				if got := e.Decide(onServer(tc.server, tc.tool, "")); len(problems) > 0 || (got.Rule == tc.rule) != tc.want {
					t.Errorf("%q: %s matches %s/%s: %+v %v, want %v", dialect, tc.rule, tc.server, tc.tool, got, problems, tc.want)
				}
			}
		}
	}
}

// What allows the tools of one server does not allow those of another whose name begins alike; what denies them does.
func TestServersThatBeginAlike(t *testing.T) {
	for _, dialect := range []capability.Dialect{capability.DialectVAK, capability.DialectClaude} {
		for _, text := range []string{"mcp__a__*", "mcp__a"} {
			drop := func(server string) Request {
				return Request{Tool: "mcp", Server: server, ServerTool: "c", Destructive: true}
			}
			allow, _ := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Allow: []string{text}})
			if allow.Decide(drop("a")).Effect != Allow || allow.Decide(drop("a__b")).Effect != Ask {
				t.Errorf("allow %s: %+v, a__b %+v", text, allow.Decide(drop("a")), allow.Decide(drop("a__b")))
			}
			other := &capability.Capability{Declaration: declare(capability.KindMCP, "a__b", &capability.Server{
				Observation: &capability.Observation{Catalog: []capability.ObservedTool{{Name: "c", Destructive: true}}},
			})}
			if got := StandingOf(allow, other, nil, false); got.State != Blocked {
				t.Errorf("allow %s reaches a__b: %+v", text, got)
			}
		}
		deny, _ := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Mode: "", Deny: []string{"mcp__a__*"}})
		cold := &capability.Capability{Declaration: declare(capability.KindMCP, "a__b", &capability.Server{})}
		if deny.Decide(onServer("a__b", "c", "")).Effect != Deny || StandingOf(deny, cold, nil, true).State != Blocked {
			t.Errorf("%q: a deny rule leaves out a__b", dialect)
		}
	}
}

// To allow tools of servers that are not named is an error that says so, and allows nothing; to deny them is a rule.
func TestAllowedServersAreNamed(t *testing.T) {
	for _, dialect := range []capability.Dialect{capability.DialectVAK, capability.DialectClaude} {
		for _, text := range []string{"mcp__*", "mcp__*__read", "mcp__", "mcp__g*__x"} {
			e, problems := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Mode: "", Allow: []string{text}, Source: "f", Lines: RuleLines{Allow: []int{7}}})
			if len(problems) != 1 || problems[0].Line != 7 || problems[0].Path != "f" || !strings.Contains(problems[0].Message, text) {
				t.Errorf("%s: %v", text, problems)
			}
			if d := e.Decide(Request{Tool: "mcp", Server: "git", ServerTool: "drop", Destructive: true}); d.Effect != Ask {
				t.Errorf("%s: %+v", text, d)
			}
		}
		e, problems := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Deny: []string{"mcp__*"}})
		if d := e.Decide(onServer("git", "x", "")); len(problems) > 0 || d.Effect != Deny {
			t.Errorf("deny: %+v %v", d, problems)
		}
	}
}

// A rule about a file binds the host's tools; a server's tool is bound by a rule about its parameter, however deep the
// value stands and however the path is spelled.
func TestParameterRules(t *testing.T) {
	read := func(arguments string) Request { return onServer("files", "read_file", arguments) }
	for _, dialect := range []capability.Dialect{capability.DialectVAK, capability.DialectClaude} {
		e, problems := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Deny: []string{"mcp__files__*(path:*secret.yml)", "mcp__db__query(*:DROP *)", "mcp__files__*(path:**/.env)"}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for arguments, want := range map[string]Effect{
			`{"path":"secret.yml"}`:          Deny,
			`{"path":"./a/../secret.yml"}`:   Deny,
			`{"path":"/srv/ws/secret.yml"}`:  Deny,
			`{"path":["a","b/secret.yml"]}`:  Deny,
			`{"path":{"file":"secret.yml"}}`: Deny,
			`{"Path":"secret.yml"}`:          Deny,
			`{"path":".env"}`:                Deny,
			`{"path":"a/.env"}`:              Deny,
			`{"path":"public.yml"}`:          Allow,
			`{"file":"secret.yml"}`:          Allow, // another parameter: the rule does not say so
			`[`:                              Deny,
		} {
			if got := e.Decide(read(arguments)); got.Effect != want {
				t.Errorf("%s: %+v", arguments, got)
			}
		}
		if got := e.Decide(onServer("db", "query", `{"sql":"DROP TABLE x","n":1}`)); got.Effect != Deny {
			t.Errorf("any parameter: %+v", got)
		}
		if _, problems := CompileEngine(Host{}, PermissionRules{Dialect: dialect, Allow: []string{"mcp__files__read(path:a)"}}); len(problems) != 1 {
			t.Errorf("allow by a parameter: %v", problems)
		}
	}
	plain := engine(t, PermissionRules{Deny: []string{"read(**/secret.yml)"}})
	if got := plain.Decide(read(`{"path":"secret.yml"}`)); got.Effect != Allow {
		t.Errorf("a rule about a tool of the host bound a server's: %+v", got)
	}
}

// What cannot be taken over is a problem with file and line; what was meant to deny shuts the engine.
func TestClaudeProblems(t *testing.T) {
	for text, shuts := range map[string]bool{"Bash(": true, "Bash(a:*b)": true, "WebFetch(example.org)": true, "Grep2(x)": true, "Agent(x)": false} {
		layer := PermissionRules{Dialect: capability.DialectClaude, Source: ".claude/settings.json", Deny: []string{text}, Lines: RuleLines{Deny: []int{3}}}
		e, problems := CompileEngine(Host{}, layer)
		if len(problems) != 1 || problems[0].Line != 3 || problems[0].Path != ".claude/settings.json" || problems[0].Hint == "" {
			t.Errorf("%s: %v", text, problems)
		}
		if got := e.Decide(reading); (got.Effect == Deny) != shuts {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for text, severity := range map[string]capability.Severity{
		"Write(a)": capability.SeverityWarning, "Task(a)": capability.SeverityWarning, "*": capability.SeverityError, "M*": capability.SeverityError,
	} {
		e, problems := CompileEngine(Host{}, PermissionRules{Dialect: capability.DialectClaude, Allow: []string{text}})
		if len(problems) != 1 || problems[0].Severity != severity || e.Decide(deleting).Effect != Ask {
			t.Errorf("allow %s: %v", text, problems)
		}
	}
	for mode, want := range map[string]Mode{"": WorkspaceWrite, "default": WorkspaceWrite, "plan": ReadOnly, "acceptEdits": WorkspaceWrite, "bypassPermissions": WorkspaceWrite, "dontAsk": WorkspaceWrite, "x": WorkspaceWrite} {
		e, problems := CompileEngine(Host{}, PermissionRules{Dialect: capability.DialectClaude, Mode: mode})
		told := mode == "bypassPermissions" || mode == "dontAsk" || mode == "x"
		if e.mode != want || (len(problems) > 0) != told {
			t.Errorf("mode %q is %s: %v", mode, e.mode, problems)
		}
	}
}

// V208: deny and ask rules of every layer hold; allow rules and a looser mode need trust.
func TestLayers(t *testing.T) {
	shared := PermissionRules{Mode: "workspace-write", Deny: []string{"rm"}, Allow: []string{"fetch"}}
	project := PermissionRules{Mode: "full-access", Deny: []string{"write(src/**)"}, Ask: []string{"edit"}, Allow: []string{"bash"}, Source: "vak.toml"}
	trusted, problems := CompileEngine(Host{}, project, shared)
	if len(problems) > 0 || trusted.mode != FullAccess {
		t.Fatal(problems, trusted.mode)
	}
	project.Untrusted = true
	untrusted, problems := CompileEngine(Host{}, project, shared)
	if len(problems) != 2 || untrusted.mode != WorkspaceWrite {
		t.Errorf("mode %s, problems %v", untrusted.mode, problems)
	}
	for i, tc := range []struct {
		req                Request
		trusted, untrusted Effect
	}{
		{writing, Deny, Deny},
		{Request{Tool: "rm"}, Deny, Deny},
		{Request{Tool: "edit", Subject: "a", Kind: SubjectPath}, Ask, Ask},
		{shell, Allow, Ask},
		{fetching, Allow, Allow},
		{deleting, Allow, Ask},
	} {
		if a, b := trusted.Decide(tc.req), untrusted.Decide(tc.req); a.Effect != tc.trusted || b.Effect != tc.untrusted {
			t.Errorf("%d %s: trusted %+v, untrusted %+v", i, tc.req.Rule(), a, b)
		}
	}
	// The order of rules and of layers does not matter for what rules say.
	swapped, _ := CompileEngine(Host{}, shared, project)
	for _, req := range []Request{writing, shell, fetching, deleting, remote} {
		if a, b := untrusted.Decide(req), swapped.Decide(req); min(a.Effect, Ask) != min(b.Effect, Ask) {
			t.Errorf("%s: %+v and %+v", req.Rule(), a, b)
		}
	}
	project.Lines = RuleLines{Mode: 2, Allow: []int{5}}
	if _, problems := CompileEngine(Host{}, project, shared); problems[0].Line != 2 || problems[1].Line != 5 || problems[1].Hint == "" {
		t.Errorf("what an untrusted layer would grant stands elsewhere: %v", problems)
	}
	project.Mode = "read-only"
	if strict, _ := CompileEngine(Host{}, project, shared); strict.mode != ReadOnly {
		t.Errorf("an untrusted layer may restrict: %s", strict.mode)
	}
}

func FuzzClaudeRule(f *testing.F) {
	for _, s := range []string{"Bash(ls *)", "Read(~/x)", "Edit(//a/**)", "mcp__a__*", "WebFetch(domain:a.b)", "X(y:z)", "Read([)", "Read({)"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, text, subject string) {
		e, _ := CompileEngine(Host{Workspace: "/w", Home: "/h"}, PermissionRules{Mode: "plan", Dialect: capability.DialectClaude, Allow: []string{text}, Ask: []string{text}})
		for _, kind := range []SubjectKind{SubjectPath, SubjectCommand, SubjectURL} {
			if d := e.Decide(Request{Tool: "write", Subject: subject, Kind: kind}); d.Effect != Deny {
				t.Fatalf("allow %q loosened read-only: %+v", text, d)
			}
		}
	})
}
