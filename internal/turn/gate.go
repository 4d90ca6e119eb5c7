package turn

import (
	"sync"
	"sync/atomic"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// View is what the registry last published: the current set, the revocations and the policy in force, and what recent
// publications changed. It is never changed.
type View struct {
	Snapshot capability.Snapshot
	Revoked  capability.Revocations
	Policy   *policy.Current
	History  *capability.History

	// Broken are skills and commands that no file declares because it cannot be read, with what is wrong. Nothing can be
	// done with them; whoever asks for one is told.
	Broken map[capability.ID]capability.Problem

	// Pins say which version of a server's tool is in force, for whoever asks the server itself.
	Pins *pins.Guard
}

const gateShards = 64 // a power of two: Enter masks with it

// Gate stands before every dispatch. Its promise: when Publish has returned, no dispatch that enters afterwards sees an
// older view, and none that entered before is still between its check and its commit.
//
// A plain atomic pointer cannot promise the second half: a dispatcher could read the old view, lose the processor, and
// start its effect long after the revocation was acknowledged. So a dispatcher holds the read side of one shard over
// check and commit, and Publish passes through the write side of every shard. Shards keep dispatchers of different
// sessions off one cache line.
type Gate struct {
	view   atomic.Pointer[View]
	shards [gateShards]shard
}

type shard struct {
	mu sync.RWMutex
	_  [40]byte // with the mutex (24 bytes) one cache line of 64
}

// NewGate returns a gate that shows initial.
func NewGate(initial View) *Gate {
	g := &Gate{}
	g.view.Store(&initial)
	return g
}

// View returns the current view. It never waits. To act on it, Enter.
func (g *Gate) View() *View { return g.view.Load() }

// Publish makes v the view and returns when every dispatch that may have checked an older one has committed or given
// up. Only the registry actor calls it, so that views appear in its order; it waits at most as long as a dispatcher
// stays between Enter and Leave.
func (g *Gate) Publish(v View) {
	g.view.Store(&v)
	for i := range g.shards {
		g.shards[i].await()
	}
}

// await returns when every dispatch that was inside has left.
func (s *shard) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// Enter opens the critical section of one dispatch. Any number works as shard; a session always uses its own. Hold the
// Pass only for the check and the commit to dispatch (handing the call over), never over the effect, a wait or a send
// that can block, and never Enter twice in one goroutine: a Publish between the two would wait for ever.
func (g *Gate) Enter(shard uint32) Pass {
	s := &g.shards[shard&(gateShards-1)]
	s.mu.RLock()
	return Pass{view: g.view.Load(), shard: s}
}

// Pass is one dispatcher inside the gate.
type Pass struct {
	view  *View
	shard *shard
}

// View is the view in force for this dispatch.
func (p Pass) View() *View { return p.view }

// Revoked reports whether id is revoked, with the operator's reason.
func (p Pass) Revoked(id capability.ID) (reason string, revoked bool) {
	reason, revoked = p.view.Revoked[id]
	return reason, revoked
}

// Refuse returns the error of the first revoked id, or nil when none is. It allocates only when it refuses.
func (p Pass) Refuse(ids []capability.ID) *vakerr.Error {
	for _, id := range ids {
		if reason, revoked := p.view.Revoked[id]; revoked {
			return revokedError(id, reason)
		}
	}
	return nil
}

// Withdrawn returns the error of the first id that a plugin declared in the bound set and that the plugin does not declare
// any more, or nil when there is none. Disabling a plugin revokes what it brought, in open turns, too.
func (p Pass) Withdrawn(bound *capability.Set, ids []capability.ID) *vakerr.Error {
	for _, id := range ids {
		if c, known := bound.Get(id); known && p.view.Withdrawn(c) {
			return vakerr.New(vakerr.CapabilityRevoked, "%s is withdrawn: its plugin %s was disabled, changed or removed", id, c.Origin.Plugin).
				WithRemedy("do without it; an operator can enable the plugin with: vak-actors plugin enable %s", c.Origin.Plugin)
		}
	}
	return nil
}

// Withdrawn reports whether c came from a plugin that does not declare it in this view.
func (v *View) Withdrawn(c *capability.Capability) bool {
	if c.Origin.Kind != capability.OriginPlugin {
		return false
	}
	now, declared := v.Snapshot.Set.Get(c.ID)
	return !declared || now.Origin.Kind != capability.OriginPlugin || now.Origin.Plugin != c.Origin.Plugin
}

// Leave ends the critical section. A Pass is left exactly once.
func (p Pass) Leave() { p.shard.mu.RUnlock() }

func revokedError(id capability.ID, reason string) *vakerr.Error {
	return vakerr.New(vakerr.CapabilityRevoked, "%s was revoked: %s", id, reason).
		WithRemedy("do without it; an operator can undo it with: vak-actors restore %s", id)
}
