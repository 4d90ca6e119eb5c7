package declare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// entry collects the keys of one server.
type entry struct {
	*mcpReader
	name      string
	line      int
	server    config.Server
	kind      string // the type as written; empty: none
	streams   bool   // its address was written as one of Streamable HTTP
	proposals []string
	bad       bool
}

func (e *entry) fail(code string, line int, message, hint string) {
	e.bad = true
	e.error(code, line, fmt.Sprintf("server %s %s", quoted(e.name), message), hint)
}

func (e *entry) note(code string, line int, message, hint string) {
	e.warn(code, line, fmt.Sprintf("server %s %s", quoted(e.name), message), hint)
}

// server reads one entry; false when it cannot be taken.
func (r *mcpReader) server(m member) (MCPServer, bool) {
	e := &entry{mcpReader: r, name: m.name, line: m.line, server: config.DefaultServer()}
	e.server.Line = m.line
	id := e.identify()
	if m.value.kind != '{' {
		e.fail("mcp_entry", m.line, "is no object", `write {"command": "..."} or {"type": "http", "url": "..."}`)
		return MCPServer{}, false
	}
	known := errorCount(r.problems)
	keys := r.members(m.value, "in server "+quoted(m.name))
	e.bad = e.bad || errorCount(r.problems) > known // a key written twice: nobody can say which was meant
	for _, key := range keys {
		e.key(key)
	}
	e.transport()
	if r.closed != nil {
		e.server.Closed = r.closed(m.name)
	}
	if e.bad {
		return MCPServer{}, false
	}
	if e.server.Enabled {
		for _, f := range e.server.Findings(e.name) {
			if f.Code == "server_url" {
				continue // other programs declare such a server, and so does this one: as one that cannot be started
			}
			r.add(f.Severity, f.Code, m.line, f.Message, f.Hint)
			e.bad = e.bad || f.Severity == capability.SeverityError
		}
	}
	return MCPServer{m.name, id, m.line, e.server, e.proposals}, !e.bad
}

func errorCount(problems []capability.Problem) (n int) {
	for _, p := range problems {
		if p.Severity == capability.SeverityError {
			n++
		}
	}
	return n
}

// identify settles under which name the server is addressed.
func (e *entry) identify() string {
	id := config.ServerID(e.name)
	switch {
	case checkName(id) != nil:
		e.fail("server_name", e.line, "has a name that nothing can be addressed by", "rename it")
		return ""
	case e.ids[id]:
		e.fail("server_name", e.line, fmt.Sprintf("is addressed as %s, like another one of this file", quoted(id)), "rename one of the two")
		return ""
	case id != e.name:
		e.server.Title = e.name
		e.note("server_name_style", e.line, fmt.Sprintf("has a name that cannot stand in an address: it is addressed as %s", quoted(id)), "rename it; some programs refuse it")
	case config.CheckName(id) != nil:
		e.note("server_name_style", e.line, "has a name with other characters than A-Z a-z 0-9 _ . -", "rename it; some programs refuse it")
	}
	if e.ids == nil {
		e.ids = map[string]bool{}
	}
	e.ids[id] = true
	return id
}

// key reads one key of an entry. Keys that only narrow are taken, those that grant are named and ignored.
func (e *entry) key(m member) {
	switch m.name {
	case "type", "Type", "transportType":
		e.text(m, &e.kind)
	case "command":
		e.command(m)
	case "args":
		e.server.Args = append(e.server.Args, e.rewrite(e.list(m))...)
	case "env", "environment":
		e.server.Env = e.merge(e.server.Env, e.texts(m))
	case "env_vars":
		e.passed(m)
	case "cwd":
		e.address(m, &e.server.Cwd)
	case "url", "serverUrl":
		e.url(m)
	case "httpUrl":
		e.streams = true
		e.url(m)
	case "headers", "http_headers":
		e.server.Headers = e.merge(e.server.Headers, e.texts(m))
	case "env_http_headers":
		for name, variable := range e.texts(m) {
			e.server.Headers = e.merge(e.server.Headers, map[string]string{name: "${" + variable + "}"})
		}
	case "bearer_token_env_var":
		var variable string
		e.text(m, &variable)
		e.server.Headers = e.merge(e.server.Headers, map[string]string{"Authorization": "Bearer ${" + variable + "}"})
	case "bearer_token":
		e.fail("mcp_unsupported", m.line, "has its token written out as bearer_token, which no program takes",
			`write bearer_token_env_var = "NAME" and set NAME in the environment`)
	case "transport":
		e.nested(m)
	default:
		e.choice(m)
	}
}

// choice reads the keys that say when and how far a server is used.
func (e *entry) choice(m member) {
	switch m.name {
	case "disabled":
		e.server.Enabled = e.server.Enabled && !e.truth(m, false)
	case "enabled":
		e.server.Enabled = e.server.Enabled && e.truth(m, true)
	case "timeout":
		e.timeout(m, &e.server.CallTimeout, e.client.seconds && !e.client.toml)
	case "tool_timeout_sec":
		e.timeout(m, &e.server.CallTimeout, true)
	case "startup_timeout_sec":
		e.timeout(m, &e.server.StartTimeout, true)
	case "startup_timeout_ms":
		e.timeout(m, &e.server.StartTimeout, false)
	case "includeTools", "enabledTools", "enabled_tools":
		e.server.EnabledTools = e.list(m)
	case "excludeTools", "disabledTools", "disabled_tools":
		e.server.DisabledTools = e.list(m)
	case "tools":
		e.tools(m)
	case "serves":
		e.serves(m)
	case "headersHelper", "oauth", "auth", "envFile", "authProviderType":
		e.note("mcp_unsupported", m.line, fmt.Sprintf("uses %s, which is not supported: it gets its env and headers alone", m.name),
			`write what it needs into "env" or "headers", with ${NAME} for secrets`)
	case "autoApprove", "alwaysAllow", "trust", "default_tools_approval_mode":
		e.grant(m)
	case "description", "alwaysLoad", "required", "supports_parallel_tool_calls", "$schema", "scopes", "name", "source", "gallery", "version":
	default:
		e.note("mcp_unknown_key", m.line, fmt.Sprintf("has the unknown key %s, which is ignored", quoted(m.name)), "remove it, or correct its spelling")
	}
}

func (e *entry) wrong(m member, want string) {
	e.fail("mcp_type", m.line, fmt.Sprintf("has a %s that is not %s", m.name, want), "write "+want)
}

func (e *entry) text(m member, target *string) {
	if m.value.kind != '"' {
		e.wrong(m, "a text")
		return
	}
	*target = m.value.text
}

// address reads a text with placeholders.
func (e *entry) address(m member, target *string) {
	e.text(m, target)
	*target = e.client.notation.Rewrite(*target)
}

func (e *entry) url(m member) {
	e.address(m, &e.server.URL)
	if e.server.URL == "" && !e.bad {
		e.fail("server_url", m.line, "has an empty url: it is not configured", "write the address, or remove the entry")
	}
}

func (e *entry) truth(m member, def bool) bool {
	if m.value.kind != 't' {
		e.wrong(m, "true or false")
		return def
	}
	return m.value.text == "true"
}

func (e *entry) list(m member) []string {
	if m.value.kind != '[' {
		e.wrong(m, "a list of texts")
		return nil
	}
	all := make([]string, 0, len(m.value.items))
	for _, item := range m.value.items {
		if item.kind != '"' {
			e.wrong(m, "a list of texts")
			return nil
		}
		all = append(all, item.text)
	}
	return all
}

// rewrite turns the placeholders of arguments. A dollar alone is one only for programs that say so: a shell may be meant
// to see it.
func (e *entry) rewrite(args []string) []string {
	n := e.client.notation
	n.Shout = false
	for i := range args {
		args[i] = n.Rewrite(args[i])
	}
	return args
}

// command reads a program's name, program and arguments in one list, or an object of path, args and env.
func (e *entry) command(m member) {
	switch m.value.kind {
	case '[':
		if list := e.rewrite(e.list(m)); len(list) > 0 {
			e.server.Command = list[0]
			e.server.Args = append(list[1:], e.server.Args...)
		}
	case '{':
		for _, key := range e.members(m.value, "in command") {
			if key.name == "path" {
				key.name = "command"
			}
			if key.value.kind == '{' && key.name == "command" {
				e.wrong(key, "a text")
				return
			}
			e.key(key)
		}
	default:
		e.text(m, &e.server.Command)
		e.server.Command = e.rewrite([]string{e.server.Command})[0]
	}
}

func (e *entry) merge(into, more map[string]string) map[string]string {
	if into == nil {
		return more
	}
	maps.Copy(into, more)
	return into
}

// texts reads an object of texts, or a list of NAME=value. Numbers and booleans are what their spelling says, as for
// every process; null, and a name alone, is the variable of that name in this program's environment.
func (e *entry) texts(m member) map[string]string {
	all := map[string]string{}
	switch m.value.kind {
	case '{':
		for _, t := range e.members(m.value, "in "+m.name) {
			switch t.value.kind {
			case '"', '0', 't':
				all[t.name] = e.client.notation.Rewrite(t.value.text)
			case 'n':
				all[t.name] = "${" + t.name + "}"
			default:
				e.fail("mcp_type", t.line, fmt.Sprintf("has in %s a %s that is no text", m.name, quoted(t.name)), `write it as "value"`)
			}
		}
	case '[':
		for _, pair := range e.list(m) {
			name, text, assigned := strings.Cut(pair, "=")
			if !assigned {
				text = "${" + name + "}"
			}
			all[name] = e.client.notation.Rewrite(text)
		}
	default:
		e.fail("mcp_type", m.line, fmt.Sprintf("has a %s that is no object of texts", m.name), `write {"NAME": "value"}`)
	}
	return all
}

// passed reads the names of variables that a child gets from this program's environment, where they are set.
func (e *entry) passed(m member) {
	if m.value.kind != '[' {
		e.wrong(m, "a list of names")
		return
	}
	for _, item := range m.value.items {
		if name, found := item.find("name"); found {
			item = name.value
		}
		if item.kind != '"' {
			e.wrong(m, "a list of names")
			return
		}
		e.server.Env = e.merge(e.server.Env, map[string]string{item.text: "${" + item.text + ":-}"})
	}
}

// nested reads the key transport: some programs write the type there, others an object that holds the whole entry. The
// object is refused, for what stands in it would be lost.
func (e *entry) nested(m member) {
	if m.value.kind != '"' {
		e.fail("mcp_unsupported", m.line, "nests its settings in transport, which is not supported", `write "type", "url" and "headers" directly in the entry`)
		return
	}
	e.text(m, &e.kind)
	e.note("mcp_unknown_key", m.line, "writes its type as transport", `write "type"`)
}

// timeout reads a number of seconds or milliseconds. A value that can only be meant in the other unit is left out.
func (e *entry) timeout(m member, target *time.Duration, seconds bool) {
	unit, name, other := time.Millisecond, "milliseconds", "seconds"
	if seconds {
		unit, name, other = time.Second, "seconds", "milliseconds"
	}
	n, err := strconv.ParseFloat(m.value.text, 64)
	if m.value.kind != '0' || err != nil || math.IsInf(n, 0) {
		e.wrong(m, "a number of "+name)
		return
	}
	switch d := time.Duration(n * float64(unit)); {
	case n <= 0 || n*float64(unit) > float64(24*time.Hour) || d < time.Second:
		e.note("mcp_timeout", m.line, fmt.Sprintf("has a %s of %s %s, which is ignored: %s may be meant", m.name, m.value.text, name, other),
			fmt.Sprintf("write %s, from 1 s to 24 h", name))
	default:
		*target = d
		if d > time.Hour {
			e.note("mcp_timeout", m.line, fmt.Sprintf("has a %s of %s %s, which is more than an hour", m.name, m.value.text, name), "is it meant in "+other+"?")
		}
	}
}

// tools reads the key of Copilot, a list of the tools that may be used, and that of Codex, a table of approvals.
func (e *entry) tools(m member) {
	switch {
	case m.value.kind == '[' && !slices.ContainsFunc(m.value.items, func(v value) bool { return v.kind != '"' }):
		e.server.EnabledTools = e.list(m)
	case m.value.kind == '{':
		for _, tool := range e.members(m.value, "in tools") {
			if mode, found := tool.value.find("approval_mode"); found && mode.value.text == "approve" {
				e.propose(tool.name)
			}
		}
		e.grant(member{m.name, value{kind: 't', text: strconv.FormatBool(len(e.proposals) > 0)}, m.line})
	default:
		e.note("mcp_unknown_key", m.line, "has a list of tools that is no list of names, which is ignored", "remove it")
	}
}

// propose notes that the entry asks for a tool to be allowed.
func (e *entry) propose(tool string) {
	e.proposals = append(e.proposals, config.ServerID(e.name)+"/"+tool)
}

// grant names an approval that a file asks for: only people give one.
func (e *entry) grant(m member) {
	switch {
	case m.value.kind == '[':
		for _, tool := range m.value.items {
			if tool.kind == '"' {
				e.propose(tool.text)
			}
		}
	case m.value.kind == 't' && m.value.text == "true" && m.name != "tools", m.value.kind == '"' && m.value.text == "approve":
		e.propose("*")
	}
	if len(e.proposals) > 0 {
		rules := make([]string, 0, len(e.proposals))
		for _, p := range e.proposals[:min(len(e.proposals), 5)] {
			rules = append(rules, quoted(p))
		}
		e.note("mcp_grant", m.line, fmt.Sprintf("asks for approval in advance (%s), which no file of servers can give", m.name),
			"to give it, add to allow in [permissions] of vak.toml: "+strings.Join(rules, ", "))
	}
}

func (e *entry) serves(m member) {
	if m.value.kind == '"' {
		e.server.Serves = capability.ParseDomains(splitWords(m.value.text)...)
	} else {
		e.server.Serves = capability.ParseDomains(e.list(m)...)
	}
}

// transport settles the type of an entry.
func (e *entry) transport() {
	switch folded := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(e.kind)); folded {
	case "stdio", "local":
		e.server.Transport = capability.TransportStdio
	case "http", "streamable-http", "streamablehttp", "streamable", "remote":
		e.server.Transport = capability.TransportHTTP
	case "sse":
		e.server.Transport = capability.TransportSSE
	case "ws", "websocket":
		e.server.Transport = capability.TransportWebSocket
	case "":
		e.untyped()
	default:
		e.fail("mcp_type", e.line, fmt.Sprintf("has the unknown type %s", quoted(e.kind)), `write "stdio" or "http"`)
	}
}

// untyped settles the type of an entry that names none.
func (e *entry) untyped() {
	switch {
	case e.server.Command != "" || e.server.URL == "":
		e.server.Transport = capability.TransportStdio
	case e.streams || e.client.toml:
		e.server.Transport = capability.TransportHTTP
	case e.client.urlIsSSE:
		e.server.Transport = capability.TransportSSE
		e.note("mcp_type_missing", e.line, "has a url and no type, which "+e.client.name+" takes for the old HTTP+SSE transport",
			`write "httpUrl" if the server speaks Streamable HTTP`)
	default:
		e.server.Transport = capability.TransportHTTP
		e.note("mcp_type_missing", e.line, "has a url and no type: it is taken for http, which some programs refuse", `add "type": "http"`)
	}
}
