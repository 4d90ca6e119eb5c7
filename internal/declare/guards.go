package declare

import (
	"reflect"
	"strconv"

	"github.com/vak-actors/vak-actors/capability"
)

// apart gives a hook whose id another one has an id of its own, unless both would do the same: a hook may be a guard, and no
// file switches off another's by declaring one of the same name. It reports whether it did; everything that is no hook is
// shadowed. same says when two do the same. The id follows from where the hook stands and what it concerns, so that it stays the same.
func apart(d *capability.Declaration, with capability.Declaration, taken map[capability.ID]int, same func(a, b capability.Hook) bool) bool {
	own, ok := d.Config.(*capability.Hook)
	if !ok {
		return false
	}
	if other, ok := with.Config.(*capability.Hook); !ok || same(*own, *other) {
		return false
	}
	id := d.ID
	id.Name += "@" + capability.ContentDigest([]byte(d.Source + "\x00" + own.Match + "\x00" + own.If))[:8]
	for i := 2; ; i++ {
		if _, twice := taken[id]; !twice {
			break
		}
		id.Name += "-" + strconv.Itoa(i)
	}
	d.ID = id
	return true
}

// sameHandler reports whether two hooks of one root are one handler: how long it may take is then said by the first.
func sameHandler(a, b capability.Hook) bool {
	a.Timeout, a.Sequential = b.Timeout, b.Sequential
	return sameHook(a, b)
}

// sameHook reports whether two hooks do the same at the same moments. Between roots all of it counts: a time that is too
// short makes a guard inert.
func sameHook(a, b capability.Hook) bool {
	a.Position, b.Position = 0, 0
	return reflect.DeepEqual(a, b)
}
