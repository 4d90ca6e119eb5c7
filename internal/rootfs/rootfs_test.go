package rootfs

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// world is a folder with links of every kind, beside one that must stay out of reach.
func world(t *testing.T) (*Root, string) {
	t.Helper()
	top := t.TempDir()
	inside, outside := filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, d := range []string{filepath.Join(inside, "a/b"), outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(outside, "secret"), "s")
	put(t, filepath.Join(inside, "a/b/file"), "f")
	for link, target := range map[string]string{
		"out": outside, "outfile": filepath.Join(outside, "secret"), "climb": "../out/secret", "a/up": "../../out",
		"ring": "ring2", "ring2": "ring", "rel": "a/b/file", "abs": filepath.Join(inside, "a/b"), "a/b/back": "../..",
		"new": "a/not-yet",
	} {
		if err := os.Symlink(target, filepath.Join(inside, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(inside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, inside
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNothingLeadsOut(t *testing.T) {
	r, _ := world(t)
	for p, want := range map[string]vakerr.Code{
		"out/secret": vakerr.PathEscapes, "outfile": vakerr.PathEscapes, "climb": vakerr.PathEscapes,
		"a/up/secret": vakerr.PathEscapes, "ring": vakerr.PathEscapes, "a/b/back/../../out/secret": vakerr.PathEscapes,
		"pipe": vakerr.InvalidArguments, "a": vakerr.InvalidArguments, "none": vakerr.FileNotFound, "a/b/file/x": vakerr.FileNotFound,
		"new": vakerr.FileNotFound,
		"rel": "", "abs/file": "", "a/b/back/a/b/file": "", "a/b/file": "",
	} {
		f, _, err := r.OpenRegular(p)
		if err == nil {
			_ = f.Close()
		}
		if vakerr.CodeOf(err) != want {
			t.Errorf("read %s: %v", p, err)
		}
	}
	for _, p := range []string{"out/x", "outfile", "climb", "a/up/x", "ring", "pipe", "a"} {
		if _, err := r.WriteAtomic(p, []byte("x"), 0o644); err == nil {
			t.Errorf("%s was written", p)
		}
	}
	out := filepath.Join(r.folder, "..", "out")
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder outside has %v, %v", entries, err)
	}
	if raw, _ := os.ReadFile(filepath.Join(out, "secret")); string(raw) != "s" {
		t.Errorf("the secret is %q", raw)
	}
}

func TestRelative(t *testing.T) {
	for p, want := range map[string]string{
		"a/b": "a/b", "./a//b/": "a/b", "/w/a": "a", "/w": ".", "a/../b": "b", "..x": "..x",
	} {
		if got, err := Relative("/w", p); err != nil || got != want {
			t.Errorf("%q: %q, %v", p, got, err)
		}
	}
	for p, want := range map[string]vakerr.Code{
		"": vakerr.InvalidArguments, "a\x00": vakerr.InvalidArguments, "..": vakerr.PathEscapes, "a/../../b": vakerr.PathEscapes,
		"/etc/passwd": vakerr.PathEscapes, "/wx/a": vakerr.PathEscapes,
	} {
		if _, err := Relative("/w", p); vakerr.CodeOf(err) != want {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestWriteAtomic(t *testing.T) {
	r, dir := world(t)
	created, err := r.WriteAtomic("deep/er/new.txt", []byte("one"), 0o640)
	if err != nil || !created {
		t.Fatalf("%t, %v", created, err)
	}
	script := filepath.Join(dir, "run.sh")
	put(t, script, "old")
	if err := os.Chmod(script, 0o777); err != nil {
		t.Fatal(err)
	}
	if created, err = r.WriteAtomic("run.sh", []byte("new"), 0o600); err != nil || created {
		t.Fatalf("%t, %v", created, err)
	}
	if info, _ := os.Stat(script); info.Mode().Perm() != 0o777 {
		t.Errorf("mode %s", info.Mode())
	}
	// Through a link, the file behind it is written and the link stays.
	if _, err := r.WriteAtomic("rel", []byte("through"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.WriteAtomic("new", []byte("made"), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"deep/er/new.txt": "one", "run.sh": "new", "a/b/file": "through", "a/not-yet": "made"} {
		if raw, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(raw) != want {
			t.Errorf("%s: %q, %v", file, raw, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "rel")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestWalk(t *testing.T) {
	r, dir := world(t)
	for _, d := range []string{".git", "a/node_modules/x"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, d, "hidden"), "")
	}
	walk := func(ctx context.Context, base string) (all []string, err error) {
		_, err = r.Walk(ctx, base, func(rel string, _ fs.DirEntry) error {
			all = append(all, rel)
			return nil
		})
		return all, err
	}
	got, err := walk(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b/back", "b/file", "up"}, got); diff != "" {
		t.Error(diff)
	}
	if got, err := walk(t.Context(), "a/node_modules"); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := walk(t.Context(), "out"); vakerr.CodeOf(err) != vakerr.PathEscapes {
		t.Errorf("got %v", err)
	}
	if _, err := walk(t.Context(), "none"); vakerr.CodeOf(err) != vakerr.FileNotFound {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := walk(ctx, "."); vakerr.CodeOf(err) != vakerr.Canceled {
		t.Errorf("got %v", err)
	}
}

// Whatever path is asked for, what it resolves to is a clean name below the folder.
func TestResolveProperties(t *testing.T) {
	r, _ := world(t)
	parts := rapid.SampledFrom([]string{"a", "b", "..", ".", "", "out", "rel", "abs", "back", "up", "climb", "ring", "new", "pipe", "x"})
	rapid.Check(t, func(t *rapid.T) {
		p := strings.Join(rapid.SliceOfN(parts, 1, 8).Draw(t, "parts"), "/")
		rel, err := Relative(r.folder, p)
		if err != nil {
			return
		}
		target, err := r.Resolve(rel)
		if err != nil {
			return
		}
		if !filepath.IsLocal(target) || filepath.Clean(target) != target {
			t.Fatalf("%q resolves to %q", p, target)
		}
		if again, err := r.Resolve(target); err != nil || again != target {
			t.Fatalf("%q resolves to %q and that to %q, %v", p, target, again, err)
		}
	})
}
