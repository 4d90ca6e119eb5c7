package lifecycle

import (
	"os"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// A model cannot lift its own limits: what governs it, and the programs of its hooks, are not written by mode alone, not by
// way of a link either. A rule of the operator allows it.
func TestModelCannotRewriteItsLimits(t *testing.T) {
	const config = "[[hooks]]\nevent = \"post-tool-use\"\ncommand = \"./guard.sh\"\n"
	w := newWorld(t, map[string]string{"vak.toml": config, "guard.sh": "#!/bin/sh\n"})
	w.must(os.Chmod(w.path("guard.sh"), 0o700))
	w.must(os.Symlink("vak.toml", w.path("innocent.txt")))
	u := w.open().begin()
	for _, path := range []string{"vak.toml", "innocent.txt", ".mcp.json", ".git/hooks/pre-commit", "guard.sh"} {
		refused(t, u.call("write", object{"path": path, "content": "x"}).err, vakerr.ApprovalRequired)
	}
	refused(t, u.call("edit", object{"path": "innocent.txt", "old_string": "hooks", "new_string": "books"}).err, vakerr.ApprovalRequired)
	if text, err := os.ReadFile(w.path("vak.toml")); err != nil || string(text) != config {
		t.Fatalf("it was written: %q, %v", text, err)
	}
	if got := u.call("write", object{"path": "notes.txt", "content": "x"}); got.err != nil {
		t.Errorf("an ordinary file: %v", got.err)
	}
	u.end()
	w.write("vak.toml", config+"[permissions]\nallow = [\"write(.mcp.json)\"]\n")
	u = u.begin()
	if got := u.call("write", object{"path": ".mcp.json", "content": "{}"}); got.err != nil {
		t.Errorf("what a rule allows: %v", got.err)
	}
	u.end()
}
