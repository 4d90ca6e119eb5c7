// Package rootfs gives access to the files of one folder and to nothing outside it, for tools that a model aims.
//
// Every path is resolved through its links by names first and then opened relative to the folder's own descriptor
// (os.Root), so neither "..", nor a link, nor one that is swapped in between leads out. A link whose target lies in the
// folder is followed. Only regular files are opened, without waiting for whoever feeds a pipe. Writes replace a file in one
// step or not at all.
//
// A Root is opened for one call and closed by it: the folder may be moved or made anew between calls. Errors are
// *vakerr.Error and name the path as it was asked for.
//
// ReadFile and ReplaceFile are for single files that no model names: records and settings of this program and its user.
package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Root is one open folder. It belongs to one goroutine.
type Root struct {
	folder string // absolute
	root   *os.Root
}

// Open opens a folder, given by its absolute path.
func Open(folder string) (*Root, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace cannot be opened").
			WithRemedy("check that the folder is there and may be read").WithCause(err)
	}
	return &Root{folder, root}, nil
}

// Close releases the folder.
func (r *Root) Close() { _ = r.root.Close() }

// Relative is the clean path, relative to folder and with '/', of a path that may also be absolute. It looks at names
// only. The error is vakerr.PathEscapes, or InvalidArguments for no path at all.
func Relative(folder, p string) (string, error) {
	if p == "" || strings.ContainsRune(p, 0) {
		return "", vakerr.New(vakerr.InvalidArguments, "the path is empty or holds a zero byte").WithRemedy("name a file of the workspace")
	}
	clean := path.Clean(filepath.ToSlash(p))
	if path.IsAbs(clean) {
		rel, err := filepath.Rel(folder, clean)
		if err != nil {
			return "", escapes(p)
		}
		clean = filepath.ToSlash(rel)
	}
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", escapes(p)
	}
	return clean, nil
}

func escapes(p string) error {
	return vakerr.New(vakerr.PathEscapes, "%q lies outside the workspace", phrase.Cut(p, maxShown)).
		WithRemedy("name a path in the workspace, relative to it")
}

const (
	maxLinks = 40
	maxShown = 200 // bytes of a path in an error
)

// Resolve returns where a relative path really leads, with every link in it followed; what does not exist yet is taken as
// written.
func (r *Root) Resolve(rel string) (string, error) {
	todo, done, links := strings.Split(rel, "/"), ".", 0
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if next == "." || next == "" {
			continue
		}
		if next == ".." {
			if done == "." {
				return "", escapes(rel)
			}
			done = path.Dir(done)
			continue
		}
		here := path.Join(done, next)
		info, err := r.root.Lstat(here)
		if errors.Is(err, fs.ErrNotExist) {
			return Relative(r.folder, path.Join(append([]string{here}, todo...)...))
		}
		if err != nil {
			return "", failure(rel, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = here
			continue
		}
		if links++; links > maxLinks {
			return "", failure(rel, syscall.ELOOP)
		}
		target, err := r.root.Readlink(here)
		if err != nil {
			return "", failure(rel, err)
		}
		if path.IsAbs(target) {
			if target, err = Relative(r.folder, target); err != nil {
				return "", escapes(rel)
			}
			done = "."
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return done, nil
}

// OpenRegular opens a regular file for reading. The caller closes it.
func (r *Root) OpenRegular(rel string) (*os.File, fs.FileInfo, error) {
	target, err := r.Resolve(rel)
	if err != nil {
		return nil, nil, err
	}
	f, err := r.root.OpenFile(target, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, failure(rel, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = syscall.EISDIR
	case !info.Mode().IsRegular():
		err = errNotRegular
	default:
		return f, info, nil
	}
	_ = f.Close()
	return nil, nil, failure(rel, err)
}

// IsFolder reports whether a relative path leads to a folder.
func (r *Root) IsFolder(rel string) (bool, error) {
	target, err := r.Resolve(rel)
	if err != nil {
		return false, err
	}
	info, err := r.root.Stat(target)
	if err != nil {
		return false, failure(rel, err)
	}
	return info.IsDir(), nil
}

var errNotRegular = errors.New("not a regular file")

// failure is what a system's error means to whoever named the path.
func failure(p string, err error) error {
	p = phrase.Cut(p, maxShown)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return vakerr.New(vakerr.FileNotFound, "there is no %q in the workspace", p).
			WithRemedy("look for the file with glob").WithCause(err)
	case errors.Is(err, fs.ErrPermission):
		return vakerr.New(vakerr.PermissionDenied, "the system denies access to %q", p).WithCause(err).
			WithRemedy("an operator must change the file's permissions")
	case errors.Is(err, syscall.EISDIR):
		return vakerr.New(vakerr.InvalidArguments, "%q is a folder", p).WithRemedy("list it with glob, or name a file in it")
	case errors.Is(err, errNotRegular):
		return vakerr.New(vakerr.InvalidArguments, "%q is no regular file", p).WithRemedy("name a regular file")
	case errors.Is(err, syscall.ELOOP):
		return vakerr.New(vakerr.PathEscapes, "%q leads through too many links", p).WithRemedy("name the file itself")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return vakerr.New(vakerr.InvalidArguments, "the path %q is too long", p).WithRemedy("name a shorter path")
	}
	return vakerr.New(vakerr.WorkspaceUnreadable, "the system cannot read or write %q", p).
		WithRemedy("look for the cause in the daemon's log").WithCause(err)
}
