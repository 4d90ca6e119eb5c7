package arch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" && !under(p.Rel, "messages") {
			t.Errorf("%s has no package comment: say what it decides or owns, and what it does not", p.Rel)
		}
	}
	for _, name := range tracked(t, "*.proto") {
		if !regexp.MustCompile(`(?m)^// Package .*\n(//.*\n)*package `).MatchString(read(t, name)) {
			t.Errorf("%s has no comment above its package line: say who speaks these messages", name)
		}
	}
}

// goMod is what this package reads of go.mod.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Replace []any
	Exclude []any
}

func readGoMod(t *testing.T) goMod {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoModIsUsableByOthers: a replace or exclude counts only in the main module, so that a library's users would build
// something else than its tests did.
func TestGoModIsUsableByOthers(t *testing.T) {
	if m := readGoMod(t); len(m.Replace)+len(m.Exclude) > 0 {
		t.Error("go.mod holds a replace or an exclude: depend on a published version instead")
	}
}

func TestEveryDependencyIsJustified(t *testing.T) {
	text := read(t, "ARCHITECTURE.md")
	for _, r := range readGoMod(t).Require {
		if !r.Indirect && !strings.Contains(text, "`"+r.Path+"`") {
			t.Errorf("%s is a direct dependency without a line in the table of ARCHITECTURE.md: say what it is for and why that one", r.Path)
		}
	}
}

// TestTheBinaryStaysSmall: the single-node program carries no cluster client.
func TestTheBinaryStaysSmall(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "./cmd/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.FieldsSeq(string(out)) {
		if under(p, "k8s.io") || under(p, "go.etcd.io") || under(p, "github.com/hashicorp/consul") {
			t.Errorf("cmd links %s, which a single node has no use for", p)
		}
	}
}

// machinePaths match absolute paths that exist on one machine only.
var machinePaths = regexp.MustCompile(`(^|[^\w.~/-])/(work|root|home/\w+|Users/\w+)/`)

func TestNoFileNamesOneMachine(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "go.sum") || under(name, "tests/arch") {
			continue
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			if strings.Contains(line, here) || len(home) > 1 && strings.Contains(line, home+"/") || machinePaths.MatchString(line) {
				t.Errorf("%s:%d: names a path of one machine: make it relative, or invent one such as /srv/example", name, i+1)
			}
		}
	}
}

func TestScriptsAreRunnable(t *testing.T) {
	for _, name := range tracked(t, ".ci/run", "*.sh") {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%s is not executable: chmod +x it", name)
		}
		if !strings.HasPrefix(read(t, name), "#!") {
			t.Errorf("%s does not begin with #!", name)
		}
	}
}
