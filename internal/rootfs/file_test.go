package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("12345"), 0o600), unix.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(file, 5); err != nil || string(text) != "12345" {
		t.Errorf("as many bytes as allowed: %q, %v", text, err)
	}
	for name, most := range map[string]int64{file: 4, pipe: 5, dir: 5} {
		if text, err := ReadFile(name, most); err == nil {
			t.Errorf("%s was read: %q", name, text)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// Whoever holds the old file open keeps reading it: it was replaced, not written over.
func TestReplaceFileSwitches(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	file := filepath.Join(dir, "file")
	if err := ReplaceFile(file, []byte("old")); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if err := ReplaceFile(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 3)
	if _, err := old.Read(held); err != nil || string(held) != "old" {
		t.Errorf("a reader saw %q, %v", held, err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "new" {
		t.Errorf("it holds %q, %v", text, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("drafts stay: %v, %v", entries, err)
	}
	if err := ReplaceFile(dir, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("the draft of a failed write stays: %v", entries)
	}
}
