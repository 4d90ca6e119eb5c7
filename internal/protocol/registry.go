package protocol

import (
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Revoked is CapabilityRevoked on the control lane: it overtakes whatever its receiver has queued.
type Revoked struct{ *registryv1.CapabilityRevoked }

// ControlMessage implements actorkit.Control.
func (*Revoked) ControlMessage() {}

// Declare carries what one pass of the reconciler read. Sender: the reconciler. Receiver: the registry. Reply:
// DeclareResult. Safe to repeat.
type Declare struct {
	Declarations []capability.Declaration // one an id
	Pins         pins.Settings
	Problems     []capability.Problem
	Shadowed     []capability.Shadow
	Policy       *policy.Current
	Loop         LoopFacts
}

// DeclareResult answers Declare.
type DeclareResult struct {
	Epoch   capability.Epoch
	Changed bool
}

// PassFailed says that a pass could not read the world at all; what was declared stays. Sender: the reconciler.
// Receiver: the registry. No reply.
type PassFailed struct {
	Reason string
	Loop   LoopFacts
}

// LoopFacts is what the reconciler knows of its own passes.
type LoopFacts struct {
	At       time.Time // end of the pass
	Passes   uint64    // since start, this one included
	Watching string    // notify or polling
}

// Observed is what demand taught the pool of a server. Sender: a server actor. Receiver: the registry. No reply. Safe to
// repeat: an equal observation is no news.
type Observed struct {
	Server      string
	Definition  string                  // digest of the configuration that was observed, see ServerDefinition
	Observation *capability.Observation // nil: forget what is known
}

// Settle asks when all that the registry was told before is published. Sender: the pool, before it answers a probe.
// Receiver: the registry. Reply: Settled, or why it cannot be published. Safe to repeat.
type Settle struct{}

// Settled answers Settle.
type Settled struct{ Epoch capability.Epoch }

// Freshen asks that what is on disk now is published, and waits for the pass. Sender: a session that begins a turn.
// Receiver: the reconciler. Reply: *registryv1.ReloadResult, or the error of the pass: then the last good set stays in
// force.
type Freshen struct{}

// Hint asks for a pass soon. Sender: anybody. Receiver: the reconciler. No reply; losing it costs at most one tick.
type Hint struct {
	Reason string // for the log
}
