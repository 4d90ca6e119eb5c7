package pluginstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Limits bound what one plugin may hold. The zero value means the defaults.
type Limits struct {
	Files int   // files and folders; default 20,000
	Bytes int64 // of all files, unpacked; default 512 MiB
	Depth int   // folders above a file; default 32
	Ratio int64 // unpacked bytes for each packed one; default 200
}

func (l Limits) orDefaults() Limits {
	if l.Files == 0 {
		l.Files = 20_000
	}
	if l.Bytes == 0 {
		l.Bytes = 512 << 20
	}
	if l.Depth == 0 {
		l.Depth = 32
	}
	if l.Ratio == 0 {
		l.Ratio = 200
	}
	return l
}

// ratioFrom is how many bytes may be unpacked before their ratio to the packed ones counts: a small file of zeros is no bomb.
const ratioFrom = 8 << 20

// Bounds of a path.
const (
	maxPath = 1024 // bytes
	maxName = 255  // bytes
)

// unsafe says which entry of a source is refused and why.
func unsafe(entry, why string) *vakerr.Error {
	if len(entry) > 120 {
		entry = strings.ToValidUTF8(entry[:120], "") + "..."
	}
	return vakerr.New(vakerr.PluginUnsafe, "the entry %q is refused: %s", entry, why).
		WithRemedy("take it out of the plugin; nothing was installed")
}

// checkPath says why a path of an entry is refused; it is relative, with '/', and clean otherwise.
func checkPath(p string, most Limits) error {
	switch {
	case p == "" || strings.ContainsRune(p, 0) || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return unsafe(p, "its name is empty, or holds what is no text")
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\`) || len(p) > 1 && p[1] == ':':
		return unsafe(p, "its path is absolute")
	case strings.Contains(p, `\`):
		return unsafe(p, "its path holds a backslash")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return unsafe(p, "its path holds ..")
	case !fs.ValidPath(p):
		return unsafe(p, "its path is not clean")
	case len(p) > maxPath || slices.ContainsFunc(strings.Split(p, "/"), func(s string) bool { return len(s) > maxName }):
		return unsafe(p, "its name is too long")
	case strings.Count(p, "/") > most.Depth:
		return unsafe(p, fmt.Sprintf("it lies deeper than %d folders", most.Depth))
	}
	return nil
}

// stage is a folder that a plugin is copied into, entry by entry.
type stage struct {
	root    *os.Root
	most    Limits
	entries int
	bytes   int64
	packed  func() int64      // bytes of the archive that were read; nil: it is no archive
	folded  map[string]string // paths by their spelling without case
	kinds   map[string]bool   // paths; true: a folder
}

func newStage(folder string, most Limits) (*stage, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, storeError("the folder for staging cannot be opened", err)
	}
	return &stage{root: root, most: most.orDefaults(), folded: map[string]string{}, kinds: map[string]bool{}}, nil
}

// claim notes an entry, and refuses what cannot lie beside the others.
func (s *stage) claim(p string, folder bool) error {
	if err := checkPath(p, s.most); err != nil {
		return err
	}
	for parent := path.Dir(p); parent != "."; parent = path.Dir(parent) {
		if isFolder, known := s.kinds[parent]; known && !isFolder {
			return unsafe(p, "it lies below a file")
		} else if known {
			break
		}
		if err := s.note(parent, true); err != nil {
			return err
		}
	}
	if isFolder, known := s.kinds[p]; known {
		if folder && isFolder {
			return nil
		}
		return unsafe(p, "there are two of that name")
	}
	return s.note(p, folder)
}

func (s *stage) note(p string, folder bool) error {
	folded := strings.ToLower(p)
	if other, taken := s.folded[folded]; taken && other != p {
		return unsafe(p, fmt.Sprintf("its name differs from %q by case alone", other))
	}
	if s.entries++; s.entries > s.most.Files {
		return unsafe(p, fmt.Sprintf("there are more than %d files and folders", s.most.Files))
	}
	s.folded[folded], s.kinds[p] = p, folder
	return nil
}

// addFolder makes a folder, which may be there.
func (s *stage) addFolder(p string) error {
	if err := s.claim(p, true); err != nil {
		return err
	}
	if err := s.root.MkdirAll(p, 0o755); err != nil {
		return storeError("a folder cannot be made", err)
	}
	return nil
}

// addFile copies one file.
func (s *stage) addFile(p string, executable bool, content io.Reader) error {
	if err := s.claim(p, false); err != nil {
		return err
	}
	if dir := path.Dir(p); dir != "." {
		if err := s.root.MkdirAll(dir, 0o755); err != nil {
			return storeError("a folder cannot be made", err)
		}
	}
	mode := fs.FileMode(0o444)
	if executable {
		mode = 0o555
	}
	f, err := s.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return storeError("a file cannot be written", err)
	}
	_, err = io.Copy(f, &bounded{stage: s, from: content, entry: p})
	if err == nil {
		err = f.Chmod(mode)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if _, refused := errors.AsType[*vakerr.Error](err); err != nil && !refused {
		return vakerr.New(vakerr.PluginUnsafe, "the entry %q cannot be copied", p).WithRemedy("see that the source is whole and the disk has room").WithCause(err)
	}
	return err
}

// bounded reads an entry and counts. An archive's own word on sizes is not asked.
type bounded struct {
	stage *stage
	from  io.Reader
	entry string
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	s := b.stage
	s.bytes += int64(n)
	if s.bytes > s.most.Bytes {
		return n, unsafe(b.entry, fmt.Sprintf("the files hold more than %d bytes", s.most.Bytes))
	}
	if s.packed != nil && s.bytes > ratioFrom && s.bytes > s.most.Ratio*max(1, s.packed()) {
		return n, unsafe(b.entry, fmt.Sprintf("it is packed more than %d to 1", s.most.Ratio))
	}
	return n, err
}

// digestTree is the digest of a folder's content: paths, whether they are executable, and what they hold. Whatever else a
// folder has (times, owners, empty folders) is no part of it. Links and special files are an error.
func digestTree(fsys fs.FS, most Limits) (string, error) {
	most = most.orDefaults()
	sum := sha256.New()
	files, size := 0, int64(0)
	err := fs.WalkDir(fsys, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", p)
		}
		files++
		if size += info.Size(); files > most.Files || size > most.Bytes {
			return fmt.Errorf("the folder holds too much")
		}
		return digestFile(sum, fsys, p, info.Mode())
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func digestFile(into hash.Hash, fsys fs.FS, p string, mode fs.FileMode) error {
	f, err := fsys.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	one := sha256.New()
	if _, err := io.Copy(one, f); err != nil {
		return err
	}
	fmt.Fprintf(into, "%q %t %x\n", p, mode&0o111 != 0, one.Sum(nil))
	return nil
}

// storeError gives an error of the store's own files a public face.
func storeError(what string, err error) *vakerr.Error {
	return vakerr.New(vakerr.PluginStoreFailed, "the plugin store does not work: %s", what).
		WithRemedy("see that the data folder is writable for this user and the disk has room").WithCause(err)
}
