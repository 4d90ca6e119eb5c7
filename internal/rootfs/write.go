package rootfs

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
)

// WriteAtomic puts data into the file at rel, making its folders, in one step: a reader sees the old content or the new
// one. A file that is there keeps its permissions, a new one gets perm. It reports whether the file is new.
func (r *Root) WriteAtomic(rel string, data []byte, perm fs.FileMode) (created bool, err error) {
	target, err := r.Resolve(rel)
	if err != nil {
		return false, err
	}
	info, err := r.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		created = true
	case err != nil:
		return false, failure(rel, err)
	case !info.Mode().IsRegular():
		return false, failure(rel, errNotRegular)
	default:
		perm = info.Mode().Perm()
	}
	if err := r.root.MkdirAll(path.Dir(target), 0o755); err != nil {
		return false, failure(rel, err)
	}
	temporary := path.Join(path.Dir(target), "."+rand.Text()+".tmp")
	if err := r.writeNew(temporary, data, perm, created); err != nil {
		_ = r.root.Remove(temporary)
		return false, failure(rel, err)
	}
	if err := r.root.Rename(temporary, target); err != nil {
		_ = r.root.Remove(temporary)
		return false, failure(rel, err)
	}
	return created, nil
}

func (r *Root) writeNew(name string, data []byte, perm fs.FileMode, umask bool) error {
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if !umask { // a file that is replaced has the permissions it was given, whatever this process's umask is
		err = errors.Join(err, f.Chmod(perm))
	}
	// A rename that no sync precedes may survive a crash without the data.
	return errors.Join(err, f.Sync(), f.Close())
}
