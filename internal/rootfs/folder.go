package rootfs

import (
	"io/fs"
	"time"
)

// Files lists the regular files directly in a folder, in order of names.
func (r *Root) Files(folder string) ([]fs.FileInfo, error) {
	target, err := r.Resolve(folder)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(r.root.FS(), target)
	if err != nil {
		return nil, failure(folder, err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		// One that is gone by now is no file of the folder any more.
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	return files, nil
}

// SetTime sets the time of a file's last change.
func (r *Root) SetTime(rel string, t time.Time) error {
	target, err := r.Resolve(rel)
	if err != nil {
		return err
	}
	if err := r.root.Chtimes(target, t, t); err != nil {
		return failure(rel, err)
	}
	return nil
}

// Remove deletes a file. A link is removed itself, not what it leads to.
func (r *Root) Remove(rel string) error {
	if err := r.root.Remove(rel); err != nil {
		return failure(rel, err)
	}
	return nil
}
