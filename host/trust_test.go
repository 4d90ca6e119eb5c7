package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder is a clone when its repository has a remote, wherever in the checkout it lies; a repository of one's own is none.
func TestProvenance(t *testing.T) {
	top := t.TempDir()
	book := filepath.Join(top, "state", "trust.json")
	own, clone := filepath.Join(top, "own"), filepath.Join(top, "clone")
	put(t, filepath.Join(own, "sub", "a"), "x")
	is := func(dir string, want Provenance) {
		t.Helper()
		if got, err := ProvenanceOf(book, dir); got != want || err != nil {
			t.Errorf("%s is %d, %v, want %d", dir, got, err, want)
		}
	}
	is(own, Own)
	git(t, own, "init", "-q")
	git(t, own, "add", ".")
	git(t, own, "commit", "-qm", "x")
	is(own, Own)
	git(t, top, "clone", "-q", own, clone)
	is(clone, Cloned)
	is(filepath.Join(clone, "sub"), Cloned)
	git(t, clone, "worktree", "add", "-q", filepath.Join(top, "tree"))
	is(filepath.Join(top, "tree"), Cloned)
	put(t, filepath.Join(clone, "lies", ".git"), "gitdir: "+filepath.Join(top, "nowhere"))
	is(filepath.Join(clone, "lies"), Cloned)
	if err := os.Symlink(clone, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	is(filepath.Join(top, "link"), Cloned)
	if whose, _ := ProvenanceOf("", clone); whose != Own {
		t.Error("an embedding program without a file of trust is second-guessed")
	}

	// Trust holds for exactly this folder, by any path to it, until it is taken back.
	if err := Trust(book, filepath.Join(top, "link"), false); err != nil {
		t.Fatal(err)
	}
	is(clone, Trusted)
	is(filepath.Join(clone, "sub"), Cloned)
	if info, err := os.Stat(book); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := Trust(book, clone, true); err != nil {
		t.Fatal(err)
	}
	is(clone, Own)
	if err := Distrust(book, clone); err != nil {
		t.Fatal(err)
	}
	is(clone, Cloned)

	// What cannot be read counts against the workspace.
	put(t, book, "{")
	if whose, err := ProvenanceOf(book, clone); whose != Cloned || err == nil {
		t.Errorf("with a broken file: %d, %v", whose, err)
	}
	put(t, filepath.Join(own, ".git", "config"), "[include]\n\tpath = elsewhere\n")
	is2, _ := ProvenanceOf(filepath.Join(top, "none"), own)
	if is2 != Cloned {
		t.Error("a repository whose remotes may stand elsewhere counts as one's own")
	}
}

// V208: of a clone that nobody trusts, texts and what restricts are in force; what runs is held, what grants is not taken.
// Trust takes effect at the next pass, and so does its end.
func TestUntrustedWorkspace(t *testing.T) {
	top := t.TempDir()
	ws, book := filepath.Join(top, "ws"), filepath.Join(top, "trust.json")
	for name, text := range map[string]string{
		".git/config":           "[remote \"origin\"]\n\turl = https://example.org/x\n",
		"skills/a/SKILL.md":     "---\nname: a\ndescription: A.\n---\nBody.\n",
		"vak.toml":              "[mcp.servers.s]\ncommand = \"sh\"\n[permissions]\nmode = \"full-access\"\nallow = [\"fetch\"]\ndeny = [\"write(x)\"]\n[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"true\"\n",
		".mcp.json":             `{"mcpServers": {"j": {"command": "sh"}}}`,
		".claude/settings.json": `{"enableAllProjectMcpServers": true, "permissions": {"allow": ["WebFetch"]}, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}`,
	} {
		put(t, filepath.Join(ws, filepath.FromSlash(name)), text)
	}
	s := &scanner{
		workspace: openedAt(ws, declare.Options{}), trustFile: book,
		misplaced: func(config.Config) []capability.Problem { return nil },
	}
	look := func(held int, fetch policy.Effect) {
		t.Helper()
		w := pass(t, s)
		n := 0
		for _, d := range w.Declarations {
			if d.Hold != nil {
				n++
				if !runs(d.ID.Kind) || !strings.Contains(d.Hold.Remedy, "vak-actors trust") {
					t.Errorf("%s is held: %+v", d.ID, d.Hold)
				}
			}
		}
		got := w.Policy.Engine.Decide(policy.Request{Tool: "fetch", Kind: policy.SubjectURL, Subject: "https://example.org"})
		denied := w.Policy.Engine.Decide(policy.Request{Tool: "write", Kind: policy.SubjectPath, Subject: "x"})
		if n != held || got.Effect != fetch || denied.Effect != policy.Deny || (w.Policy.HoldCommands != "") != (held > 0) {
			t.Errorf("%d held, fetch %+v, write %+v, commands held: %q", n, got, denied, w.Policy.HoldCommands)
		}
		if w.Pins.Workspace == (held > 0) {
			t.Errorf("pinned: %t", w.Pins.Workspace)
		}
	}
	look(4, policy.Ask)
	if err := Trust(book, ws, false); err != nil {
		t.Fatal(err)
	}
	look(0, policy.Allow)
	if err := Distrust(book, ws); err != nil {
		t.Fatal(err)
	}
	look(4, policy.Ask)
}

// A clone that nobody trusts does not configure the daemon: no address, data folder or token of its own.
func TestUntrustedWorkspaceConfiguresNothing(t *testing.T) {
	top := t.TempDir()
	ws := filepath.Join(top, "ws")
	put(t, filepath.Join(ws, ".git", "config"), "[remote \"origin\"]\n")
	put(t, filepath.Join(ws, "vak.toml"), "listen = \"0.0.0.0:1\"\ndata = \"here\"\n[auth]\ntoken_file = \"token\"\n[tenants.more]\nworkspace = \"/\"\n")
	o := Options{Workspace: ws, TrustFile: filepath.Join(top, "trust.json")}
	c, _, err := readConfig(&o)
	if err != nil || c.Listen != config.Default().Listen || c.Data != "" || c.Auth.TokenFile != "" || len(c.Tenants) > 0 {
		t.Errorf("%+v %v", c, err)
	}
	o.Config = filepath.Join(ws, "vak.toml") // named by the operator
	if c, _, err := readConfig(&o); err != nil || c.Data != "here" {
		t.Errorf("%+v %v", c, err)
	}
}
