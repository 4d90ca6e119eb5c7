package realparts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/tests/realparts"
)

const child = "VAK_REALPARTS_CHILD"

// TestChild is what the other tests run in a process of its own; by itself it checks nothing.
func TestChild(t *testing.T) {
	if os.Getenv(child) == "" {
		return
	}
	t.Logf("path %q", realparts.Require(t, realparts.Node))
}

// run runs TestChild with the given environment and returns what it printed and whether it passed.
func run(t *testing.T, env ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append([]string{child + "=1"}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestRequire(t *testing.T) {
	present := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(present, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  []string
		want string
		pass bool
	}{
		{"present", []string{"VAK_NODE=" + present}, `path "` + present, true},
		{"missing is said aloud", nil, "not run: VAK_NODE is not set", true},
		{"missing fails where all are required", []string{"VAK_REQUIRE_REAL=1"}, "a real part is missing", false},
		{"a path that is not there is missing", []string{"VAK_NODE=" + present + "x"}, "does not exist", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, pass := run(t, c.env...)
			if pass != c.pass || !strings.Contains(out, c.want) {
				t.Errorf("passed %v, want %v; printed:\n%s\nwant %q in it", pass, c.pass, out, c.want)
			}
		})
	}
}
