package hook

import (
	"encoding/json"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Decision is what the hooks of one event came to. The zero value is the decision of no hook.
type Decision struct {
	Block     *vakerr.Error   // nil: go on; else HookBlocked by a hook's opinion, HookFailed by its failure
	Hook      capability.ID   // which hook blocked
	Input     json.RawMessage // the tool's input after all rewrites; nil: no hook rewrote it
	Rewriters []string        // the hooks that rewrote it, in order
}

// Apply adds the outcome of the next hook. It reports whether the others are to be asked: not after a block.
func (d Decision) Apply(id capability.ID, o Outcome) (next Decision, goOn bool) {
	if o.Verdict == Block {
		d.Block, d.Hook = blocked(id, o), id
		return d, false
	}
	if o.Input != nil {
		d.Input = o.Input
		d.Rewriters = append(slices.Clip(d.Rewriters), id.Name)
	}
	return d, true
}

func blocked(id capability.ID, o Outcome) *vakerr.Error {
	if o.Failure != "" {
		return vakerr.New(vakerr.HookFailed, "%s blocks: %s", id, o.Reason).
			WithRemedy("an operator must repair the hook or remove it")
	}
	return vakerr.New(vakerr.HookBlocked, "%s blocks: %s", id, o.Reason).
		WithRemedy("do what the reason asks for; the same call will be blocked again")
}

// Annotation is the text that a block adds to the result of a call that has run; empty when nothing blocked. The effect
// has happened, so the result stays.
func (d Decision) Annotation() string {
	if d.Block == nil {
		return ""
	}
	return "The call has run. " + d.Block.Reason
}

// Continuation is what a session is told to go on with when a hook blocks its stop. Turns is how many turns the run has
// had; at limit it stops whatever hooks say, so that no hook keeps a run alive for ever.
func (d Decision) Continuation(turns, limit int) (text string, goOn bool) {
	if d.Block == nil || turns >= limit {
		return "", false
	}
	return "The run is not finished. " + d.Block.Reason, true
}
