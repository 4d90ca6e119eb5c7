package corpus

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/declare"
)

// layout puts every file of the corpus where a workspace has it, a workspace for each repository; of two files for one
// place the second begins another workspace. It returns the workspaces and how many files they hold.
func layout(b *testing.B, dir string) (workspaces []string, files int) {
	b.Helper()
	top, age := b.TempDir(), time.Now().Add(-time.Hour)
	for _, kind := range []string{"skills", "commands", "mcp", "hooks", "plugins"} {
		for i, group := range rows(b, dir, kind) {
			repository := strings.SplitN(group[0].file, "/", 3)[1]
			workspace := filepath.Join(top, repository)
			at := filepath.Join(workspace, filepath.FromSlash(place(kind, i, group[0].file)))
			for n := 2; fileExists(at); n++ {
				workspace = filepath.Join(top, fmt.Sprintf("%s-%d", repository, n))
				at = filepath.Join(workspace, filepath.FromSlash(place(kind, i, group[0].file)))
			}
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(group[0].file)))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(at), 0o755)
			}
			if err == nil {
				err = os.WriteFile(at, text, 0o600)
			}
			if err == nil {
				err = os.Chtimes(at, age, age)
			}
			if err != nil {
				b.Fatal(err)
			}
			files++
		}
	}
	found, err := os.ReadDir(top)
	if err != nil {
		b.Fatal(err)
	}
	for _, w := range found {
		workspace := filepath.Join(top, w.Name())
		if err := settle(workspace, age); err != nil {
			b.Fatal(err)
		}
		workspaces = append(workspaces, workspace)
	}
	return workspaces, files
}

// settle makes folders old, so that a quiet pass may trust their times.
func settle(workspace string, age time.Time) error {
	return filepath.WalkDir(workspace, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chtimes(p, age, age)
		}
		return err
	})
}

func fileExists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// place is where a workspace has a file of that kind.
func place(kind string, i int, file string) string {
	name := path.Base(file)
	switch kind {
	case "skills":
		return path.Join("skills", fmt.Sprintf("s%d", i), name)
	case "commands":
		return path.Join(commandsFolder(file), fmt.Sprintf("c%d", i), name)
	case "hooks":
		if strings.Contains(file, ".cursor/") {
			return ".cursor/hooks.json"
		}
		return ".claude/settings.json"
	case "mcp":
		for _, known := range []string{".cursor/mcp.json", ".vscode/mcp.json", ".codex/config.toml", ".gemini/settings.json", ".vak/config.toml"} {
			if strings.HasSuffix(file, known) {
				return known
			}
		}
		return ".mcp.json"
	}
	return path.Join(".claude-plugin", name) // declared by an installation only: lies there and is not read
}

// BenchmarkCorpus reads every file of the corpus, laid out as workspaces: all of them cold, and again when nothing has
// changed.
func BenchmarkCorpus(b *testing.B) {
	dir := corpusDir(b)
	if dir == "" {
		return
	}
	workspaces, files := layout(b, dir)
	pass := func(scanners []*declare.Scanner) (declared int) {
		for i, workspace := range workspaces {
			root, err := os.OpenRoot(workspace)
			if err != nil {
				b.Fatal(err)
			}
			r, err := scanners[i].Scan(root.FS(), time.Now())
			if err != nil {
				b.Fatal(err)
			}
			declared += len(r.Declarations)
			if err := root.Close(); err != nil {
				b.Fatal(err)
			}
		}
		return declared
	}
	fresh := func() []*declare.Scanner {
		all := make([]*declare.Scanner, len(workspaces))
		for i := range all {
			all[i] = declare.NewScanner(declare.Options{})
		}
		return all
	}
	report := func(b *testing.B, declared int) {
		b.ReportMetric(float64(files), "files")
		b.ReportMetric(float64(len(workspaces)), "workspaces")
		b.ReportMetric(float64(declared), "declared")
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		declared := 0
		for b.Loop() {
			declared = pass(fresh())
		}
		report(b, declared)
	})
	b.Run("quiet", func(b *testing.B) {
		scanners := fresh()
		pass(scanners)
		b.ReportAllocs()
		declared := 0
		for b.Loop() {
			declared = pass(scanners)
		}
		report(b, declared)
	})
}
