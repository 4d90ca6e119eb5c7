package protocol

import (
	"sync/atomic"

	"github.com/vak-actors/vak-actors/internal/actorkit"
)

// Address is where a supervised part can be reached now. A part that is started again after a failure is another actor;
// whoever holds its Address always reaches the one that runs. The zero Address leads to nobody.
type Address struct{ ref atomic.Pointer[actorkit.Ref] }

// Ref is the part that runs now; the zero Ref, to which every message is refused, while there is none.
func (a *Address) Ref() actorkit.Ref {
	if r := a.ref.Load(); r != nil {
		return *r
	}
	return actorkit.Ref{}
}

// Set says where the part is now. The part's supervisor alone calls it.
func (a *Address) Set(r actorkit.Ref) { a.ref.Store(&r) }
