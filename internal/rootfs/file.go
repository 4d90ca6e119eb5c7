package rootfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// ReadFile reads a file that this program or its user owns, wherever it lies: a regular one of at most so many bytes.
// It waits for no pipe. A missing file is fs.ErrNotExist. Files that a model names are read through a Root instead.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("the file has more than %d bytes", most)
	}
	return text, err
}

// ReplaceFile is WriteAtomic for a file of this program, which only its owner reads, by its absolute path. Once it has
// returned a crash loses nothing.
func ReplaceFile(name string, data []byte) error {
	folder := filepath.Dir(name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	root, err := Open(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.WriteAtomic(filepath.Base(name), data, 0o600); err != nil {
		return err
	}
	return SyncFolder(folder)
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
