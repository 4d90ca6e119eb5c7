// Package optest holds a bound view for tests of ops and of what else reads op.Bound.
package optest

import (
	"path"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
)

// Bound is a view over a set in which everything is admitted. The zero value sees nothing.
type Bound struct {
	Set    *capability.Set
	Denied map[string]bool // server/tool that may not be called
	Hits   []op.Found      // what every search finds
	Seen   map[string]bool // searches made; made on first use

	Unreadable map[capability.ID]capability.Problem // what Broken finds
}

var _ op.Bound = (*Bound)(nil)

// NewBound returns a view over these declarations; it panics when they are no set.
func NewBound(declared ...capability.Declaration) *Bound {
	set, err := capability.NewSet(declared, nil)
	if err != nil {
		panic(err)
	}
	return &Bound{Set: set}
}

// Skill returns the set's skill of that name.
func (b *Bound) Skill(name string) (*capability.Capability, bool) {
	return b.Set.Get(capability.ID{Kind: capability.KindSkill, Name: name})
}

// SkillNames lists the skills that a model may load.
func (b *Bound) SkillNames() []string {
	var all []string
	for c := range b.Set.OfKind(capability.KindSkill) {
		if s := c.Config.(*capability.Skill); !s.DisableModelInvocation {
			all = append(all, c.ID.Name)
		}
	}
	return all
}

// Ambiguous implements op.Bound: no plugin has anything here.
func (b *Bound) Ambiguous(capability.ID) []string { return nil }

// SkillFolders lists the absolute folders of the skills.
func (b *Bound) SkillFolders() []string {
	var all []string
	for c := range b.Set.OfKind(capability.KindSkill) {
		if s := c.Config.(*capability.Skill); path.IsAbs(s.BaseDir) {
			all = append(all, s.BaseDir)
		}
	}
	slices.Sort(all)
	return all
}

// Broken finds what the test says is broken.
func (b *Bound) Broken(id capability.ID) (capability.Problem, bool) {
	p, ok := b.Unreadable[id]
	return p, ok
}

// Command returns the set's command of that name.
func (b *Bound) Command(name string) (*capability.Capability, bool) {
	return b.Set.Get(capability.ID{Kind: capability.KindCommand, Name: name})
}

// Server returns the set's server of that name.
func (b *Bound) Server(name string) (*capability.Capability, bool) {
	return b.Set.Get(capability.ID{Kind: capability.KindMCP, Name: name})
}

// ServerNames lists the servers.
func (b *Bound) ServerNames() []string {
	var all []string
	for c := range b.Set.OfKind(capability.KindMCP) {
		all = append(all, c.ID.Name)
	}
	return all
}

// ServerTools lists the observed tools that are not denied.
func (b *Bound) ServerTools(server string) []*capability.ObservedTool {
	c, ok := b.Server(server)
	if !ok {
		return nil
	}
	observed := c.Config.(*capability.Server).Observation
	if observed == nil {
		return nil
	}
	var all []*capability.ObservedTool
	for i := range observed.Catalog {
		if t := &observed.Catalog[i]; b.AllowsServerTool(server, t.Name) {
			all = append(all, t)
		}
	}
	return all
}

// AllowsServerTool reports whether the tool is not denied.
func (b *Bound) AllowsServerTool(server, tool string) bool { return !b.Denied[server+"/"+tool] }

// Search returns the first hits, whatever is asked.
func (b *Bound) Search(_ string, limit int) []op.Found {
	return slices.Clone(b.Hits[:min(limit, len(b.Hits))])
}

// RepeatedSearch notes the query.
func (b *Bound) RepeatedSearch(query string) bool {
	seen := b.Seen[query]
	if b.Seen == nil {
		b.Seen = map[string]bool{}
	}
	b.Seen[query] = true
	return seen
}
