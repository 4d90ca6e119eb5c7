package declare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// maxJSONDepth bounds nesting; the parser below recurses and has no bound of its own.
const maxJSONDepth = 64

// readMCPJSON reads a .mcp.json in the dialect of Claude Code: an object mcpServers, or, as in plugins, the servers
// without it. Comments and trailing commas are accepted with a warning.
func readMCPJSON(file string, raw []byte) *product {
	r := &jsonReader{reporter: reporter{path: file}}
	root, f := r.parse(raw)
	if f != nil {
		r.fault(f)
		return &product{problems: r.problems, broken: true}
	}
	p := &product{}
	for _, m := range r.serverMembers(root) {
		if d, ok := r.server(m); ok {
			p.declarations = append(p.declarations, d)
		}
	}
	p.problems = r.problems
	return p
}

type jsonReader struct {
	reporter
	ends []int // offsets of the line ends
}

// member is one name and value of an object, with its line.
type member struct {
	name  string
	value hujson.Value
	line  int
}

func (r *jsonReader) parse(raw []byte) (hujson.Value, *fault) {
	text, f := normalise(raw)
	if f != nil {
		return hujson.Value{}, f
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return hujson.Value{}, &fault{"file_empty", 0, "the file is empty", `write {"mcpServers": {}}, or remove the file`}
	}
	for i, b := range text {
		if b == '\n' {
			r.ends = append(r.ends, i)
		}
	}
	if at := tooDeep(text); at >= 0 {
		return hujson.Value{}, &fault{"mcp_syntax", r.line(at), fmt.Sprintf("the JSON is nested deeper than %d levels", maxJSONDepth), "flatten it"}
	}
	root, err := hujson.Parse(text)
	if err != nil {
		line, detail := hujsonError(err)
		return root, &fault{"mcp_syntax", line, "this is no valid JSON: " + detail, "repair the line; until then an earlier version of the file stays in force"}
	}
	if !root.IsStandard() {
		r.warn("mcp_jsonc", 0, "the file holds comments or trailing commas, which JSON does not allow", "remove them; other programs refuse the file")
	}
	if root.Value.Kind() != '{' {
		return root, &fault{"mcp_syntax", 1, "the file holds no JSON object", `write {"mcpServers": {}}`}
	}
	return root, nil
}

// hujsonError takes the line out of "hujson: line 3, column 1: ..." and drops everything that may quote the file.
func hujsonError(err error) (line int, detail string) {
	var column int
	if n, _ := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); n < 2 {
		return 0, "it cannot be parsed"
	}
	return line, fmt.Sprintf("it cannot be parsed from column %d on", column)
}

// tooDeep returns the offset at which text nests deeper than the bound, or -1.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLength(text[i:])
		case '{', '[':
			if depth++; depth > maxJSONDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// commentLength is the length of the comment text begins with, less one; 0 when it begins with none.
func commentLength(text []byte) int {
	var end int
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		end = bytes.IndexByte(text, '\n')
	case bytes.HasPrefix(text, []byte("/*")):
		if end = bytes.Index(text[2:], []byte("*/")); end >= 0 {
			end += 3
		}
	default:
		return 0
	}
	if end < 0 {
		return len(text)
	}
	return end
}

// line is the 1-based line of an offset.
func (r *jsonReader) line(offset int) int { return 1 + sort.SearchInts(r.ends, offset) }

// members lists an object. Of a name that is written twice the second is left out with a problem.
func (r *jsonReader) members(v hujson.Value, of string) []member {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	all := make([]member, 0, len(object.Members))
	seen := make(map[string]bool, len(object.Members))
	for _, m := range object.Members {
		name := m.Name.Value.(hujson.Literal).String()
		line := r.line(m.Name.StartOffset)
		if seen[name] {
			r.error("mcp_duplicate", line, fmt.Sprintf("%s is written twice %s; the second is left out", quoted(name), of), "remove one of the two")
			continue
		}
		seen[name] = true
		all = append(all, member{name, m.Value, line})
	}
	return all
}

// maxServers bounds the entries of one file.
const maxServers = 512

func (r *jsonReader) serverMembers(root hujson.Value) []member {
	top := r.members(root, "at the top of the file")
	if i := slices.IndexFunc(top, func(m member) bool { return m.name == "mcpServers" }); i >= 0 {
		if top[i].value.Value.Kind() != '{' {
			r.error("mcp_entry", top[i].line, "mcpServers is no object", `write "mcpServers": {"name": {...}}`)
			return nil
		}
		top = r.members(top[i].value, "in mcpServers")
	} else if len(top) > 0 && !slices.ContainsFunc(top, r.looksLikeServer) {
		r.warn("mcp_root", top[0].line, "the file has no mcpServers", `write {"mcpServers": {"name": {...}}}`)
		return nil
	}
	if len(top) > maxServers {
		r.error("too_many", top[maxServers].line, fmt.Sprintf("more than %d servers; the rest is left out", maxServers), "remove what is not needed")
		top = top[:maxServers]
	}
	return top
}

func (r *jsonReader) looksLikeServer(m member) bool {
	object, ok := m.value.Value.(*hujson.Object)
	return ok && slices.ContainsFunc(object.Members, func(o hujson.ObjectMember) bool {
		name := o.Name.Value.(hujson.Literal).String()
		return name == "command" || name == "url"
	})
}

// entry collects the keys of one server.
type entry struct {
	*jsonReader
	name   string
	line   int
	server config.Server
	kind   string // the type as written; empty: none
	bad    bool
}

func (e *entry) fail(code string, line int, message, hint string) {
	e.bad = true
	e.error(code, line, fmt.Sprintf("server %s %s", quoted(e.name), message), hint)
}

func (e *entry) note(code string, line int, message, hint string) {
	e.warn(code, line, fmt.Sprintf("server %s %s", quoted(e.name), message), hint)
}

func (r *jsonReader) server(m member) (capability.Declaration, bool) {
	e := &entry{jsonReader: r, name: m.name, line: m.line, server: config.DefaultServer()}
	if err := checkName(m.name); err != nil {
		e.fail("server_name", m.line, "cannot be used: "+err.Error(), "rename it")
	} else if config.CheckName(m.name) != nil {
		e.note("server_name_style", m.line, "has a name with other characters than A-Z a-z 0-9 _ . -", "rename it; some programs refuse it")
	}
	if m.value.Value.Kind() != '{' {
		e.fail("mcp_entry", m.line, "is no object", `write {"command": "..."} or {"type": "http", "url": "..."}`)
		return capability.Declaration{}, false
	}
	known := len(r.problems)
	keys := r.members(m.value, "in server "+quoted(m.name))
	e.bad = e.bad || len(r.problems) > known // a key written twice: nobody can say which was meant
	for _, key := range keys {
		e.key(key)
	}
	e.transport()
	if e.bad || !e.server.Enabled {
		return capability.Declaration{}, false
	}
	for _, f := range e.server.Findings(e.name) {
		r.add(f.Severity, f.Code, m.line, f.Message, f.Hint)
		e.bad = e.bad || f.Severity == capability.SeverityError
	}
	return serverDeclaration(e.name, e.server, r.path), !e.bad
}

// key reads one key of an entry. Keys that only narrow are taken, those that grant are named and ignored.
func (e *entry) key(m member) {
	switch m.name {
	case "type":
		e.decode(m, &e.kind, "a text")
	case "command":
		e.command(m)
	case "args":
		var args []string
		e.decode(m, &args, "a list of texts")
		e.server.Args = append(e.server.Args, args...)
	case "env":
		e.server.Env = e.texts(m)
	case "headers":
		e.server.Headers = e.texts(m)
	case "cwd":
		e.decode(m, &e.server.Cwd, "a text")
	case "url":
		e.decode(m, &e.server.URL, "a text")
		if e.server.URL == "" && !e.bad {
			e.fail("server_url", m.line, "has an empty url: it is not configured", "write the address, or remove the entry")
		}
	case "disabled":
		var off bool
		e.decode(m, &off, "true or false")
		e.server.Enabled = e.server.Enabled && !off
	case "enabled":
		on := true
		e.decode(m, &on, "true or false")
		e.server.Enabled = e.server.Enabled && on
	case "timeout":
		e.timeout(m)
	case "includeTools", "enabledTools":
		e.decode(m, &e.server.EnabledTools, "a list of texts")
	case "excludeTools", "disabledTools":
		e.decode(m, &e.server.DisabledTools, "a list of texts")
	case "serves":
		e.serves(m)
	case "transport":
		e.nested(m)
	case "headersHelper", "oauth":
		e.note("mcp_unsupported", m.line, fmt.Sprintf("uses %s, which is not supported: it is sent its headers alone", m.name),
			`write what it needs into "headers", with ${NAME} for secrets`)
	case "autoApprove", "alwaysAllow", "trust":
		e.note("mcp_grant", m.line, fmt.Sprintf("asks for approval in advance (%s), which a file of the workspace cannot give", m.name),
			"write allow rules in [permissions] of vak.toml")
	case "description", "alwaysLoad":
	default:
		e.note("mcp_unknown_key", m.line, fmt.Sprintf("has the unknown key %s, which is ignored", quoted(m.name)), "remove it, or correct its spelling")
	}
}

// decode reads a value into target, exactly: JSON null and values of another type are refused.
func (e *entry) decode(m member, target any, want string) {
	v := m.value.Clone()
	v.Standardize()
	if raw := v.Pack(); m.value.Value.Kind() == 'n' || json.Unmarshal(raw, target) != nil {
		e.fail("mcp_type", m.line, fmt.Sprintf("has a %s that is not %s", m.name, want), "")
	}
}

// command reads a program's name, or program and arguments in one list.
func (e *entry) command(m member) {
	if m.value.Value.Kind() != '[' {
		e.decode(m, &e.server.Command, "a text")
		return
	}
	var list []string
	e.decode(m, &list, "a text or a list of texts")
	if len(list) > 0 {
		e.server.Command = list[0]
		e.server.Args = append(list[1:], e.server.Args...)
	}
}

// texts reads an object of texts. Numbers and booleans are what their spelling says, as for every process.
func (e *entry) texts(m member) map[string]string {
	if m.value.Value.Kind() != '{' {
		e.fail("mcp_type", m.line, fmt.Sprintf("has a %s that is no object of texts", m.name), `write {"NAME": "value"}`)
		return nil
	}
	all := map[string]string{}
	for _, t := range e.members(m.value, "in "+m.name) {
		literal, ok := t.value.Value.(hujson.Literal)
		switch {
		case ok && literal.Kind() == '"':
			all[t.name] = literal.String()
		case ok && literal.Kind() != 'n':
			all[t.name] = string(literal)
		default:
			e.fail("mcp_type", t.line, fmt.Sprintf("has in %s a %s that is no text", m.name, quoted(t.name)), `write it as "value"`)
		}
	}
	return all
}

// nested reads the key transport: some programs write the type there, others an object that holds the whole entry. The
// object is refused, for what stands in it would be lost.
func (e *entry) nested(m member) {
	if m.value.Value.Kind() != '"' {
		e.fail("mcp_unsupported", m.line, "nests its settings in transport, which is not supported", `write "type", "url" and "headers" directly in the entry`)
		return
	}
	e.decode(m, &e.kind, "a text")
	e.note("mcp_unknown_key", m.line, "writes its type as transport", `write "type"`)
}

// timeout is a whole number of milliseconds in this dialect. Other programs write seconds there.
func (e *entry) timeout(m member) {
	var ms int64
	e.decode(m, &ms, "a number of milliseconds")
	switch {
	case e.bad:
	case ms < 1000 || ms > (24*time.Hour).Milliseconds():
		e.note("mcp_timeout", m.line, fmt.Sprintf("has a timeout of %d ms, which is ignored", ms), "write milliseconds, 1000 or more")
	default:
		e.server.CallTimeout = time.Duration(ms) * time.Millisecond
	}
}

func (e *entry) serves(m member) {
	var list []string
	if m.value.Value.Kind() == '"' {
		list = splitWords(m.value.Value.(hujson.Literal).String())
	} else {
		e.decode(m, &list, "a list of domains")
	}
	e.server.Serves = capability.ParseDomains(list...)
}

// transport settles the type of an entry.
func (e *entry) transport() {
	switch folded := strings.ReplaceAll(strings.ToLower(e.kind), "_", "-"); folded {
	case "stdio", "local":
		e.server.Transport = capability.TransportStdio
	case "http", "streamable-http", "streamablehttp":
		e.server.Transport = capability.TransportHTTP
	case "":
		e.server.Transport = capability.TransportStdio
		if e.server.Command == "" && e.server.URL != "" {
			e.fail("mcp_type_missing", e.line, "has a url and no type", `add "type": "http"`)
		}
	case "sse", "ws", "websocket":
		e.fail("mcp_unsupported", e.line, fmt.Sprintf("has the type %s, which is not supported", quoted(e.kind)), `use its Streamable HTTP address with "type": "http"`)
	default:
		e.fail("mcp_type", e.line, fmt.Sprintf("has the unknown type %s", quoted(e.kind)), `write "stdio" or "http"`)
	}
}
