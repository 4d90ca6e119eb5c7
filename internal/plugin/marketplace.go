package plugin

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// MarketplaceFiles are the places of a marketplace within its folder, in order of precedence.
func MarketplaceFiles() []string {
	return []string{
		".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json", ".cursor-plugin/marketplace.json",
		".github/plugin/marketplace.json", "marketplace.json",
	}
}

// maxEntries bounds the offers of a marketplace.
const maxEntries = 10_000

// Marketplace is a folder that offers plugins.
type Marketplace struct {
	Name        string
	Description string
	Path        string // of its file
	Entries     []Entry
}

// Entry is one offer.
type Entry struct {
	Name        string
	Description string
	Version     string
	Category    string

	// Folder is where the plugin lies below the marketplace's folder; empty for one that is elsewhere.
	Folder string

	// Remote says where a plugin is that cannot be read offline, in a few words; empty for one in Folder.
	Remote string

	// Strict says that the plugin's own manifest is the authority and the entry only adds to it. Otherwise the entry is
	// everything, and a manifest that names components is an error.
	Strict bool

	// Unavailable says why the marketplace does not let the plugin be installed; empty: it does.
	Unavailable string

	components bool   // the entry names components
	text       []byte // the entry as JSON
	line       int
}

// FindMarketplace reads the marketplace of a folder; false when there is none. The error is a vakerr.PluginInvalid.
func FindMarketplace(fsys fs.FS) (Marketplace, []capability.Problem, bool, error) {
	for _, name := range MarketplaceFiles() {
		text, err := readFile(fsys, name)
		if err != nil {
			continue
		}
		m, problems, err := ReadMarketplace(name, text)
		return m, problems, true, err
	}
	return Marketplace{}, nil, false, nil
}

// ReadMarketplace reads a marketplace.json. One entry that is broken costs itself. The error is a vakerr.PluginInvalid.
func ReadMarketplace(name string, text []byte) (Marketplace, []capability.Problem, error) {
	r := &reader{path: name}
	m := Marketplace{Path: name}
	top, ok := r.parse(text)
	if ok {
		r.marketplace(&m, top)
	}
	if r.fatal {
		p := r.problems[0]
		return m, r.problems, vakerr.New(vakerr.PluginInvalid, "%s, line %d: %s", p.Path, p.Line, p.Message).WithRemedy("%s", p.Hint)
	}
	return m, r.problems, nil
}

func (r *reader) marketplace(m *Marketplace, top []member) {
	root := ""
	var list *hujson.Array
	for _, k := range top {
		switch k.name {
		case "name":
			m.Name = r.text(k)
		case "description":
			m.Description = r.text(k)
		case "metadata":
			for _, x := range r.members(k.value, "") {
				switch {
				case x.name == "pluginRoot" && x.value.Value.Kind() == '"':
					root, _ = r.cleanPath("pluginRoot", x.line, r.text(x))
				case x.name == "description" && m.Description == "" && x.value.Value.Kind() == '"':
					m.Description = r.text(x)
				}
			}
		case "plugins":
			if list, _ = k.value.Value.(*hujson.Array); list == nil {
				r.refuse("plugin_type", k.line, "plugins is no list", `write "plugins": [...]`)
			}
		}
	}
	switch {
	case r.fatal:
		return
	case list == nil:
		r.refuse("marketplace_plugins", 1, "the marketplace has no list of plugins", `add "plugins": [...]`)
		return
	case len(list.Elements) > maxEntries:
		r.refuse("too_many", 1, fmt.Sprintf("the marketplace offers more than %d plugins", maxEntries), "split it")
		return
	case m.Name == "":
		r.warn("marketplace_name", 1, "the marketplace has no name", `add "name"`)
	}
	for _, e := range list.Elements {
		if entry, ok := r.entry(member{"plugins", e, r.line(e.StartOffset)}, root); ok {
			if slices.ContainsFunc(m.Entries, func(x Entry) bool { return x.Name == entry.Name }) {
				r.component("marketplace_twice", entry.line, fmt.Sprintf("the plugin %s is offered twice; the second is left out", quoted(entry.Name)), "rename or remove one of the two")
				continue
			}
			m.Entries = append(m.Entries, entry)
		}
	}
}

// entry reads one offer with a reader of its own, whose faults cost that offer alone.
func (r *reader) entry(k member, root string) (Entry, bool) {
	own := &reader{path: r.path, ends: r.ends}
	e := Entry{Strict: true, line: k.line, text: raw(k.value)}
	sourced := false
	for _, x := range own.object(k) {
		switch x.name {
		case "name":
			e.Name = own.text(x)
		case "description":
			e.Description = own.text(x)
		case "version":
			e.Version = own.text(x)
		case "category":
			e.Category = own.text(x)
		case "strict":
			e.Strict = own.truth(x)
		case "source":
			sourced = true
			own.source(&e, x, root)
		case "policy":
			for _, p := range own.members(x.value, "") {
				if p.name == "installation" && p.value.Value.Kind() == '"' && own.text(p) == "NOT_AVAILABLE" {
					e.Unavailable = "the marketplace does not offer it for installation"
				}
			}
		case "skills", "commands", "hooks", "mcpServers", "agents", "lspServers", "outputStyles", "workflows":
			e.components = true
		}
	}
	if why := CheckName(e.Name); !own.fatal && why != "" {
		own.refuse("plugin_name", k.line, fmt.Sprintf("the name %s of an offer cannot be used: %s", quoted(e.Name), why), "correct it")
	}
	if !own.fatal && !sourced {
		own.refuse("marketplace_source", k.line, fmt.Sprintf("the offer %s names no source", quoted(e.Name)), `add "source": "./folder"`)
	}
	for _, p := range own.problems {
		r.add(p.Severity, p.Code, p.Line, p.Message, p.Hint)
	}
	return e, !own.fatal
}

// source says where the plugin of an entry is.
func (r *reader) source(e *Entry, k member, root string) {
	if k.value.Value.Kind() == '"' {
		text := r.text(k)
		switch {
		case text == "." || text == "./" || strings.HasPrefix(text, "./"):
			if clean, ok := r.cleanPath(k.name, k.line, text); ok {
				e.Folder = path.Join(root, clean)
			}
		case strings.Contains(text, "://") || strings.HasPrefix(text, "git@"):
			e.Remote = "git"
		case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.Contains(text, ".."):
			r.cleanPath(k.name, k.line, text)
		case root != "":
			if clean, ok := r.cleanPath(k.name, k.line, "./"+text); ok {
				e.Folder = path.Join(root, clean)
			}
		case strings.Count(text, "/") == 1:
			e.Remote = "github"
		default:
			if clean, ok := r.cleanPath(k.name, k.line, text); ok {
				e.Folder = clean
			}
		}
		return
	}
	kind, where := "", ""
	for _, x := range r.object(k) {
		if x.value.Value.Kind() != '"' {
			continue
		}
		switch x.name {
		case "source", "type":
			kind = r.text(x)
		case "path":
			where = r.text(x)
		}
	}
	switch {
	case kind == "local" || kind == "directory" || kind == "":
		if clean, ok := r.cleanPath("path", k.line, where); ok {
			e.Folder = clean
		}
	default:
		e.Remote = kind
	}
}

// EntryName is the file in which an installed plugin keeps the offer it was taken from, where the offer says something that
// the plugin's own manifest does not.
const EntryName = ".vak-entry.json"

// NameOnly is the offer of a plugin that has no manifest: it says its name.
func NameOnly(name string) *Entry {
	text, _ := json.Marshal(map[string]string{"name": name})
	return &Entry{Name: name, Strict: true, text: text}
}

// EntryFile is the content of EntryName for a plugin taken from this offer; nil where its manifest says everything. The
// error is a vakerr.PluginInvalid: the offer claims to be everything, and the plugin's manifest disagrees.
func (e Entry) EntryFile(fsys fs.FS) ([]byte, error) {
	own, has := ownManifest(fsys)
	if !e.Strict && has && own.namesComponents() {
		return nil, vakerr.New(vakerr.PluginInvalid, "the offer %s is not strict, so it is everything the plugin has, but the plugin's manifest names components too", quoted(e.Name)).
			WithRemedy("remove the components from one of the two, or write \"strict\": true")
	}
	if has && !e.components {
		return nil, nil
	}
	return e.text, nil
}

func ownManifest(fsys fs.FS) (Manifest, bool) {
	for _, c := range Candidates() {
		text, err := readFile(fsys, c.Path)
		if err != nil || !isFormat(c, text) {
			continue
		}
		m, _, err := ReadManifest(c, text)
		return m, err == nil
	}
	return Manifest{}, false
}

// namesComponents reports whether a manifest itself says where components are.
func (m Manifest) namesComponents() bool {
	return slices.ContainsFunc(m.Keys, func(k string) bool {
		switch k {
		case "skills", "commands", "hooks", "mcpServers", "agents", "lspServers", "outputStyles", "workflows", "components":
			return true
		}
		return false
	})
}

// addEntry adds what the offer says that a plugin was taken from.
func (m *Manifest) addEntry(text []byte) []capability.Problem {
	r := &reader{path: EntryName}
	top, ok := r.parse(text)
	if !ok {
		return r.problems
	}
	entry := Manifest{Format: FormatPlain, Path: EntryName}
	own := top[:0:0]
	for _, k := range top {
		switch k.name {
		case "source", "category", "tags", "relevance", "policy", "strict", "defaultEnabled":
		default:
			own = append(own, k)
		}
	}
	r.claude(&entry, own)
	if r.fatal {
		return r.problems
	}
	if m.Format == FormatNone && CheckName(entry.Name) == "" {
		m.Name = entry.Name
	}
	for _, s := range []struct {
		to   *string
		from string
	}{{&m.Title, entry.Title}, {&m.Version, entry.Version}, {&m.Description, entry.Description}, {&m.Author, entry.Author}, {&m.License, entry.License}} {
		if *s.to == "" {
			*s.to = s.from
		}
	}
	c, e := &m.Components, entry.Components
	c.Skills, c.Commands = union(c.Skills, e.Skills...), union(c.Commands, e.Commands...)
	c.Hooks, c.Servers = union(c.Hooks, e.Hooks...), union(c.Servers, e.Servers...)
	c.EntryHooks, c.EntryServers = e.InlineHooks, e.InlineServers
	m.Unsupported = append(m.Unsupported, entry.Unsupported...)
	m.Options = append(m.Options, entry.Options...)
	return r.problems
}
