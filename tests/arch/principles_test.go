package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// builtinNames are names of built-in tools that are no common words of anything else in this code.
var builtinNames = []string{"read", "glob", "grep", "write", "edit", "find_tools", "session_search"}

// V30: the host holds no table of instance names: only the package that implements a tool says its name, so adding one
// changes nothing else.
func TestOnlyAToolsPackageKnowsItsName(t *testing.T) {
	declared := false
	for _, p := range packages(t) {
		if _, l, ok := room(p.Rel); !ok || l == outside {
			continue
		}
		for _, name := range p.GoFiles {
			files, file := parse(t, filepath.Join(p.Dir, name), nil)
			ast.Inspect(file, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				if !ok || text.Kind != token.STRING {
					return true
				}
				value, err := strconv.Unquote(text.Value)
				if err != nil || !slices.Contains(builtinNames, value) {
					return true
				}
				if under(p.Rel, "internal/builtin") {
					declared = true
					return true
				}
				at := files.Position(text.Pos())
				t.Errorf("%s/%s:%d knows the built-in tool %q by name: let the tool's own declaration say it", p.Rel, name, at.Line, value)
				return true
			})
		}
	}
	if !declared {
		t.Error("internal/builtin declares none of the names this test looks for")
	}
}

// V35: a pass speaks to nothing outside the process. What reads a workspace can reach neither a network, nor a process,
// nor a disk but through the file system it is given, whatever it imports.
func TestReadersCanReachNothing(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./internal/declare")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(bytes.TrimSpace(out))) {
		if slices.Contains([]string{"net", "net/http", "os/exec", "database/sql"}, dep) || under(dep, module+"/internal/mcpio") {
			t.Errorf("internal/declare can reach %s", dep)
		}
	}
}
