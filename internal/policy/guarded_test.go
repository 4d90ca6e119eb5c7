package policy

import "testing"

// What governs an agent, or runs outside of its tools, is not written by mode alone, however the path is spelled; a rule of
// the operator decides otherwise.
func TestGuardedFiles(t *testing.T) {
	write := func(path string) Request { return Request{Tool: "write", Subject: path, Kind: SubjectPath} }
	e := engine(t, PermissionRules{}).Guarding([]string{"./hooks/no-lock-writes.sh"})
	for path, want := range map[string]Effect{
		"vak.toml": Ask, "./vak.toml": Ask, "a/../VAK.toml": Ask, ".mcp.json": Ask, ".claude/settings.json": Ask,
		".git/hooks/pre-commit": Ask, "vendor/lib/.git/config": Ask, "hooks/no-lock-writes.sh": Ask,
		"a/vak.toml": Allow, "vak.toml.bak": Allow, ".gitignore": Allow, "hooks/other.sh": Allow, "src/main.go": Allow,
	} {
		if got := e.Decide(write(path)); got.Effect != want {
			t.Errorf("%s: %+v, want %s", path, got, want)
		}
	}
	reading := Request{Tool: "read", Subject: "vak.toml", Kind: SubjectPath, ReadOnly: true}
	if got := e.Decide(reading); got.Effect != Allow {
		t.Errorf("reading it: %+v", got)
	}
	for _, rules := range []PermissionRules{{Allow: []string{"write(vak.toml)"}}, {Mode: "full-access"}} {
		if got := engine(t, rules).Decide(write("vak.toml")); got.Effect != Allow {
			t.Errorf("under %+v: %+v", rules, got)
		}
	}
}
