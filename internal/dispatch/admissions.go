package dispatch

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// Caller is what admission depends on besides the view: sessions that are equal in it see the same.
type Caller struct {
	Channel  string
	Attended bool
	MCPFront bool
}

// Admission is what one kind of caller sees of one view, with what is derived from it and costs time: each is made once,
// by whoever needs it first, and shared by all sessions. It is never changed.
type Admission struct {
	*turn.Admitted
	View *turn.View

	known    *turn.Indexes
	index    func() *turn.Index
	offer    func() (Offer, error)
	listing  func() (Offer, error)
	standing func() string
}

// Offer is a surface with everything rendered from it.
type Offer struct {
	Surface         turn.Surface
	Tools           json.RawMessage // definitions: a JSON array
	Digest          string          // of Tools
	Interface       json.RawMessage // what a model is given, for the ledger
	InterfaceDigest string
}

// Index finds the admitted tools.
func (a *Admission) Index() *turn.Index { return a.index() }

// Everything is the offer of a caller that reads nothing: every tool loaded, in MCP form.
func (a *Admission) Everything() (Offer, error) { return a.offer() }

// Listing is what an MCP client may list: the tools and the servers' tools under their exposed names.
func (a *Admission) Listing() (Offer, error) { return a.listing() }

// Standing tells a model what it must do without; empty when nothing is wrong.
func (a *Admission) Standing() string { return a.standing() }

func newAdmission(view *turn.View, caller Caller, known *turn.Indexes) *Admission {
	return derive(view, known, turn.Admit(turn.AdmitInput{
		View: view, Channel: view.Policy.Channel(caller.Channel), Engine: view.Policy.Engine,
		Attended: caller.Attended, MCPFront: caller.MCPFront,
	}))
}

// Worker is the admission of a worker of a turn that is bound to this one. It may compute for milliseconds.
func (a *Admission) Worker(n turn.Narrowing) *Admission {
	return derive(a.View, a.known, a.Admitted.Worker(n))
}

func derive(view *turn.View, known *turn.Indexes, admitted *turn.Admitted) *Admission {
	a := &Admission{View: view, Admitted: admitted, known: known}
	a.index = sync.OnceValue(func() *turn.Index { return known.Of(a.Docs()) })
	a.offer = sync.OnceValues(func() (Offer, error) {
		return NewOffer(a.Admitted, turn.NewSurface(a.Admitted, turn.SurfaceInput{}), turn.FormatMCP)
	})
	a.listing = sync.OnceValues(func() (Offer, error) {
		surface := turn.NewSurface(a.Admitted, turn.SurfaceInput{})
		for _, x := range a.Exposed() {
			surface.Loaded = append(surface.Loaded, x.Name)
		}
		return NewOffer(a.Admitted, surface, turn.FormatMCP)
	})
	a.standing = sync.OnceValue(func() string {
		report := capability.NewReport(capability.ReportInput{Snapshot: view.Snapshot, Revoked: view.Revoked})
		return report.Standing(a.Shows)
	})
	return a
}

// NewOffer renders a surface.
func NewOffer(a *turn.Admitted, s turn.Surface, format turn.Format) (Offer, error) {
	tools, err := turn.Render(format, a, s)
	if err != nil {
		return Offer{}, err
	}
	text, digest, err := turn.NewInterface(a, s, PromptSection(a, s), tools).Encode()
	if err != nil {
		return Offer{}, err
	}
	return Offer{s, tools, capability.ContentDigest(tools), text, digest}, nil
}

// PromptSection is the standing part of a prompt: skills, servers and the catalogue of deferred tools. It does not change
// while what was admitted does not.
func PromptSection(a *turn.Admitted, s turn.Surface) string {
	text := ""
	for _, section := range []string{turn.SkillSection(a), turn.ServerSection(a), s.Catalogue} {
		if section == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += section
	}
	return text
}

// Admissions shares admissions between the sessions of a tenant. Only those of the latest view are kept; an older one
// lives as long as the last turn that is bound to it.
type Admissions struct {
	mu    sync.Mutex // guards the next two; held for lookups only
	view  *turn.View
	known map[Caller]*admitting

	indexes turn.Indexes
}

// For returns the admission of caller in view. It may compute for milliseconds: call it from an effect.
func (s *Admissions) For(view *turn.View, caller Caller) *Admission {
	s.mu.Lock()
	if s.view != view {
		s.view, s.known = view, make(map[Caller]*admitting)
	}
	a := s.known[caller]
	if a == nil {
		a = &admitting{}
		s.known[caller] = a
	}
	s.mu.Unlock()
	a.once.Do(func() { a.made.Store(newAdmission(view, caller, &s.indexes)) })
	return a.made.Load()
}

// Known returns what For made before; nil when it has not. It does not block.
func (s *Admissions) Known(view *turn.View, caller Caller) *Admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.known[caller]; s.view == view && a != nil {
		return a.made.Load()
	}
	return nil
}

// admitting is one admission in the making.
type admitting struct {
	once sync.Once
	made atomic.Pointer[Admission]
}

// Searched is what one session has searched for while the set stayed the same; its calls share it. The zero value is ready.
type Searched struct {
	mu       sync.Mutex // guards what follows: calls run in parallel
	set      string     // digest of the set that was searched; another one may have another answer
	searches turn.Searches
}

func (s *Searched) repeated(set, query string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != set {
		s.set, s.searches = set, turn.Searches{}
	}
	return s.searches.Repeated(query)
}

// Discovery is what one turn knows to be loaded, and what its session has searched for; the turn's calls share it.
type Discovery struct {
	searched *Searched

	mu     sync.Mutex // guards loaded: calls run in parallel
	loaded []string   // few are asked for, and most discoveries are never asked
}

// NewDiscovery starts with the names that are loaded already, which are not to be changed.
func NewDiscovery(loaded []string, searched *Searched) *Discovery {
	return &Discovery{loaded: slices.Clip(loaded), searched: searched}
}

// Load notes that names are loaded from now on.
func (d *Discovery) Load(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loaded = append(d.loaded, names...)
}

func (d *Discovery) knows(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.loaded, name)
}

// Bound is what an op, or the expansion of a prompt, may know of a turn.
func (a *Admission) Bound(d *Discovery) op.Bound { return bound{a, d} }

type bound struct {
	*Admission
	discovery *Discovery
}

// Search implements op.Bound.
func (b bound) Search(query string, limit int) []op.Found {
	hits := b.Index().Search(query, limit)
	found := make([]op.Found, len(hits))
	for i, h := range hits {
		found[i] = op.Found{
			Name: h.Name, Server: h.Server, Tool: h.Tool, Summary: turn.FirstSentence(h.Description), Known: b.discovery.knows(h.Name),
		}
		if t := b.ServerTool(h.Server, h.Tool); t != nil {
			found[i].Schema = t.InputSchema
		}
	}
	return found
}

// RepeatedSearch implements op.Bound.
func (b bound) RepeatedSearch(query string) bool {
	return b.discovery.searched.repeated(b.Digest, query)
}
