package pluginstore

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const manifest = `{"name":"kit"}`

// entry is one entry of an archive.
type entry struct {
	name string
	text string
	kind byte // of tar; 0: a file
	link string
}

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, e := range append([]entry{{name: ".claude-plugin/plugin.json", text: manifest}, {name: "skills/a/SKILL.md", text: "---\nname: a\ndescription: A.\n---\nx"}}, entries...) {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644, Size: int64(len(e.text))}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range append([]entry{{name: ".claude-plugin/plugin.json", text: manifest}, {name: "skills/a/SKILL.md", text: "---\nname: a\ndescription: A.\n---\nx"}}, entries...) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(0o644)
		switch e.kind {
		case tar.TypeSymlink:
			h.SetMode(fs.ModeSymlink | 0o777)
		case tar.TypeFifo:
			h.SetMode(fs.ModeNamedPipe | 0o644)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func archiveFile(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kit.archive")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// V195: what an archive must not hold is refused with the entry's name, and nothing of it is left.
func TestHostileArchives(t *testing.T) {
	zeros := strings.Repeat("\x00", 20<<20)
	deep := strings.Repeat("d/", 40) + "x"
	many := make([]entry, 0, 300)
	for i := range 300 {
		many = append(many, entry{name: fmt.Sprintf("f/%d", i)})
	}
	for _, c := range []struct {
		what    string
		entries []entry
		names   string // what the error tells
		zip     bool   // it can be written into a zip, too
	}{
		{"absolute", []entry{{name: "/etc/passwd"}}, "/etc/passwd", true},
		{"dots", []entry{{name: "../evil"}}, "../evil", true},
		{"dots within", []entry{{name: "a/../../evil"}}, "a/../../evil", true},
		{"backslashes", []entry{{name: `..\evil`}}, `evil`, true},
		{"a drive", []entry{{name: "C:/evil"}}, "C:/evil", true},
		{"a control character", []entry{{name: "a\nb"}}, "", true},
		{"a symbolic link", []entry{{name: "l", kind: tar.TypeSymlink, link: "/etc"}}, `"l"`, true},
		{"a hard link", []entry{{name: "h", kind: tar.TypeLink, link: "skills/a/SKILL.md"}}, `"h"`, false},
		{"a pipe", []entry{{name: "p", kind: tar.TypeFifo}}, `"p"`, true},
		{"a device", []entry{{name: "dev", kind: tar.TypeBlock}}, `"dev"`, false},
		{"names that differ by case", []entry{{name: "skills/A/SKILL.md"}}, "by case", true},
		{"a name twice", []entry{{name: "skills/a/SKILL.md", text: "other"}}, "skills/a/SKILL.md", true},
		{"a file as a folder", []entry{{name: "f"}, {name: "f/x"}}, "f/x", true},
		{"too deep", []entry{{name: deep}}, "deeper", true},
		{"too many", many, "more than 200", true},
		{"a bomb", []entry{{name: "zeros", text: zeros}}, "zeros", true},
		{"an offer of its own", []entry{{name: plugin.EntryName, text: "{}"}}, plugin.EntryName, true},
	} {
		kinds := map[string]func(testing.TB, ...entry) []byte{"tar": tarball}
		if c.zip {
			kinds["zip"] = zipped
		}
		for kind, pack := range kinds {
			t.Run(c.what+" in "+kind, func(t *testing.T) {
				s := Open(t.TempDir())
				s.Limits = Limits{Files: 200, Bytes: 64 << 20}
				_, _, err := s.Install(t.Context(), Request{Source: archiveFile(t, pack(t, c.entries...)), Scope: "user"})
				if vakerr.CodeOf(err) != vakerr.PluginUnsafe || !strings.Contains(err.Error(), c.names) {
					t.Fatalf("refused with %v, want the name %s", err, c.names)
				}
				nothingLeft(t, s)
			})
		}
	}
}

func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != lockFile {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// The same for folders: what the file system can hold.
func TestHostileFolders(t *testing.T) {
	for _, c := range []struct {
		what string
		make func(dir string) error
	}{
		{"link", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) }},
		{"folderlink", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "folderlink")) }},
		{"hard", func(dir string) error {
			return os.Link(filepath.Join(dir, "skills/a/SKILL.md"), filepath.Join(dir, "hard"))
		}},
		{"pipe", func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }},
		{"Skills/x", func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "Skills"), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "Skills/x"), nil, 0o600)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := kit(t, "text")
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			s := Open(t.TempDir())
			_, _, err := s.Install(t.Context(), Request{Source: dir, Scope: "user"})
			if vakerr.CodeOf(err) != vakerr.PluginUnsafe {
				t.Fatalf("refused with %v", err)
			}
			nothingLeft(t, s)
		})
	}
}

// V195, V198: a folder, a zip, a tarball and one with the folder of a repository around hold the same plugin, executable
// bits included; the .git of a checkout is no part of it, and its commit is remembered.
func TestOneContentFromEverySource(t *testing.T) {
	dir := t.TempDir()
	dir = filepath.Join(dir, "kit")
	for name, text := range map[string]string{
		".claude-plugin/plugin.json": manifest, "skills/a/SKILL.md": "---\nname: a\ndescription: A.\n---\nx",
		".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": strings.Repeat("ab", 20) + "\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	s := Open(t.TempDir())
	first, _, err := s.Install(t.Context(), Request{Source: dir, Scope: "user"})
	if err != nil {
		t.Fatal(err)
	}
	if first.Source.Commit != strings.Repeat("ab", 20) {
		t.Errorf("the commit is %q", first.Source.Commit)
	}
	for kind, content := range map[string][]byte{"zip": zipped(t), "tar": tarball(t)} {
		r, _, err := s.Install(t.Context(), Request{Source: archiveFile(t, content), Scope: "local"})
		if err != nil || r.Current.Digest != first.Current.Digest {
			t.Errorf("%s: content %.12s, want %.12s, %v", kind, r.Current.Digest, first.Current.Digest, err)
		}
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(zipped(f))
	f.Add(tarball(f))
	f.Add(tarball(f, entry{name: "../x"}, entry{name: "l", kind: tar.TypeSymlink, link: "/"}))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, content []byte) {
		top := t.TempDir()
		inside := filepath.Join(top, "stage")
		if err := os.Mkdir(inside, 0o700); err != nil {
			t.Fatal(err)
		}
		stage, err := newStage(inside, Limits{Files: 64, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer stage.root.Close()
		err = stage.takeArchive(t.Context(), bytes.NewReader(content), int64(len(content)))
		if _, public := err.(*vakerr.Error); err != nil && !public { //nolint:errorlint // it must not be wrapped
			t.Errorf("the error is %v", err)
		}
		entries, _ := os.ReadDir(top)
		if len(entries) != 1 {
			t.Errorf("something was written beside the stage: %v", entries)
		}
		walked := filepath.WalkDir(inside, func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !e.Type().IsRegular() {
				t.Errorf("%s is no regular file", p)
			}
			return err
		})
		if walked != nil {
			t.Error(walked)
		}
	})
}
