// Package pluginstore keeps the installed plugins of one tenant in a folder:
//
//	<digest>/                    content, never changed; named by what it holds
//	installed/<scope>/<id>.json  a plugin.Record: which content counts, and the operator's word; switched by a rename
//	state/<scope>/<id>/          where the programs of a plugin may keep things
//	staging/                     what is being installed; emptied by the next who installs
//	lock                         held by whoever changes something
//
// Installing copies and checks files; it runs nothing of them and follows no link. What a content is worth is decided by its
// digest each time it is used, so a copy that a crash or a hand has damaged is refused, and installing it again repairs it;
// for that reason only records are forced to the disk.
//
// Several processes may use one folder: readers need no lock, because a record is there as a whole or not at all. A Store
// starts no goroutine and may be used by several.
package pluginstore
