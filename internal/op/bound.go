package op

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bound is what the turn of a call may see: the admitted part of the epoch it is bound to. Dispatch adapts the turn's
// admission to it. Methods are called from the goroutine of the call, must not block, and return values that are never
// changed.
type Bound interface {
	// Skill returns the admitted skill of that name. One that is retired is returned too, so that its reason can be told.
	Skill(name string) (*capability.Capability, bool)
	// SkillNames lists the admitted skills that a model may load, sorted.
	SkillNames() []string
	// SkillFolders lists the folders outside of the workspace in which admitted skills have their files: absolute, sorted.
	SkillFolders() []string
	// Command returns the admitted command of that name.
	Command(name string) (*capability.Capability, bool)
	// Ambiguous lists the qualified names of skills or commands that several plugins have under that name, sorted; nil where
	// the name is clear.
	Ambiguous(id capability.ID) []string
	// Broken is what is wrong with the file that would declare a skill or command of that id; false where none would.
	Broken(id capability.ID) (capability.Problem, bool)
	// Server returns the admitted server of that name.
	Server(name string) (*capability.Capability, bool)
	// ServerNames lists the admitted servers, sorted.
	ServerNames() []string
	// ServerTools returns the part of a server's observed catalog that this turn may call, sorted by name; nil when the
	// server was never listed.
	ServerTools(server string) []*capability.ObservedTool
	// AllowsServerTool reports whether this turn may call that tool of an admitted server. It needs no catalog.
	AllowsServerTool(server, tool string) bool
	// Search finds admitted tools, loaded or not, and tools of observed catalogs, best first.
	Search(query string, limit int) []Found
	// RepeatedSearch notes a search and reports whether this session has made it before.
	RepeatedSearch(query string) bool
}

// Broken is the error for a skill or command whose file is there and cannot be read.
func Broken(id capability.ID, p capability.Problem) *vakerr.Error {
	at := p.Path
	if p.Line > 0 {
		at = fmt.Sprintf("%s, line %d", p.Path, p.Line)
	}
	return vakerr.New(vakerr.CapabilityInvalid, "%s is there and cannot be read: %s: %s", id, at, p.Message).WithRemedy("%s", cmp.Or(p.Hint, "repair the file"))
}

// Ambiguous is the error for a name that several plugins have.
func Ambiguous(id capability.ID, names []string) *vakerr.Error {
	return vakerr.New(vakerr.CapabilityNotAdmitted, "the name of %s is ambiguous: several plugins have it", phrase.Cut(id.String(), 64)).
		WithRemedy("name one of %s", phrase.List(names, 40))
}

// Found is one answer of a search.
type Found struct {
	Name    string          // the name it is loaded under; for a server's tool, its exposed name
	Server  string          // the server whose tool it is; empty for a tool of this host
	Tool    string          // its name on the server; empty for a tool of this host
	Summary string          // the first sentence of its description
	Schema  json.RawMessage // of a server's tool's input; empty for a tool of this host
	Known   bool            // it is loaded already
}
