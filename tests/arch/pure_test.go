package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// impure lists what a pure package does not import: it reads through an fs.FS, gets the time and randomness as
// arguments, and returns what is worth saying.
var impure = []string{
	"os", "os/exec", "os/signal", "os/user", "net", "net/http", "net/rpc", "syscall", "golang.org/x/sys",
	"log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "database/sql",
	"google.golang.org/protobuf", "connectrpc.com/connect",
}

// clockNames are the functions of package time that read or wait on the real clock.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// diskNames are the functions of path/filepath that look at the disk.
var diskNames = []string{"Walk", "WalkDir", "Glob", "EvalSymlinks", "Abs"}

func TestPurePackagesTouchNothing(t *testing.T) {
	for _, p := range packages(t) {
		if _, l, ok := room(p.Rel); !ok || l != pure {
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains(impure, i) || under(i, "golang.org/x/sys") || under(i, "google.golang.org/protobuf") {
				t.Errorf("%s imports %s: a pure package decides and touches nothing; let a shell do it and pass the result in", p.Rel, i)
			}
		}
		for _, name := range p.GoFiles {
			for _, finding := range impurities(t, filepath.Join(p.Dir, name), nil) {
				t.Errorf("%s/%s", p.Rel, finding)
			}
		}
	}
}

// impurities returns what a file of a pure package must not hold, with file and line. src is nil to read the file.
func impurities(t *testing.T, path string, src any) []string {
	t.Helper()
	files, file := parse(t, path, src)
	clock, disk := localName(file, "time"), localName(file, "path/filepath")
	var found []string
	report := func(at token.Pos, what string) {
		p := files.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(p.Filename), p.Line, what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n.Pos(), "starts a goroutine: a pure package has none; its caller may")
		case *ast.SelectorExpr:
			switch on, ok := n.X.(*ast.Ident); {
			case !ok || on.Obj != nil:
			case clock != "" && on.Name == clock && slices.Contains(clockNames, n.Sel.Name):
				report(n.Pos(), "uses time."+n.Sel.Name+": the time arrives as an argument")
			case disk != "" && on.Name == disk && slices.Contains(diskNames, n.Sel.Name):
				report(n.Pos(), "uses filepath."+n.Sel.Name+": a pure package reads through an fs.FS")
			}
		}
		return true
	})
	return found
}

// TestImpurities makes sure that the search above finds something.
func TestImpurities(t *testing.T) {
	const src = `package x
import ("path/filepath"; clock "time")
type keeper struct{ time struct{ Now func() } }
func f(k keeper) { go f(k); _ = clock.Now(); _, _ = filepath.Abs("x"); k.time.Now(); _ = clock.Second }
`
	if found := impurities(t, "x.go", src); len(found) != 3 {
		t.Errorf("found %q, want the goroutine, the clock and the disk", found)
	}
}

// TestTestsNeitherSkipNorSleep: a skip looks like a success, and a sleep is a guess at how fast the machine is. Inside a
// synctest bubble time is virtual, and sleeping is the way to let it pass.
func TestTestsNeitherSkipNorSleep(t *testing.T) {
	for _, name := range tracked(t, "*_test.go") {
		files, file := parse(t, filepath.Join(root, name), nil)
		clock := localName(file, "time")
		bubble := localName(file, "testing/synctest") != ""
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			on, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			line := files.Position(n.Pos()).Line
			if strings.HasPrefix(sel.Sel.Name, "Skip") && slices.Contains([]string{"t", "b", "f", "tb"}, on.Name) {
				t.Errorf("%s:%d: skips a test: ask tests/realparts for what may be missing", name, line)
			}
			if clock != "" && on.Name == clock && sel.Sel.Name == "Sleep" && !bubble {
				t.Errorf("%s:%d: sleeps on the real clock: use testing/synctest, an injected clock or a channel", name, line)
			}
			return true
		})
	}
}

func parse(t *testing.T, path string, src any) (*token.FileSet, *ast.File) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	return files, file
}

// localName is the name a file gives an import, or "" when it does not import it.
func localName(file *ast.File, path string) string {
	for _, i := range file.Imports {
		if strings.Trim(i.Path.Value, `"`) != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}
