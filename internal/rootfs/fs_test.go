package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Links that stay in the folder are followed, relative or not, in any part of a path; those that leave it are not.
func TestFSFollowsLinks(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "home")
	for _, name := range []string{"home/dot/skills/a/x.md", "outside/x.md"} {
		at := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		".claude": filepath.Join(dir, "dot"), "file.md": filepath.Join(dir, "dot/skills/a/x.md"), "rel": "dot/skills",
		"out": filepath.Join(top, "outside"), "up": "../outside", "dot/skills/b": filepath.Join(dir, "dot/skills/a"), "round": filepath.Join(dir, "round"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	fsys := FS(dir, root)
	for _, name := range []string{"file.md", ".claude/skills/a/x.md", ".claude/skills/b/x.md", "rel/a/x.md", "dot/skills/b/x.md"} {
		if text, err := fs.ReadFile(fsys, name); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if info, err := fs.Stat(fsys, name); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if list, err := fs.ReadDir(fsys, ".claude/skills"); err != nil || len(list) != 2 {
		t.Errorf("listed %v, %v", list, err)
	}
	for _, name := range []string{"out/x.md", "up/x.md", "round", "none", "out"} {
		if _, err := fs.ReadFile(fsys, name); err == nil {
			t.Errorf("%s is read", name)
		}
		if _, err := fs.Stat(fsys, name); err == nil {
			t.Errorf("%s is seen", name)
		}
	}
	for link, want := range map[string]string{".claude": "dot", ".claude/skills/b": "a", "out": filepath.Join(top, "outside"), "up": "../outside"} {
		if got, err := fs.ReadLink(fsys, link); err != nil || got != want {
			t.Errorf("%s leads to %q, %v; want %q", link, got, err, want)
		}
		if info, err := fs.Lstat(fsys, link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is %v, %v", link, info, err)
		}
	}
}
