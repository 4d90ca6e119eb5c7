package plugin

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Format is whose manifest a plugin has.
type Format string

// The formats, in the order in which a folder is asked for them.
const (
	FormatNative       Format = "vak"           // vak-plugin.json
	FormatAgentPlugins Format = "agent-plugins" // plugin.json with the $schema of Agent Plugins 1.0
	FormatClaude       Format = "claude"        // .claude-plugin/plugin.json
	FormatCodex        Format = "codex"         // .codex-plugin/plugin.json
	FormatCursor       Format = "cursor"        // .cursor-plugin/plugin.json
	FormatGemini       Format = "gemini"        // gemini-extension.json
	FormatPlain        Format = "plain"         // plugin.json of programs that follow Claude Code's
	FormatRegistry     Format = "mcp-registry"  // server.json: one server
	FormatMCPB         Format = "mcpb"          // manifest.json of an MCP bundle: one server
	FormatNone         Format = "none"          // no manifest: folders at their usual places
)

// Dialect is the one that the texts of a plugin of this format are written in.
func (f Format) Dialect() capability.Dialect {
	switch f {
	case FormatCodex:
		return capability.DialectCodex
	case FormatCursor:
		return capability.DialectCursor
	case FormatGemini:
		return capability.DialectGemini
	case FormatNative, FormatAgentPlugins, FormatClaude, FormatPlain, FormatRegistry, FormatMCPB, FormatNone:
	}
	return capability.DialectClaude
}

// Candidate is a file that may be the manifest of a folder.
type Candidate struct {
	Path   string
	Format Format
}

// Candidates are the manifests in order of precedence. The first that exists and is of its format is read, the others
// are not looked into.
func Candidates() []Candidate {
	return []Candidate{
		{"vak-plugin.json", FormatNative},
		{"plugin.json", FormatAgentPlugins},
		{".claude-plugin/plugin.json", FormatClaude},
		{".codex-plugin/plugin.json", FormatCodex},
		{".cursor-plugin/plugin.json", FormatCursor},
		{"gemini-extension.json", FormatGemini},
		{"plugin.json", FormatPlain},
		{".cursor/plugin.json", FormatCursor},
		{".github/plugin/plugin.json", FormatPlain},
		{".kimi-plugin/plugin.json", FormatPlain},
		{"server.json", FormatRegistry},
		{"manifest.json", FormatMCPB},
	}
}

// Manifest is what a plugin says of itself.
type Manifest struct {
	Format      Format
	Path        string // of the manifest; empty where there is none
	Name        string // identifies the plugin; safe as a name of a file
	Title       string // for people; empty: Name
	Version     string // for people; what counts is the digest of the content
	Description string
	Author      string
	License     string
	Keys        []string // its keys at the top, sorted

	Components  Components
	Serves      capability.Domains // for everything of the plugin that says nothing itself
	Options     []Option
	Servers     []Server            // servers that the manifest itself describes
	Refused     map[string]bool     // servers of its files that its format does not allow
	Unsupported []Unsupported       // what the plugin has and this program has no use for
	Others      []string            // manifests of other programs, which are ignored
	Problem     *capability.Problem // why the plugin cannot be used here at all: it is incompatible; nil: it can
}

// Components is where the parts of a plugin are, as paths relative to its folder, cleaned.
type Components struct {
	Skills        []string // folders of skills, folders that are one, or SKILL.md files
	Commands      []string // folders of commands, or files
	Hooks         []string // files
	Servers       []string // files
	InlineHooks   bool     // the manifest holds hooks
	InlineServers bool     // the manifest holds servers
	EntryHooks    bool     // the offer that the plugin was taken from holds hooks
	EntryServers  bool     // the offer holds servers
}

// Server is a server that a manifest describes in a shape of its own. Values are as written.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
}

// Option is a value that the operator gives a plugin.
type Option struct {
	Key         string `json:"key"`
	Type        string `json:"type,omitempty"` // string, number, boolean, directory, file
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Default     string `json:"default,omitempty"`
	Env         string `json:"env,omitempty"` // variable that the plugin's programs read it from, where the format has one
	Sensitive   bool   `json:"sensitive,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Multiple    bool   `json:"multiple,omitempty"`
	hasDefault  bool
}

// Unsupported is a kind of component that this program reads the name of and nothing more.
type Unsupported struct {
	Kind  string   `json:"kind"`            // as the format calls it: agents, outputStyles, lspServers ...
	Names []string `json:"names,omitempty"` // files or keys; empty where they are not listed
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._ @-]{0,62}[A-Za-z0-9._@-])?$`)

// CheckName says why a name cannot be that of a plugin; empty for one that can.
func CheckName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case strings.Contains(name, ".."):
		return "it holds .."
	case !namePattern.MatchString(name):
		return "it has other characters than A-Z a-z 0-9 . _ @ - and blanks within, or more than 64"
	}
	return ""
}

var kebab = regexp.MustCompile(`^[a-z0-9]+([-.][a-z0-9]+)*$`)

// Read finds and reads the manifest of a folder. fallback is the plugin's name where no manifest tells one. The error is
// a vakerr.PluginInvalid: nobody can say what the plugin is. What is wrong with single parts is told as problems.
func Read(fsys fs.FS, fallback string) (Manifest, []capability.Problem, error) {
	var chosen *Manifest
	var problems []capability.Problem
	others := []string{}
	for _, c := range Candidates() {
		text, err := readFile(fsys, c.Path)
		if err != nil {
			continue
		}
		if chosen != nil {
			if c.Path != chosen.Path && !slices.Contains(others, c.Path) && evident(c, text) {
				others = append(others, c.Path)
			}
			continue
		}
		if !isFormat(c, text) {
			continue
		}
		m, found, err := ReadManifest(c, text)
		if err != nil {
			return m, found, err
		}
		chosen, problems = &m, found
	}
	if chosen == nil {
		m, err := bare(fsys, fallback)
		if err != nil {
			return Manifest{}, nil, err
		}
		chosen = &m
	}
	chosen.Others = others
	if text, err := readFile(fsys, EntryName); err == nil {
		problems = append(problems, chosen.addEntry(text)...)
	}
	l := located{fsys: fsys, m: chosen, problems: problems}
	l.locate()
	return *chosen, l.problems, nil
}

// evident reports whether a file that was not chosen is worth mentioning as a manifest.
func evident(c Candidate, text []byte) bool {
	switch c.Format {
	case FormatRegistry, FormatMCPB, FormatAgentPlugins:
		return isFormat(c, text)
	case FormatNative, FormatClaude, FormatCodex, FormatCursor, FormatGemini, FormatPlain, FormatNone:
	}
	return true
}

// isFormat tells formats apart that share a name of a file, by what the file says.
func isFormat(c Candidate, text []byte) bool {
	switch c.Format {
	case FormatAgentPlugins, FormatRegistry, FormatMCPB:
	case FormatNative, FormatClaude, FormatCodex, FormatCursor, FormatGemini, FormatPlain, FormatNone:
		return true
	}
	r := reader{path: c.Path}
	top, ok := r.parse(text)
	if !ok {
		return false
	}
	has := func(key string) bool { _, found := find(top, key); return found }
	switch c.Format {
	case FormatAgentPlugins:
		schema, found := find(top, "$schema")
		return found && schema.value.Value.Kind() == '"' && agentSchema.MatchString(schemaText(schema))
	case FormatRegistry:
		return has("name") && (has("packages") || has("remotes"))
	case FormatMCPB:
		return has("server") && (has("manifest_version") || has("dxt_version"))
	case FormatNative, FormatClaude, FormatCodex, FormatCursor, FormatGemini, FormatPlain, FormatNone:
	}
	return true
}

// ReadManifest reads one manifest. The error is a vakerr.PluginInvalid with the first reason; the problems tell all.
func ReadManifest(c Candidate, text []byte) (Manifest, []capability.Problem, error) {
	r := &reader{path: c.Path}
	m := Manifest{Format: c.Format, Path: c.Path}
	top, ok := r.parse(text)
	if ok {
		for _, k := range top {
			m.Keys = append(m.Keys, k.name)
		}
		slices.Sort(m.Keys)
		r.manifest(&m, top)
	}
	if r.fatal {
		p := r.problems[0]
		return m, r.problems, vakerr.New(vakerr.PluginInvalid, "%s, line %d: %s", p.Path, p.Line, p.Message).WithRemedy("%s", p.Hint)
	}
	return m, r.problems, nil
}

func (r *reader) manifest(m *Manifest, top []member) {
	switch m.Format {
	case FormatNative:
		r.native(m, top)
	case FormatAgentPlugins:
		r.agentPlugins(m, top)
	case FormatClaude, FormatPlain:
		r.claude(m, top)
	case FormatCodex:
		r.codex(m, top)
	case FormatCursor:
		r.cursor(m, top)
	case FormatGemini:
		r.gemini(m, top)
	case FormatRegistry:
		r.registry(m, top)
	case FormatMCPB:
		r.mcpb(m, top)
	case FormatNone:
	}
	switch why := CheckName(m.Name); {
	case r.fatal:
	case why != "":
		line := 1
		if name, found := find(top, "name"); found {
			line = name.line
		}
		r.refuse("plugin_name", line, fmt.Sprintf("the plugin's name %s cannot be used: %s", quoted(m.Name), why), "write a name of lower-case letters, digits and hyphens")
	case !kebab.MatchString(m.Name):
		r.warn("plugin_name_style", 1, fmt.Sprintf("the plugin's name %s is not lower-case letters, digits and single hyphens", quoted(m.Name)), "rename it; some programs refuse it")
	}
}

// about reads the keys that every format of a plugin has and that only people read; false for another key.
func (r *reader) about(m *Manifest, k member) bool {
	switch k.name {
	case "name":
		m.Name = r.text(k)
	case "displayName", "title":
		m.Title = r.text(k)
	case "version":
		m.Version = r.text(k)
	case "description":
		m.Description = r.text(k)
	case "license":
		m.License = r.text(k)
	case "homepage":
		r.text(k)
	case "repository":
		if k.value.Value.Kind() == '{' {
			r.warn("plugin_type", k.line, "repository is an object", "write its address as a text; other programs refuse the file")
		} else {
			r.text(k)
		}
	case "keywords", "tags":
		r.texts(k, false)
	case "author", "publisher":
		m.Author = r.author(k)
	case "$schema", "category", "logo", "icon", "primaryColor", "source", "metadata", "minClientVersions", "screenshots", "links":
	default:
		return false
	}
	return true
}

// author reads an author: an object with a name, or, as many write it, a text.
func (r *reader) author(k member) string {
	if k.value.Value.Kind() == '"' {
		return r.text(k)
	}
	name := ""
	for _, a := range r.object(k) {
		if a.name == "name" {
			name = r.text(a)
		}
	}
	return name
}

func (r *reader) unknown(k member) {
	r.warn("plugin_unknown_key", k.line, fmt.Sprintf("the key %s is unknown and ignored", quoted(k.name)), "remove it, or correct its spelling")
}

// maxManifests bounds the candidates; each is read up to maxBytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBytes {
		return nil, fs.ErrInvalid
	}
	return fs.ReadFile(fsys, name)
}

// bare is the manifest of a folder without one: it has at least one component at a usual place.
func bare(fsys fs.FS, name string) (Manifest, error) {
	for _, place := range []string{EntryName, "SKILL.md", "skills", "commands", "agents", "hooks/hooks.json", ".mcp.json", "output-styles", ".lsp.json"} {
		if _, err := fs.Stat(fsys, place); err == nil {
			if why := CheckName(name); why != "" {
				return Manifest{}, vakerr.New(vakerr.PluginInvalid, "the plugin has no manifest, and the name of its folder cannot be its own: %s", why).
					WithRemedy("rename the folder, or write .claude-plugin/plugin.json with a name")
			}
			m := Manifest{Format: FormatNone, Name: path.Base(name)}
			m.Components = defaults(FormatNone)
			return m, nil
		}
	}
	return Manifest{}, vakerr.New(vakerr.PluginInvalid, "the folder holds no manifest of a plugin and no component at a usual place").
		WithRemedy("write vak-plugin.json or .claude-plugin/plugin.json with a name, or name the folder of one plugin")
}
