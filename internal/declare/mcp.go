package declare

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// mcpClient is a program that reads MCP servers from files, and how its files are read.
type mcpClient struct {
	name     string // as people call it
	root     string // where its servers stand: one of mcpRoots
	settings bool   // its file holds other things too, and may hold no servers at all
	toml     bool
	seconds  bool // timeout is in seconds; otherwise in milliseconds
	urlIsSSE bool // a url without type is an address of the old HTTP+SSE transport
	notation config.Notation
}

var (
	clientClaude   = &mcpClient{name: "Claude Code", root: "mcpServers", notation: config.Notation{Shout: true}}
	clientDesktop  = &mcpClient{name: "Claude Desktop", root: "mcpServers", settings: true, notation: config.Notation{Shout: true}}
	clientCursor   = &mcpClient{name: "Cursor", root: "mcpServers", notation: config.Notation{Shout: true}}
	clientVSCode   = &mcpClient{name: "VS Code", root: "servers", notation: config.Notation{Shout: true}}
	clientSettings = &mcpClient{name: "VS Code", root: "mcp.servers", settings: true, notation: config.Notation{Shout: true}}
	clientCodex    = &mcpClient{name: "Codex", root: "mcp_servers", settings: true, toml: true, seconds: true, notation: config.Notation{Shout: true}}
	clientGemini   = &mcpClient{name: "Gemini", root: "mcpServers", settings: true, urlIsSSE: true, notation: config.Notation{Dollar: true}}
	clientOpencode = &mcpClient{name: "opencode", root: "mcp", settings: true, notation: config.Notation{Shout: true, Braces: true}}
	clientZed      = &mcpClient{name: "Zed", root: "context_servers", settings: true, notation: config.Notation{Shout: true}}
	clientCline    = &mcpClient{name: "Cline", root: "mcpServers", seconds: true, notation: config.Notation{Shout: true}}
)

// mcpRoots are the places where servers stand in the files of any program, and whose they are, in the order in which
// they are looked for where the file's own one is missing.
var mcpRoots = []struct {
	name  string
	whose *mcpClient
}{
	{"mcpServers", clientClaude},
	{"servers", clientVSCode},
	{"mcp.servers", clientSettings},
	{"mcp_servers", clientCodex},
	{"context_servers", clientZed},
	{"mcp", clientOpencode},
}

// clientOf says whose file it is, by its path.
func clientOf(file string) *mcpClient {
	base, folder := path.Base(file), path.Base(path.Dir(file))
	switch {
	case path.Ext(base) == ".toml":
		return clientCodex
	case folder == ".vscode" && base == "settings.json":
		return clientSettings
	case folder == ".vscode":
		return clientVSCode
	case folder == ".gemini", base == "gemini-extension.json":
		return clientGemini
	case folder == ".cursor":
		return clientCursor
	case folder == ".zed":
		return clientZed
	case folder == ".roo", base == "cline_mcp_settings.json":
		return clientCline
	case base == "opencode.json", base == "opencode.jsonc":
		return clientOpencode
	case base == "claude_desktop_config.json", base == ".claude.json":
		return clientDesktop
	}
	return clientClaude
}

// MCPFile is what a file of MCP servers says, whichever program it was written for.
type MCPFile struct {
	Client   string      // the program whose file it is
	Servers  []MCPServer // in order of the file
	Problems []capability.Problem
	Broken   bool // it could not be read as a whole
}

// MCPServer is one entry.
type MCPServer struct {
	Name      string // as written
	ID        string // under which it is addressed
	Line      int
	Server    config.Server // its placeholders rewritten; Enabled is false for one that is switched off
	Proposals []string      // permission rules that the entry asks for; a reader grants none of them
}

// ReadMCP reads a file of MCP servers. Whose it is follows from its path, where the servers stand from its content. below
// names the object of the file to look in, for programs that keep servers for each project; it may be missing.
func ReadMCP(file string, raw []byte, below ...string) MCPFile {
	r := &mcpReader{reporter: reporter{path: file}, client: clientOf(file)}
	f := MCPFile{Client: r.client.name}
	root, ok := r.parse(raw)
	for _, name := range below {
		m, _ := root.find(name)
		root = m.value
	}
	if ok {
		for _, m := range r.serverMembers(root) {
			if s, declared := r.server(m); declared {
				f.Servers = append(f.Servers, s)
			}
		}
	}
	f.Problems, f.Broken = r.problems, !ok
	return f
}

// readMCP is what a file of MCP servers contributes to a workspace.
func readMCP(file string, raw []byte) *product {
	f := ReadMCP(file, raw)
	p := &product{problems: f.Problems, broken: f.Broken}
	for _, s := range f.Servers {
		p.server(s.ID, s.Server, file)
	}
	return p
}

// unreadServers names the servers of a file that is known and not part of a workspace.
func unreadServers(file string, raw []byte) *product {
	f := ReadMCP(file, raw)
	r := reporter{path: file}
	if len(f.Servers) > 0 || path.Ext(file) == ".yaml" {
		r.warn("file_not_read", 0, fmt.Sprintf("the file is one of %s, whose servers are not read from a workspace", f.Client), declareInstead)
	}
	return &product{problems: r.problems}
}

type mcpReader struct {
	reporter
	client *mcpClient
	closed func(name string) string // why a server must not start; nil: nothing says so
	ids    map[string]bool
}

// parse reads the text in the notation of the file's name.
func (r *mcpReader) parse(raw []byte) (value, bool) {
	text, f := normalise(raw)
	if f != nil {
		r.fault(f)
		return value{}, false
	}
	switch ext := path.Ext(strings.TrimSuffix(r.path, ".example")); {
	case r.client.toml:
		if line := mergeMark(text); line > 0 {
			r.error("mcp_syntax", line, "a merge conflict was left in the file: this line is its mark", "keep one of the two sides")
			return value{}, false
		}
		doc, problems := config.ReadDocument(r.path, text)
		r.problems = append(r.problems, problems...)
		return fromTOML(doc, doc.Values), len(problems) == 0
	case ext == ".yaml" || ext == ".yml":
		if strings.TrimSpace(string(text)) == "" {
			r.error("file_empty", 0, "the file is empty", "remove it")
		} else {
			r.warn("file_not_read", 0, "MCP servers in YAML are not read", "declare them in .mcp.json, or as [mcp.servers.<name>] in vak.toml")
		}
		return value{}, false
	}
	root, standard, f := parseJSON(text)
	if f != nil {
		r.fault(f)
		return value{}, false
	}
	if !standard {
		r.warn("mcp_jsonc", 0, "the file holds comments or trailing commas, which JSON does not allow", "remove them; other programs refuse the file")
	}
	return root, true
}

// members lists an object. Of a name that is written twice the second is left out: with a warning where both say the
// same, otherwise with an error.
func (r *mcpReader) members(v value, of string) []member {
	all := make([]member, 0, len(v.members))
	at := make(map[string]int, len(v.members))
	for _, m := range v.members {
		i, twice := at[m.name]
		switch {
		case !twice:
			at[m.name] = len(all)
			all = append(all, m)
		case all[i].value.equal(m.value):
			r.warn("mcp_duplicate_same", m.line, fmt.Sprintf("%s is written twice %s, alike", quoted(m.name), of), "remove one of the two")
		default:
			r.error("mcp_duplicate", m.line, fmt.Sprintf("%s is written twice %s; the second is left out", quoted(m.name), of), "remove one of the two")
		}
	}
	return all
}

// equal reports whether two values say the same.
func (v value) equal(o value) bool {
	return v.kind == o.kind && v.text == o.text &&
		slices.EqualFunc(v.items, o.items, value.equal) &&
		slices.EqualFunc(v.members, o.members, func(a, b member) bool { return a.name == b.name && a.value.equal(b.value) })
}

// at finds the object of a root. The two parts of mcp.servers stand in each other, or in one name.
func at(root value, name string) (member, bool) {
	if m, found := root.find(name); found {
		return m, true
	}
	outer, inner, nested := strings.Cut(name, ".")
	if !nested {
		return member{}, false
	}
	m, found := root.find(outer)
	if !found {
		return member{}, false
	}
	return m.value.find(inner)
}

// maxServers bounds the entries of one file.
const maxServers = 512

// serverMembers finds the entries of a file: under the file's own root, else under that of another program, else, for
// files that hold nothing else, at the top.
func (r *mcpReader) serverMembers(root value) []member {
	r.members(root, "at the top of the file")
	section, client, found := r.section(root)
	switch {
	case found && section.value.kind != '{':
		r.error("mcp_entry", section.line, fmt.Sprintf("%s is no object", section.name), fmt.Sprintf(`write "%s": {"name": {...}}`, section.name))
		return nil
	case found:
		r.switches(root)
		r.notation(client, root)
		return r.bounded(r.members(section.value, "in "+section.name))
	case bareMap(root):
		return r.bounded(r.members(root, "at the top of the file"))
	case !r.client.settings && len(root.members) > 0:
		r.warn("mcp_root", root.members[0].line, "the file has no "+r.client.root, fmt.Sprintf(`write {"%s": {"name": {...}}}`, r.client.root))
	}
	return nil
}

// section finds the object that holds the servers, and whose it is. Any other one is named, for it is not read.
func (r *mcpReader) section(root value) (section member, client *mcpClient, found bool) {
	if section, found = at(root, r.client.root); found {
		client = r.client
	}
	for _, other := range mcpRoots {
		m, there := at(root, other.name)
		if !there || other.name == r.client.root || !r.holdsServers(other.name, m.value) {
			continue
		}
		if found {
			r.warn("mcp_root", m.line, fmt.Sprintf("%s stands beside %s and is not read: a file is read in one way", other.name, section.name),
				"keep all servers in one of the two")
			continue
		}
		section, client, found = m, other.whose, true
		r.warn("mcp_root", m.line, fmt.Sprintf("the servers stand in %s, where %s does not look for them in this file", other.name, r.client.name),
			"call it "+r.client.root)
	}
	return section, client, found
}

// holdsServers reports whether a root of another program is one here: the word stands for other things too.
func (r *mcpReader) holdsServers(name string, v value) bool {
	if name == "mcpServers" || name == "mcp_servers" || name == "context_servers" {
		return true
	}
	return v.kind == '{' && slices.ContainsFunc(v.members, looksLikeServer)
}

// bareMap reports whether a file is servers and nothing else. One that has texts at its top is a manifest.
func bareMap(root value) bool {
	return slices.ContainsFunc(root.members, looksLikeServer) &&
		!slices.ContainsFunc(root.members, func(m member) bool { return m.value.kind == '"' && m.name != "$schema" })
}

func looksLikeServer(m member) bool {
	return slices.ContainsFunc(m.value.members, func(o member) bool {
		return o.name == "command" || o.name == "url" || o.name == "httpUrl" || o.name == "serverUrl"
	})
}

func (r *mcpReader) bounded(all []member) []member {
	if len(all) > maxServers {
		r.error("too_many", all[maxServers].line, fmt.Sprintf("more than %d servers; the rest is left out", maxServers), "remove what is not needed")
		all = all[:maxServers]
	}
	return all
}

// notation settles how the entries are read: as the program does whose root they stand under.
func (r *mcpReader) notation(client *mcpClient, root value) {
	own := *client
	if inputs, found := root.find("inputs"); found {
		own.notation.Inputs = map[string]string{}
		for _, input := range inputs.value.items {
			id, _ := input.find("id")
			if def, given := input.find("default"); given && id.value.kind == '"' && def.value.kind == '"' {
				own.notation.Inputs[id.value.text] = def.value.text
			}
		}
	}
	r.client = &own
}

// switches reads the lists by which Gemini's settings choose among servers.
func (r *mcpReader) switches(root value) {
	mcp, found := root.find("mcp")
	if !found || r.client != clientGemini {
		return
	}
	allowed, lists := mcp.value.find("allowed")
	excluded, _ := mcp.value.find("excluded")
	r.closed = func(name string) string {
		named := func(v value) bool { return v.text == name }
		switch {
		case slices.ContainsFunc(excluded.value.items, named):
			return "mcp.excluded of the file switches it off"
		case lists && !slices.ContainsFunc(allowed.value.items, named):
			return "mcp.allowed of the file leaves it out"
		}
		return ""
	}
}
