// Package policy decides who may use what: channel policy (what a channel may see), permission rules (what a call may
// do) and reach (what of the admitted could be called at all). Its rules come from files of the operator; nothing here
// reads a file, a clock or an environment.
//
// What a permission rule covers. It covers the calls this runtime makes: of its own tools, of servers' tools, and of
// commands in texts. A rule about files (write(secret/**), Read(./secret/**)) binds the tools of this host that name a path;
// a server's tool reads files by itself, with names of its own, and is bound by a rule about its parameter, such as
// mcp__files__*(path:**/secret.yml). A rule about commands binds each simple command of a line, within loops, substitutions
// and wrappers, and the files its redirections write; it does not know what a program does once it runs.
package policy

import "github.com/vak-actors/vak-actors/capability"

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

	// Also are the rules of further files for the same channel. What is visible has to be by all of them.
	Also []ChannelRules `toml:"-" json:"also,omitempty"`
}

// PermissionRules is one layer of permissions: a mode and rules, as one file writes them. The zero value says nothing.
//
// Rules of the own dialect have the form Tool or Tool(glob), or Tool(parameter:glob) in ask and deny; those of Claude Code
// its own (see the package comment). Deny and ask rules of every layer hold. Allow rules, and a mode looser than
// workspace-write, hold from trusted layers only.
type PermissionRules struct {
	Mode  string   `toml:"mode" json:"mode"` // read-only, workspace-write (default) or full-access; of Claude Code its defaultMode
	Allow []string `toml:"allow" json:"allow,omitempty"`
	Ask   []string `toml:"ask" json:"ask,omitempty"`
	Deny  []string `toml:"deny" json:"deny,omitempty"`

	Source    string             `toml:"-" json:"-"`                   // the file, as problems name it
	Dialect   capability.Dialect `toml:"-" json:"dialect,omitempty"`   // the own one or Claude Code's
	Untrusted bool               `toml:"-" json:"untrusted,omitempty"` // nobody has trusted the source: what grants is passed over
	Lines     RuleLines          `toml:"-" json:"-"`
}

// RuleLines are the lines on which a layer's entries stand, 1-based; 0, or a list that is too short, where it is not known.
type RuleLines struct {
	Mode             int
	Allow, Ask, Deny []int
}

// list returns the rules of one effect with their lines.
func (p PermissionRules) list(e Effect) (texts []string, lines []int) {
	switch e {
	case Allow:
		return p.Allow, p.Lines.Allow
	case Ask:
		return p.Ask, p.Lines.Ask
	case Deny:
	}
	return p.Deny, p.Lines.Deny
}
