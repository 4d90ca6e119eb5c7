package policy

// Current is the policy in force: what the operator's files said at the last pass. It is never changed.
type Current struct {
	Engine   *Engine
	Channels map[string]*Channel // by name; a channel without a section shows everything
}

// Channel returns the rules of a channel; nil, which shows everything, when the operator wrote none.
func (c *Current) Channel(name string) *Channel { return c.Channels[name] }
