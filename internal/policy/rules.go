// Package policy decides who may use what: channel policy (what a channel may see), permission rules (what a call may
// do) and reach (what of the admitted could be called at all). Its rules come from files of the operator; nothing here
// reads a file, a clock or an environment.
package policy

// Filter is a pair of glob lists over the names of one category. A nil Allow inherits (everything the layer above lets
// through), an empty one blocks the category; Deny always wins.
type Filter struct {
	Allow []string `toml:"allow" json:"allow,omitempty"`
	Deny  []string `toml:"deny" json:"deny,omitempty"`
}

// ChannelRules is one [channels.<name>] section: what is visible on that channel. Tools also governs commands; MCP globs
// are written server/tool. Rules can only restrict.
type ChannelRules struct {
	Tools  Filter `toml:"tools" json:"tools"`
	MCP    Filter `toml:"mcp" json:"mcp"`
	Skills Filter `toml:"skills" json:"skills"`
	Hooks  Filter `toml:"hooks" json:"hooks"`
}

// PermissionRules is the [permissions] section: a mode and rules of the form Tool or Tool(glob).
type PermissionRules struct {
	Mode  string   `toml:"mode" json:"mode"` // read-only, workspace-write (default) or full-access
	Allow []string `toml:"allow" json:"allow,omitempty"`
	Ask   []string `toml:"ask" json:"ask,omitempty"`
	Deny  []string `toml:"deny" json:"deny,omitempty"`
}
