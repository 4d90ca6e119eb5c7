package hook

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Decision is what the hooks of one event came to. The zero value is the decision of no hook.
type Decision struct {
	Block     *vakerr.Error   // nil: go on; else HookBlocked by a hook's opinion, HookFailed by its failure
	Ask       string          // why a person is to be asked; empty: no hook wants that
	Hook      capability.ID   // which hook blocked or asks
	Input     json.RawMessage // the tool's input after all rewrites; nil: no hook rewrote it
	Rewriters []string        // the hooks that rewrote it, in order
	Output    json.RawMessage // what the tool's result is to be; nil: no hook wants another
	Context   []string        // what the model is to know besides, in order
}

// Apply adds the outcome of the next hook. It reports whether the others are to be asked: not after a block. Of several
// opinions the strictest counts, whichever dialect they come from; an approval is none, for a hook never grants what the
// permission rules refuse.
func (d Decision) Apply(id capability.ID, o Outcome) (next Decision, goOn bool) {
	switch o.Verdict {
	case Block:
		if d.Block == nil {
			d.Block, d.Hook = blocked(id, o), id
		}
		return d, false
	case Ask:
		if d.Ask == "" {
			d.Ask, d.Hook = id.String()+" asks: "+o.Reason, id
		}
	case NoOpinion, Approve:
	}
	if o.Input != nil {
		d.Input = o.Input
		d.Rewriters = append(slices.Clip(d.Rewriters), id.Name)
	}
	if o.Output != nil {
		d.Output = o.Output
	}
	if o.Context != "" {
		d.Context = append(slices.Clip(d.Context), o.Context)
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

// Annotation is the text that hooks add to the result of a call that has run: what they want known, and why one of them
// objects. The effect has happened, so the result stays.
func (d Decision) Annotation() string {
	all := slices.Clone(d.Context)
	if d.Block != nil {
		all = append(all, "The call has run. "+d.Block.Reason)
	}
	return strings.Join(all, "\n")
}

// Continuation is what a session is told to go on with when a hook blocks its stop. stops is how often in a row it was kept
// from stopping; at limit it stops whatever hooks say, so that no hook keeps a run alive for ever.
func (d Decision) Continuation(stops, limit int) (text string, goOn bool) {
	if d.Block == nil || stops >= limit {
		return "", false
	}
	return "The run is not finished. " + d.Block.Reason, true
}
