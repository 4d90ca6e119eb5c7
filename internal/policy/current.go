package policy

import "time"

// Current is the policy in force: what the operator's files said at the last pass. It is never changed.
type Current struct {
	Revision string // digest of what the policy was made of
	Engine   *Engine
	Channels map[string]*Channel // by name; a channel without a section shows everything

	ApprovalTimeout time.Duration // how long a call waits for a person; 0: the approver's default

	// KeepInput is set where the operator has turned off that hooks rewrite the inputs of calls ([hook_policy] rewrite).
	KeepInput bool

	// HoldCommands is why commands in skills and slash commands of the workspace are not run, whatever the rules allow, such
	// as "nobody has trusted this workspace"; empty: they are judged as any call.
	HoldCommands string
}

// StricterThen reports whether the mode of next is stricter than that of c. Nothing is stricter than no policy.
func (c *Current) StricterThen(next *Current) bool {
	return c != nil && c.Engine != nil && next != nil && next.Engine != nil && next.Engine.mode < c.Engine.mode
}

// Channel returns the rules of a channel; nil, which shows everything, when the operator wrote none.
func (c *Current) Channel(name string) *Channel { return c.Channels[name] }
