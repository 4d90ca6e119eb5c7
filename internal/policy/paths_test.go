package policy

import (
	"strings"
	"testing"
)

// Where a path of an own rule begins, and that what allows never reaches further than it says, while what denies does.
func TestPathRules(t *testing.T) {
	host := Host{Workspace: "/srv/[x]/ws", Home: "/srv/u[1]", ReadTool: "read", WriteTool: "write"}
	for _, tc := range []struct {
		pattern, subject string
		denies, allows   bool
	}{
		{"secret/**", "secret/a", true, true},
		{"secret/", "secret/a/b", true, true},
		{"./secret/**", "secret/a", true, true},
		{"./secret/**", "secrets/a", false, false},
		{"secret/**", "./x/../secret/a", true, true},
		{"**/.env", "a/.env", true, true},
		{"**/.env", "../a/.env", true, false},
		{"**/.env", "/etc/.env", true, false},
		{"**/.env", "a/../../.env", true, false},
		{"../b/**", "../b/c", true, true},
		{"../b/**", "/srv/[x]/b/c", true, true},
		{"../b/**", "b/c", false, false},
		{"/srv/[[]x]/ws/a", "a", true, true},
		{"/etc/**", "/etc/passwd", true, true},
		{"/etc/**", "etc/passwd", false, false},
		{"~/.ssh/**", "/srv/u[1]/.ssh/id", true, true},
		{"~/.ssh/**", ".ssh/id", false, false},
		{"./", "a/b", true, true},
		{"./", "../b", true, false},
		{"/", "/etc/x", true, true},
	} {
		for effect, want := range map[Effect]bool{Deny: tc.denies, Allow: tc.allows} {
			rules := PermissionRules{Allow: []string{"change(" + tc.pattern + ")"}}
			if effect == Deny {
				rules = PermissionRules{Deny: rules.Allow}
			}
			e, problems := CompileEngine(host, rules)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got := e.Decide(Request{Tool: "change", Subject: tc.subject, Kind: SubjectPath})
			if (got.Rule != "") != want {
				t.Errorf("%s %s on %s: %+v, want %v", effect, tc.pattern, tc.subject, got, want)
			}
		}
	}
	e, problems := CompileEngine(Host{}, PermissionRules{Deny: []string{"read(~/x)"}})
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "home") || e.Decide(reading).Effect != Deny {
		t.Errorf("an unknown home: %v", problems)
	}
}

// Rules of Claude Code: what allows by a name at any depth means the workspace, what denies every folder.
func TestClaudePathsOutside(t *testing.T) {
	for subject, allows := range map[string]bool{"a/x.go": true, "../a/x.go": false, "/etc/x.go": false} {
		e := claude(t, PermissionRules{Allow: []string{"Edit(*.go)"}})
		if got := e.Decide(at("change", subject)); (got.Rule != "") != allows {
			t.Errorf("allow on %s: %+v", subject, got)
		}
		if got := claude(t, PermissionRules{Deny: []string{"Edit(*.go)"}}).Decide(at("change", subject)); got.Effect != Deny {
			t.Errorf("deny on %s: %+v", subject, got)
		}
	}
}
