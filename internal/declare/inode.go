package declare

import (
	"io/fs"
	"reflect"
)

// inode tells a file that was put in another's place from that one; 0 where the file system has none. It looks for the
// field that every Unix stat structure has, because a package that knows no operating system cannot name the structure.
func inode(info fs.FileInfo) uint64 {
	v := reflect.Indirect(reflect.ValueOf(info.Sys()))
	if v.Kind() != reflect.Struct {
		return 0
	}
	if n := v.FieldByName("Ino"); n.IsValid() && n.CanUint() {
		return n.Uint()
	}
	return 0
}
