package actorkit

import (
	"strconv"
	"sync/atomic"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Ref names one incarnation of one actor. It is a small comparable value; the zero Ref is nobody. A Ref stays valid for
// ever: once its actor is gone it only remembers the name (hazard H15) and every message to it is refused.
type Ref struct{ a *address }

// address is what Refs share. The actor clears cell when it has stopped, which lets go of everything it held.
type address struct {
	cell   atomic.Pointer[cell]
	path   string // "/guardian#1/tenant/default#7"; unique for the life of the System, also the id in protoactor's registry
	nameAt int    // where the name given to Spawn starts in path
}

// newAddress appends the incarnation number, so that no two actors ever share a path (hazards H6, H12).
func newAddress(parent, name string, incarnation uint64) *address {
	path := make([]byte, 0, len(parent)+len(name)+10)
	path = append(path, parent...)
	path = append(path, '/')
	path = append(path, name...)
	path = append(path, '#')
	path = strconv.AppendUint(path, incarnation, 10)
	return &address{path: string(path), nameAt: len(parent) + 1}
}

// name is the name given to Spawn: path without parent and incarnation number.
func (a *address) name() string {
	end := len(a.path) - 1
	for a.path[end] != '#' {
		end--
	}
	return a.path[a.nameAt:end]
}

// Tell queues msg and returns at once. It fails with queue_full when the actor's bounded lane is full, with actor_stopped
// when the actor is stopping or gone, with invalid_request for a nil msg. A nil error means queued, not handled. msg must
// not be changed afterwards. Tell may be called from any goroutine.
func (r Ref) Tell(msg any) error {
	if msg == nil {
		return vakerr.New(vakerr.InvalidRequest, "a nil message cannot be sent to actor %q", r)
	}
	return r.post(msg)
}

func (r Ref) post(msg any) error {
	if r.a == nil {
		return stoppedError(r)
	}
	c := r.a.cell.Load()
	if c == nil {
		return stoppedError(r)
	}
	switch c.box.post(msg, true) {
	case refusedClosed:
		return stoppedError(r)
	case refusedFull:
		c.sys.rejected.Add(1)
		return vakerr.New(vakerr.QueueFull, "the queue of actor %q is full (%d messages)", r, c.box.bound).
			WithRemedy("send less at a time, or try again later")
	case accepted:
	}
	return nil
}

// IsZero reports whether r is nobody.
func (r Ref) IsZero() bool { return r.a == nil }

// Name is the name given to Spawn; empty for the zero Ref.
func (r Ref) Name() string {
	if r.a == nil {
		return ""
	}
	return r.a.name()
}

// String is the path of the actor, unique for the life of its System; "nobody" for the zero Ref.
func (r Ref) String() string {
	if r.a == nil {
		return "nobody"
	}
	return r.a.path
}

func stoppedError(r Ref) *vakerr.Error {
	return vakerr.New(vakerr.ActorStopped, "actor %q is not running", r).
		WithRemedy("look up the part again; it may have been started anew under the same name")
}
