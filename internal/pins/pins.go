// Package pins holds on to what a person has seen. The first sight of a trusted source is its baseline; what differs from it
// later is held until a person approves it, and of the text of a tool the approved version stays in use meanwhile.
//
// Two things are pinned. The texts of servers' tools, everywhere: a server may put what it likes into a model's prompt, and
// may change it at any time. And what a cloned workspace runs (servers and hooks), where a person has trusted it as it was.
// What is held back for other reasons is no baseline.
//
// It is pure: Apply is a function of what is declared, of what was approved and of the settings. It is asked for every
// publication, so a declaration takes no other way into a set.
package pins

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// OnChange says what happens to a tool whose text differs from the approved one.
type OnChange string

// What may happen.
const (
	Keep   OnChange = "keep"   // the approved text stays in use, calls go on
	Refuse OnChange = "refuse" // calls are refused
	Follow OnChange = "follow" // nothing is pinned
)

// Settings say what is pinned.
type Settings struct {
	Tools     OnChange // empty: Keep
	Workspace bool     // what the workspace runs

	// Seen: the workspace has been seen since it was trusted, so that whatever it runs and nobody has approved is new.
	Seen bool
}

// Pin is one approved version.
type Pin struct {
	Digest   string          `json:"digest"`
	Content  json.RawMessage `json:"content"`            // of a tool the whole of it; of a declaration what it runs
	Rejected string          `json:"rejected,omitempty"` // digest of a later version that a person has turned down
}

// Entry is what is approved of one capability. It is never changed after it was put into a Book.
type Entry struct {
	Self    *Pin     `json:"self,omitempty"`    // what it runs
	Sources []Source `json:"sources,omitempty"` // of a server, the one that was seen last first; at most maxSources
}

// Source is a server as it is reached in one way: another way leads to another program, whose first sight is its baseline.
// An operator who tries another way and comes back finds what was approved.
type Source struct {
	Definition string         `json:"definition"`
	Tools      map[string]Pin `json:"tools"` // by name
}

// maxSources bounds the ways of reaching a server that are remembered.
const maxSources = 8

// source returns the tools that are approved of a server that is reached in this way.
func (e *Entry) source(definition string) map[string]Pin {
	if e == nil {
		return nil
	}
	for _, s := range e.Sources {
		if s.Definition == definition {
			return s.Tools
		}
	}
	return nil
}

// with returns the sources with one that was seen now.
func (e *Entry) with(definition string, tools map[string]Pin) []Source {
	all := []Source{{definition, tools}}
	for _, s := range e.Sources {
		if s.Definition != definition && len(all) < maxSources {
			all = append(all, s)
		}
	}
	return all
}

// Book is what is approved, by capability. A Book that was handed out is never changed.
type Book map[capability.ID]*Entry

// Pending is a version that waits for a person.
type Pending struct {
	ID       capability.ID
	Tool     string // of a server's tool; empty: the capability itself
	Digest   string // of the version that waits
	Approved string // digest of the version in force
	Rejected bool   // a person has turned it down
	Changes  []Change

	content    json.RawMessage
	definition string // of a tool: how its server is reached
}

// Change is one part that differs. Before or After is empty where the part is new or gone.
type Change struct{ Part, Before, After string }

// Result is what Apply makes of a world.
type Result struct {
	Declarations []capability.Declaration
	Learned      Book // entries that are new, or have grown: to be kept
	Pending      []Pending
}

// Guard tells whoever asks a server what its tools are which version of them is in force. It is never changed.
type Guard struct {
	Book     Book
	Settings Settings
}

// Tool returns the version in force of what the server called id says of a tool.
func (g *Guard) Tool(id capability.ID, server *capability.Server, said capability.ObservedTool) capability.ObservedTool {
	if g == nil || g.Settings.Tools == Follow {
		return said
	}
	approved := g.Book[id].source(definition(server))
	pin, known := approved[said.Name]
	switch {
	case !known && len(approved) >= maxTools:
		return beyond(said)
	case !known:
		return said
	}
	content, err := json.Marshal(&said)
	if err == nil && capability.ContentDigest(content) == pin.Digest {
		return said
	}
	return inForce(id, said, pin, changes(pin.Content, content), g.Settings)
}

// definition tells sources apart: how a server is reached.
func definition(s *capability.Server) string { return capability.ContentDigest(running(s)) }

// maxTools bounds the tools of one server that are pinned. None is forgotten to make room, or a server could flush what was
// approved by listing others: what comes beyond is held.
const maxTools = 8192

// Apply compares declarations with what is approved.
func Apply(declared []capability.Declaration, book Book, s Settings) Result {
	r := Result{Declarations: slices.Clone(declared), Learned: Book{}}
	for i := range r.Declarations {
		d := &r.Declarations[i]
		if d.Hold != nil {
			continue
		}
		known := book[d.ID]
		if known == nil {
			known = &Entry{}
		}
		next := *known
		if s.Workspace && d.Origin.Kind == capability.OriginWorkspace {
			r.runs(d, &next, s)
		}
		if server, is := d.Config.(*capability.Server); is && s.Tools != Follow && d.Hold == nil && server.Observation != nil {
			next = r.tools(d, server, next, s)
		}
		if !equal(known, &next) {
			r.Learned[d.ID] = &next
		}
	}
	return r
}

func equal(a, b *Entry) bool {
	return (a.Self == b.Self || a.Self != nil && b.Self != nil && a.Self.Digest == b.Self.Digest) &&
		slices.EqualFunc(a.Sources, b.Sources, func(s, t Source) bool {
			return s.Definition == t.Definition &&
				maps.EqualFunc(s.Tools, t.Tools, func(p, q Pin) bool { return p.Digest == q.Digest && p.Rejected == q.Rejected })
		})
}

// runs compares what a declaration runs.
func (r *Result) runs(d *capability.Declaration, e *Entry, s Settings) {
	content := running(d.Config)
	if content == nil {
		return
	}
	digest := capability.ContentDigest(content)
	if e.Self == nil && !s.Seen {
		e.Self = &Pin{Digest: digest, Content: content}
		return
	}
	approved := Pin{}
	if e.Self != nil {
		approved = *e.Self
	}
	if approved.Digest == digest {
		return
	}
	all := changes(approved.Content, content)
	r.Pending = append(r.Pending, Pending{
		ID: d.ID, Digest: digest, Approved: approved.Digest, Rejected: approved.Rejected == digest, Changes: all, content: content,
	})
	why := fmt.Sprintf("it runs something else than what was approved (%s)", parts(all))
	if approved.Digest == "" {
		why = "it is new since the workspace was trusted"
	}
	remedy := "look at it: vak-actors pins show " + d.ID.String()
	if h, is := d.Config.(*capability.Hook); is && h.FailureMode != capability.FailOpen {
		refuses := *h
		refuses.Refusal = why
		d.Config = &refuses
		return
	}
	d.Hold = &capability.Hold{Reason: why, Remedy: remedy}
}

// running is what decides which program runs, or which address is asked; nil for what runs nothing. Placeholders stay as
// written, so that a secret that changes is no change; a secret that is written out is told by its digest alone, for it is
// kept and shown.
func running(c capability.Config) json.RawMessage {
	var what any
	switch c := c.(type) {
	case *capability.Server:
		bare := *c
		bare.Observation, bare.SecretDigest = nil, ""
		bare.URL, bare.Args, bare.Env, bare.Headers = veiledURL(c.URL), veiled(c.Args), veiledValues(c.Env), veiledValues(c.Headers)
		what = &bare
	case *capability.Hook:
		bare := *c
		bare.Position = 0
		bare.URL, bare.Args, bare.Headers = veiledURL(c.URL), veiled(c.Args), veiledValues(c.Headers)
		bare.Command = strings.Join(veiled(strings.Fields(c.Command)), " ")
		what = &bare
	default:
		return nil
	}
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // strings, numbers, lists and maps of strings only
	}
	return text
}

// tools compares the catalog of a server.
func (r *Result) tools(d *capability.Declaration, server *capability.Server, e Entry, s Settings) Entry {
	way := definition(server)
	pinned := maps.Clone(e.source(way))
	if pinned == nil {
		pinned = make(map[string]Pin, len(server.Observation.Catalog))
	}
	var catalog []capability.ObservedTool
	for i, tool := range server.Observation.Catalog {
		content, err := json.Marshal(&tool)
		if err != nil {
			continue // not JSON: the pool has no such tools
		}
		digest := capability.ContentDigest(content)
		pin, known := pinned[tool.Name]
		switch {
		case !known && len(pinned) < maxTools:
			pinned[tool.Name] = Pin{Digest: digest, Content: content}
		case pin.Digest != digest:
			if catalog == nil {
				catalog = slices.Clone(server.Observation.Catalog)
			}
			if catalog[i] = beyond(tool); known {
				catalog[i] = r.held(d.ID, tool, pin, Pending{Digest: digest, content: content, definition: way}, s)
			}
		}
	}
	e.Sources = e.with(way, pinned)
	if catalog != nil {
		seen, shown := *server.Observation, *server
		seen.Catalog = catalog
		shown.Observation = &seen
		d.Config = &shown
	}
	return e
}

// held is the version of a tool that is in force while another waits.
func (r *Result) held(id capability.ID, tool capability.ObservedTool, pin Pin, p Pending, s Settings) capability.ObservedTool {
	p.ID, p.Tool, p.Approved, p.Rejected = id, tool.Name, pin.Digest, pin.Rejected == p.Digest
	p.Changes = changes(pin.Content, p.content)
	r.Pending = append(r.Pending, p)
	return inForce(id, tool, pin, p.Changes, s)
}

// beyond is a tool that cannot be pinned, since its server has listed too many.
func beyond(tool capability.ObservedTool) capability.ObservedTool {
	tool.Description = ""
	tool.Hold = &capability.Hold{
		Reason: fmt.Sprintf("its server has listed more than %d tools, and what it is cannot be pinned", maxTools),
		Remedy: "name the tools that are needed in enabled_tools of the server, or set [pins] tools = \"follow\"",
	}
	return tool
}

// bareSchema stands for the schema of a tool that is refused: its own is a text like any other.
const bareSchema = `{"type":"object"}`

func bare(name string) capability.ObservedTool {
	definition, err := json.Marshal(map[string]any{"name": name, "inputSchema": json.RawMessage(bareSchema)})
	if err != nil {
		panic(err) // a text and a constant
	}
	return capability.ObservedTool{Name: name, InputSchema: json.RawMessage(bareSchema), Definition: definition}
}

// inForce is the approved version, or one that is refused and has nothing of the server's own but its name.
func inForce(id capability.ID, tool capability.ObservedTool, pin Pin, all []Change, s Settings) capability.ObservedTool {
	var approved capability.ObservedTool
	err := json.Unmarshal(pin.Content, &approved)
	if err != nil || s.Tools == Refuse {
		approved = bare(tool.Name)
		approved.Hold = &capability.Hold{
			Reason: fmt.Sprintf("the server changed it since it was approved (%s)", parts(all)),
			Remedy: fmt.Sprintf("a person looks at it: vak-actors pins show %s %s", id, tool.Name),
		}
	}
	return approved
}

// Settled reports whether the version of a tool that waited is the one in force by now.
func (p *Pending) Settled(known *Entry) bool {
	return known.source(p.definition)[p.Tool].Digest == p.Digest
}

// Approve returns the entry in which p is the version in force.
func (p *Pending) Approve(known *Entry) *Entry {
	return p.decide(known, Pin{Digest: p.Digest, Content: p.content})
}

// Reject returns the entry in which p is turned down: it stays held, and nobody is asked again about it.
func (p *Pending) Reject(known *Entry) *Entry {
	pin := Pin{}
	switch {
	case known == nil:
	case p.Tool != "":
		pin = known.source(p.definition)[p.Tool]
	case known.Self != nil:
		pin = *known.Self
	}
	pin.Rejected = p.Digest
	return p.decide(known, pin)
}

func (p *Pending) decide(known *Entry, pin Pin) *Entry {
	next := Entry{}
	if known != nil {
		next = *known
	}
	if p.Tool == "" {
		next.Self = &pin
		return &next
	}
	tools := maps.Clone(next.source(p.definition))
	if tools == nil {
		tools = map[string]Pin{}
	}
	tools[p.Tool] = pin
	next.Sources = next.with(p.definition, tools)
	return &next
}
