package declare

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// settleTime is how old a change must be, when it is read, to count as the last one of its moment: file systems stamp
// times in grains, and a second change within a grain would not show.
const settleTime = 2 * time.Second

// maxEntries bounds how many names of one folder are looked at.
const maxEntries = 100_000

// tree is a workspace with a memory: what was read of a file or folder is kept until its stamp changes.
type tree struct {
	fsys     fs.FS
	stamp    func(*product)         // completes a product before it is kept
	governs  func(name string) bool // what a file of that name says may restrict calls
	now      time.Time
	pass     uint64
	files    map[string]*file
	folders  map[string]*folder
	moved    bool // a folder was listed differently in this pass
	maxFile  int
	maxTotal int
	total    int // bytes of the files visited in this pass
}

// stamp is what tells two states of a file apart without reading it.
type stamp struct {
	size  int64
	mtime int64 // ns
	inode uint64
	mode  fs.FileMode
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{info.Size(), info.ModTime().UnixNano(), inode(info), info.Mode()}
}

// settled reports whether a state read now will show every later change in its stamp. A file system that keeps no times
// shows none.
func (t *tree) settled(info fs.FileInfo) bool {
	return !info.ModTime().IsZero() && t.now.Sub(info.ModTime()) >= settleTime
}

type file struct {
	stamp   stamp
	settled bool
	sum     [sha256.Size]byte
	product *product
	pass    uint64
}

type folder struct {
	stamp   stamp
	settled bool
	entries []node // sorted by name
	problem *fault
	pass    uint64
}

// node is one name in a folder.
type node struct {
	name string
	path string
	doc  string // path of the SKILL.md it would hold
	kind fs.FileMode
}

func (n node) isLink() bool { return n.kind&fs.ModeSymlink != 0 }

// begin opens a pass.
func (t *tree) begin(fsys fs.FS, now time.Time) {
	t.fsys, t.now, t.moved, t.total = fsys, now, false, 0
	t.pass++
	if t.files == nil {
		t.files, t.folders = map[string]*file{}, map[string]*folder{}
	}
}

// end forgets what the pass did not meet.
func (t *tree) end() {
	for name, f := range t.files {
		if f.pass != t.pass {
			delete(t.files, name)
		}
	}
	for name, f := range t.folders {
		if f.pass != t.pass {
			delete(t.folders, name)
			t.moved = true
		}
	}
}

// list returns the names in a folder, links included; false when there is no such folder.
func (t *tree) list(name string) (*folder, bool) {
	known := t.folders[name]
	info, err := fs.Stat(t.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.isLink(name), err == nil && !info.IsDir():
		return nil, false
	case err != nil:
		return t.remember(name, known, t.unreadable(name, known, err)), true
	}
	s := stampOf(info)
	if known != nil && known.problem == nil && known.stamp == s && known.settled {
		known.pass = t.pass
		return known, true
	}
	entries, err := t.readDir(name)
	if err != nil {
		return t.remember(name, known, t.unreadable(name, known, err)), true
	}
	return t.remember(name, known, &folder{stamp: s, settled: t.settled(info), entries: entries}), true
}

// isLink reports whether name itself is a link.
func (t *tree) isLink(name string) bool {
	info, err := fs.Lstat(t.fsys, name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// isFolder reports whether name is a folder, or a link that leads to one.
func (t *tree) isFolder(name string) bool {
	info, err := fs.Stat(t.fsys, name)
	return err == nil && info.IsDir()
}

// remember stores a listing and notes whether it says something new.
func (t *tree) remember(name string, known, f *folder) *folder {
	f.pass = t.pass
	if known == nil || !slices.Equal(known.entries, f.entries) {
		t.moved = true
	}
	t.folders[name] = f
	return f
}

// unreadable is the listing of a folder that cannot be read. What was listed before stays, unless somebody took the
// permission away: a disk that fails for a moment must not retire what lies on it.
func (t *tree) unreadable(name string, known *folder, err error) *folder {
	f := &folder{problem: accessFault(t.fsys, name, "folder", err)}
	if known != nil && f.problem.code == "file_unreadable" && !errors.Is(err, fs.ErrPermission) {
		f.entries = known.entries
	}
	return f
}

// accessFault says why name cannot be opened.
func accessFault(fsys fs.FS, name, what string, err error) *fault {
	if _, f := realPath(fsys, name); f != nil {
		return f
	}
	reason, hint := "it cannot be read", "look at the disk"
	if errors.Is(err, fs.ErrPermission) {
		reason, hint = "permission denied", "make it readable for the user of this program"
	}
	return &fault{code: "file_unreadable", message: fmt.Sprintf("the %s cannot be opened: %s", what, reason), hint: hint}
}

func (t *tree) readDir(name string) ([]node, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("not a folder")
	}
	found, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	nodes := make([]node, 0, len(found))
	for _, e := range found {
		at := e.Name()
		if name != "." {
			at = name + "/" + at
		}
		nodes = append(nodes, node{e.Name(), at, at + "/SKILL.md", e.Type()})
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	return nodes, nil
}

// read returns what a file contributes, parsing it only when it changed; nil when there is no such file.
func (t *tree) read(name string, parse func(name string, text []byte) *product) *product {
	known := t.files[name]
	info, err := fs.Stat(t.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !t.isLink(name):
		return nil
	case err != nil:
		return t.unread(name, known, err)
	case !info.Mode().IsRegular():
		return t.refuse(name, known, &fault{code: "file_not_regular", message: "this is no regular file", hint: "put a file of text in its place"})
	}
	s := stampOf(info)
	if t.total += int(min(s.size, int64(t.maxFile))); t.total > t.maxTotal {
		return t.refuse(name, known, &fault{
			code: "too_many_bytes", message: fmt.Sprintf("the files of this workspace hold more than %d bytes; this one and later ones are skipped", t.maxTotal),
			hint: "remove what is not needed, or raise max_total_bytes in [limits]",
		})
	}
	if known != nil && known.stamp == s && known.settled {
		known.pass = t.pass
		return known.product
	}
	text, err := t.load(name)
	if err != nil {
		return t.unread(name, known, err)
	}
	if len(text) > t.maxFile {
		return t.refuse(name, known, t.tooLarge(text))
	}
	sum := sha256.Sum256(text)
	if known == nil || known.sum != sum || known.stamp.size < 0 {
		p := bounded(name, parse(name, text))
		t.stamp(p)
		if known != nil {
			p = p.after(known.product)
		}
		known = &file{sum: sum, product: p}
	}
	known.stamp, known.settled, known.pass = s, t.settled(info), t.pass
	t.files[name] = known
	return known.product
}

// document is read for a file that is one skill or command: of that id, if it cannot say so itself.
func (t *tree) document(name string, id capability.ID, parse func(name string, text []byte) *product) *product {
	return t.read(name, func(name string, text []byte) *product {
		p := parse(name, text)
		p.document = true
		for i := range p.problems {
			if len(p.declarations) == 0 && p.problems[i].Severity == capability.SeverityError {
				p.problems[i].Declares = id
			}
		}
		return p
	})
}

// load reads a file up to one byte beyond the bound.
func (t *tree) load(name string) ([]byte, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(io.LimitReader(f, int64(t.maxFile)+1)); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// tooLarge says what about a file is too large.
func (t *tree) tooLarge(head []byte) *fault {
	if text, f := normalise(bytes.ToValidUTF8(head, nil)); f == nil {
		if _, f = split(text); f != nil && f.code == "frontmatter_too_large" {
			return f
		}
	}
	return &fault{
		code: "file_too_large", message: fmt.Sprintf("the file is larger than %d bytes", t.maxFile),
		hint: "shorten it, or raise max_file_bytes in [limits]",
	}
}

// unread is a file that cannot be read now. A version that was read before stays in force with the problem beside it,
// unless somebody took the permission, or the file behind a link, away.
func (t *tree) unread(name string, known *file, err error) *product {
	f := accessFault(t.fsys, name, "file", err)
	if known == nil || f.code != "file_unreadable" || errors.Is(err, fs.ErrPermission) || known.product.declarations == nil {
		return t.refuse(name, known, f)
	}
	kept := *known.product
	now := t.faulty(name, f)
	kept.problems = slices.DeleteFunc(slices.Clone(kept.problems), func(p capability.Problem) bool { return p.Code == f.code })
	kept.problems = append(kept.problems, now.problems...)
	return t.keep(name, known, &kept)
}

// refuse is a file that contributes nothing but a problem. It is broken: what depends on it as a whole keeps an earlier
// version.
func (t *tree) refuse(name string, known *file, f *fault) *product {
	return t.keep(name, known, t.faulty(name, f))
}

// faulty is a product of one problem. Nobody can say what a file that governs was meant to stop: it stops everything.
func (t *tree) faulty(name string, f *fault) *product {
	r := reporter{path: name}
	governs := t.governs(name)
	if governs {
		closed := *f
		closed.hint += "; until then every call is denied, unless an earlier version was read"
		f = &closed
	}
	r.fault(f)
	p := r.failed()
	p.broken = true
	if governs {
		p.permissions = []policy.PermissionRules{denyAll(name)}
	}
	t.stamp(p)
	return p
}

// keep stores a product that has no stamp. The product of the last pass is returned when it says the same, so that a
// lasting fault is no news.
func (t *tree) keep(name string, known *file, p *product) *product {
	if known != nil && known.stamp.size < 0 && slices.Equal(known.product.problems, p.problems) {
		known.pass = t.pass
		return known.product
	}
	t.files[name] = &file{stamp: stamp{size: -1}, product: p, pass: t.pass}
	return p
}

// holds returns the entry of that name, if the folder has one.
func (f *folder) holds(name string) (node, bool) {
	i, found := slices.BinarySearchFunc(f.entries, name, func(n node, s string) int { return cmp.Compare(n.name, s) })
	if !found {
		return node{}, false
	}
	return f.entries[i], true
}

// resembling returns the entry whose name differs from name by case alone.
func (f *folder) resembling(name string) (node, bool) {
	i := slices.IndexFunc(f.entries, func(n node) bool { return strings.EqualFold(n.name, name) })
	if i < 0 {
		return node{}, false
	}
	return f.entries[i], true
}
