package op

import (
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
)

// Bound is what the turn of a call may see: the admitted part of the epoch it is bound to. Dispatch adapts the turn's
// admission to it. Methods are called from the goroutine of the call, must not block, and return values that are never
// changed.
type Bound interface {
	// Skill returns the admitted skill of that name. One that is retired is returned too, so that its reason can be told.
	Skill(name string) (*capability.Capability, bool)
	// SkillNames lists the admitted skills that a model may load, sorted.
	SkillNames() []string
	// Command returns the admitted command of that name.
	Command(name string) (*capability.Capability, bool)
	// Server returns the admitted server of that name.
	Server(name string) (*capability.Capability, bool)
	// ServerNames lists the admitted servers, sorted.
	ServerNames() []string
	// ServerTools returns the part of a server's observed catalog that this turn may call, sorted by name; nil when the
	// server was never listed.
	ServerTools(server string) []capability.ObservedTool
	// Search finds admitted tools, loaded or not, and tools of observed catalogs, best first.
	Search(query string, limit int) []Found
	// Searched reports whether this session has made this search before; query is as NormalQuery returns it.
	Searched(query string) bool
}

// Found is one answer of a search.
type Found struct {
	Server  string // the server whose tool it is; empty for an admitted tool
	Name    string
	Summary string          // the first sentence of its description
	Schema  json.RawMessage // of its input; only for a server's tool, whose definition is never loaded
	Known   bool            // the model has it already: loaded, or found before in this session
}
