package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Names within a data folder.
const (
	lockName     = "lock"
	databaseName = "ledger.db"
)

// lockFolder creates the folder where it is missing and takes its lock, which lasts until the returned file is closed or
// the process ends. Children do not inherit it. It returns data_folder_locked while another process, or another store of
// this one, holds it.
func lockFolder(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, folderError(folder, err)
	}
	file, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, folderError(folder, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = lockedError(folder, file)
	} else if err == nil {
		err = writeOwner(file)
	}
	if err != nil {
		file.Close()
		return nil, folderError(folder, err)
	}
	return file, nil
}

// writeOwner leaves this process's id in the lock file, for the error of the next one.
func writeOwner(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func lockedError(folder string, file *os.File) error {
	owner := "another process"
	text, _ := io.ReadAll(io.LimitReader(file, 32))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		owner = fmt.Sprintf("process %d", pid)
	}
	return vakerr.New(vakerr.DataFolderLocked, "the data folder %s is in use by %s", folder, owner).
		WithRemedy("stop that daemon, or name another data folder")
}

// folderError gives an error of the file system a public face; a typed one passes.
func folderError(folder string, err error) error {
	if typed, ok := errors.AsType[*vakerr.Error](err); ok {
		return typed
	}
	reason := "it cannot be used"
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		reason = "it is not writable"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		reason = "the disk is full"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, fs.ErrExist):
		reason = "it is not a folder"
	}
	return vakerr.New(vakerr.LedgerUnavailable, "the data folder %s: %s", folder, reason).
		WithRemedy("make the folder writable for this user, or name another one").WithCause(err)
}
