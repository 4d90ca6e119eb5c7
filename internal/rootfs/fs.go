package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// FS is the folder as a file system for readers. Links are followed as everywhere here: one with an absolute target in
// the folder is followed, too, which os.Root alone refuses. folder is the absolute path of root.
func FS(folder string, root *os.Root) fs.FS {
	return linkedFS{&Root{folder, root}, root.FS()}
}

// linkedFS asks the root first, and follows links by names only where that refuses: nearly no path has such a link.
type linkedFS struct {
	*Root
	fs.FS
}

var (
	_ fs.StatFS     = linkedFS{}
	_ fs.ReadLinkFS = linkedFS{}
)

// Open implements fs.FS.
func (f linkedFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if target, moved := f.elsewhere(name, err); moved {
		return f.FS.Open(target)
	}
	return file, err
}

// Stat implements fs.StatFS.
func (f linkedFS) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(f.FS, name)
	if target, moved := f.elsewhere(name, err); moved {
		return fs.Stat(f.FS, target)
	}
	return info, err
}

// Lstat implements fs.ReadLinkFS.
func (f linkedFS) Lstat(name string) (fs.FileInfo, error) {
	info, err := fs.Lstat(f.FS, name)
	if target, moved := f.elsewhere(path.Dir(name), err); moved {
		return fs.Lstat(f.FS, path.Join(target, path.Base(name)))
	}
	return info, err
}

// ReadLink implements fs.ReadLinkFS. A target in the folder is told relative to the link.
func (f linkedFS) ReadLink(name string) (string, error) {
	target, err := fs.ReadLink(f.FS, name)
	if dir, moved := f.elsewhere(path.Dir(name), err); moved {
		name = path.Join(dir, path.Base(name))
		target, err = fs.ReadLink(f.FS, name)
	}
	if err != nil || !path.IsAbs(target) {
		return target, err
	}
	inside, outside := Relative(f.folder, target)
	if outside != nil {
		return target, nil
	}
	relative, err := filepath.Rel(filepath.FromSlash(path.Dir(name)), filepath.FromSlash(inside))
	return filepath.ToSlash(relative), err
}

// elsewhere is where a path that could not be opened really leads, if that is another name in the folder.
func (f linkedFS) elsewhere(name string, err error) (string, bool) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || !fs.ValidPath(name) {
		return "", false
	}
	target, failed := f.Resolve(name)
	return target, failed == nil && target != name
}
