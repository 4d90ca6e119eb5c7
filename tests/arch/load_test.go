package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/vak-actors/vak-actors"

// root is the module's folder, seen from this package.
const root = "../.."

// pkg is what go list says of one package of the module.
type pkg struct {
	ImportPath   string
	Dir          string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string

	// Rel is the path below the module, with '/'.
	Rel string `json:"-"`
}

// ours returns the imports that lie in the module, relative to it.
func ours(imports []string) []string {
	var rel []string
	for _, i := range imports {
		if r, ok := strings.CutPrefix(i, module+"/"); ok {
			rel = append(rel, r)
		}
	}
	return rel
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	// -e: a package that does not build is the compiler's to report, not ours.
	cmd := exec.Command("go", "list", "-e",
		"-json=ImportPath,Dir,Doc,Imports,TestImports,XTestImports,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		p.Rel = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		all = append(all, p)
	}
})

// packages returns every package of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	if len(all) == 0 {
		t.Fatal("go list names no package")
	}
	return all
}

// under reports whether path is dir or lies below it.
func under(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// tracked returns the files git knows or would add, relative to the module. Files that are deleted but not yet
// committed as such are left out.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the tracked files: %v", err)
	}
	var files []string
	for f := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, f)); err == nil && info.Mode().IsRegular() {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("git names no file for %v", patterns)
	}
	return files
}

// read returns the text of a file of the module.
func read(t *testing.T, rel string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
