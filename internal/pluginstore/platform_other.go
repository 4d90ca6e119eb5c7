//go:build !linux

package pluginstore

import (
	"io/fs"
	"reflect"
)

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if n := stat(info, "Nlink"); n.IsValid() && n.CanUint() {
		return n.Uint()
	}
	return 1
}

// changed is when a file last changed, in ns, and its inode.
func changed(info fs.FileInfo) (at int64, inode uint64) {
	if n := stat(info, "Ino"); n.IsValid() && n.CanUint() {
		inode = n.Uint()
	}
	return info.ModTime().UnixNano(), inode
}

func stat(info fs.FileInfo, field string) reflect.Value {
	v := reflect.Indirect(reflect.ValueOf(info.Sys()))
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(field)
}
