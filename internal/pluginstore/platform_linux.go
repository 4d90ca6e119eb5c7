package pluginstore

import (
	"io/fs"
	"syscall"
)

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // its type differs between architectures
	}
	return 1
}

// changed is when a file's content, mode or name last changed, in ns: nobody can set that time.
func changed(info fs.FileInfo) (at int64, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ctim.Nano(), s.Ino
	}
	return info.ModTime().UnixNano(), 0
}
