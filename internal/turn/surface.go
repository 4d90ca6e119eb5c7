package turn

import (
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Reading is what the host says a turn needs. It is a prediction: being wrong costs one find_tools call, never a
// capability.
type Reading struct {
	Required  capability.Domains
	Uncertain bool     // the floor is loaded besides
	Cards     []string // names of the card tools whose card the request reads as
}

// floor is what an uncertain reading loads.
var floor = capability.Domains{capability.Filesystem, capability.Memory}

// SurfaceInput is what a surface is chosen by, besides what was admitted.
type SurfaceInput struct {
	Reading *Reading // nil: the host reads nothing, and everything is loaded
	Slice   bool     // false: everything is loaded
	Loaded  []string // what this session has loaded before, in that order
}

// Surface divides the admitted tools. Every one of them is callable; a surface decides only whose full definition is
// sent. It is never changed: Promote returns another.
type Surface struct {
	Loaded   []string // in the order they were first loaded in the session, so that a cached prefix stays valid
	Deferred []string // sorted
	// Unpredicted are the tools that the reading did not ask for, cards excepted, sorted. Using one is a misread.
	Unpredicted []string
	// Catalogue is the prompt's "More tools" section; empty where everything is loaded. It depends on what was admitted
	// alone, so it is the same text in every turn of an epoch, whatever is read or loaded.
	Catalogue string
}

// NewSurface chooses the surface of a turn. A tool is loaded when it says so itself, when it declares no domains, when
// it serves a required domain, when it presents a card the request reads as, or when the session has loaded it before.
func NewSurface(a *Admitted, in SurfaceInput) Surface {
	var s Surface
	for _, name := range in.Loaded {
		if a.offers(name) && !slices.Contains(s.Loaded, name) {
			s.Loaded = append(s.Loaded, name)
		}
	}
	slicing := in.Slice && in.Reading != nil
	for _, c := range a.offered() {
		name, predicted := c.ID.Name, !slicing || in.Reading.wants(c)
		if !predicted && !c.Config.(*capability.Tool).PresentsCards {
			s.Unpredicted = append(s.Unpredicted, name)
		}
		switch {
		case slices.Contains(s.Loaded, name):
		case predicted:
			s.Loaded = append(s.Loaded, name)
		default:
			s.Deferred = append(s.Deferred, name)
		}
	}
	if slicing {
		s.Catalogue = a.catalogue()
	}
	return s
}

func (r *Reading) wants(c *capability.Capability) bool {
	tool := c.Config.(*capability.Tool)
	switch {
	case tool.AlwaysLoaded:
		return true
	case tool.PresentsCards:
		return slices.Contains(r.Cards, c.ID.Name)
	case r.Uncertain && c.Serves.Intersects(floor):
		return true
	}
	return c.Serves.Match(r.Required)
}

// Promote returns the surface with these tools loaded, and which of the names were not loaded before, in the order
// given. A name may be a tool's or the exposed name of a server's tool; others are passed over.
func (s Surface) Promote(a *Admitted, names ...string) (next Surface, added []string) {
	next = s
	next.Loaded = slices.Clone(s.Loaded)
	for _, name := range names {
		if a.offers(name) && !slices.Contains(next.Loaded, name) {
			next.Loaded = append(next.Loaded, name)
			added = append(added, name)
		}
	}
	next.Deferred = slices.DeleteFunc(slices.Clone(s.Deferred), func(n string) bool { return slices.Contains(added, n) })
	return next, added
}

// Misread reports whether using that tool shows that the reading was wrong.
func (s Surface) Misread(name string) bool { return slices.Contains(s.Unpredicted, name) }

// offered are the admitted tools that have something to do: all but a skill tool without skills.
func (a *Admitted) offered() []*capability.Capability {
	if a.skillTool != nil {
		return a.Tools
	}
	return slices.DeleteFunc(slices.Clone(a.Tools), func(c *capability.Capability) bool { return c.ID.Name == policy.SkillTool })
}

func (a *Admitted) offers(name string) bool {
	if a.Definition(name) != nil {
		return true
	}
	_, ok := a.ByExposedName(name)
	return ok
}

// catalogue lists every tool that some reading defers.
func (a *Admitted) catalogue() string {
	var b strings.Builder
	for _, c := range a.offered() {
		tool := c.Config.(*capability.Tool)
		if tool.AlwaysLoaded || len(c.Serves) == 0 && !tool.PresentsCards {
			continue
		}
		b.WriteString("\n- " + c.ID.Name + ": " + FirstSentence(tool.Description))
	}
	if b.Len() == 0 {
		return ""
	}
	return "More tools. Each can be called; find_tools loads its definition:" + b.String()
}

// maxSearches bounds how many searches of a session are remembered.
const maxSearches = 64

// Searches remembers what a session searched for. The zero value is ready. A Searches belongs to one session's owner.
type Searches struct{ seen []string }

// Repeated notes a query and reports whether its words were searched for before, in any order.
func (s *Searches) Repeated(query string) bool {
	words := tokens(query)
	slices.Sort(words)
	key := strings.Join(slices.Compact(words), " ")
	if slices.Contains(s.seen, key) {
		return true
	}
	if len(s.seen) == maxSearches {
		s.seen = slices.Delete(s.seen, 0, 1)
	}
	s.seen = append(s.seen, key)
	return false
}
