package plugin

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/capability"
)

// Namespace is the folder, and the key of extensions, in which an Agent Plugin keeps what it has for this program alone:
// commands/, hooks/hooks.json, and "serves" in the manifest.
const Namespace = "io.github.vak-actors"

// The schemas of Agent Plugins 1.0. They are names; nothing is fetched.
const (
	agentPluginSchema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
	agentMCPSchema    = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
)

// agentSchema matches the schema of any version, so that a later one is told from a plugin of another program.
var agentSchema = regexp.MustCompile(`^https://agent-plugins\.org/schemas/[0-9.]+/plugin\.schema\.json$`)

var agentName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)

func schemaText(m member) string {
	l, _ := m.value.Value.(hujson.Literal)
	return l.String()
}

// agentPlugins reads the plugin.json of Agent Plugins 1.0, whose schema is closed: an unknown field at the top, and
// extensions that are no object, are reported and ignored; whatever else breaks the schema refuses the plugin.
func (r *reader) agentPlugins(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	for _, k := range top {
		switch k.name {
		case "$schema":
			if s := r.text(k); s != agentPluginSchema {
				r.incompatible(m, k.line, fmt.Sprintf("the manifest follows %s, and this program reads 1.0.0", quoted(s)), "get the plugin for Agent Plugins 1.0.0, or update this program")
			}
		case "name":
			m.Name = r.text(k)
			if !agentName.MatchString(m.Name) || strings.Contains(m.Name, "--") || strings.Contains(m.Name, "..") {
				r.refuse("plugin_name", k.line, fmt.Sprintf("the name %s is not 1 to 64 of a-z 0-9 - . between letters or digits, without -- and ..", quoted(m.Name)), "rename it")
			}
		case "version":
			m.Version = r.text(k)
		case "description":
			m.Description = r.text(k)
		case "license":
			m.License = r.text(k)
		case "homepage", "repository":
			r.text(k)
		case "keywords":
			r.texts(k, false)
		case "author":
			r.agentAuthor(m, k)
		case "extensions":
			r.extensions(m, k)
		default:
			r.unknown(k)
		}
	}
}

func (r *reader) agentAuthor(m *Manifest, k member) {
	for _, x := range r.object(k) {
		switch x.name {
		case "name":
			m.Author = r.text(x)
		case "email", "url":
			r.text(x)
		default:
			r.refuse("plugin_schema", x.line, fmt.Sprintf("author has the field %s, which the schema does not allow", quoted(x.name)), "remove it")
		}
	}
}

// extensions reads ours. The others are of other programs.
func (r *reader) extensions(m *Manifest, k member) {
	if k.value.Value.Kind() != '{' {
		r.warn("plugin_schema", k.line, "extensions is no object and is ignored", `write {"`+Namespace+`": {...}}`)
		return
	}
	for _, x := range r.members(k.value, " in extensions") {
		switch {
		case x.value.Value.Kind() != '{':
			r.refuse("plugin_schema", x.line, fmt.Sprintf("the extension %s is no object", quoted(x.name)), "write an object")
		case x.name == Namespace:
			for _, own := range r.members(x.value, " in "+Namespace) {
				if own.name == "serves" {
					m.Serves = capability.ParseDomains(r.texts(own, true)...)
				} else {
					r.unknown(own)
				}
			}
		}
	}
}

// agentServers judges the mcp.json of an Agent Plugin. It returns the servers that its rules do not allow; one that is
// broken never stops the others. Where the file as a whole breaks the schema, all are refused.
func agentServers(file string, text []byte) (refused map[string]bool, all bool, problems []capability.Problem) {
	r := &reader{path: file}
	top, ok := r.parse(text)
	refused = map[string]bool{}
	var servers []member
	schema := false
	for _, k := range top {
		switch k.name {
		case "$schema":
			schema = true
			if s := r.text(k); s != agentMCPSchema {
				r.refuse("plugin_schema", k.line, fmt.Sprintf("the file follows %s, not %s", quoted(s), agentMCPSchema), "correct its $schema")
			}
		case "mcpServers":
			servers = r.object(k)
		default:
			r.refuse("plugin_schema", k.line, fmt.Sprintf("the file has the field %s, which the schema does not allow", quoted(k.name)), "remove it")
		}
	}
	if ok && !schema {
		r.refuse("plugin_schema", 1, "the file names no $schema", `add "$schema": "`+agentMCPSchema+`"`)
	}
	if r.fatal {
		return nil, true, r.problems
	}
	for _, s := range servers {
		if why := agentServer(s); why != "" {
			refused[s.name] = true
			r.component("plugin_server", s.line, fmt.Sprintf("server %s is refused: %s", quoted(s.name), why), "correct it by the rules of Agent Plugins 1.0")
		}
	}
	return refused, false, r.problems
}

// variant are the fields that a type of server allows.
var variants = map[string][]string{
	"stdio":           {"type", "command", "args", "env", "cwd"},
	"streamable-http": {"type", "url", "headers"},
	"sse":             {"type", "url", "headers"},
}

// agentServer says why a server breaks the rules; empty when it keeps them.
func agentServer(s member) string {
	var v struct {
		Type    *string           `json:"type"`
		Command *string           `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		Cwd     *string           `json:"cwd"`
		URL     *string           `json:"url"`
		Headers map[string]string `json:"headers"`
	}
	o, ok := s.value.Value.(*hujson.Object)
	if !ok || json.Unmarshal(raw(s.value), &v) != nil {
		return "it is no object, or a field has the wrong type"
	}
	if v.Type == nil || variants[*v.Type] == nil {
		return "its type is none of stdio, streamable-http and sse"
	}
	for _, f := range o.Members {
		if name := f.Name.Value.(hujson.Literal).String(); !slices.Contains(variants[*v.Type], name) {
			return fmt.Sprintf("a server of type %s has no field %s", *v.Type, quoted(name))
		}
	}
	if *v.Type == "stdio" {
		return agentStdio(v.Command, v.Cwd, v.Env)
	}
	if v.URL == nil {
		return "it has no url"
	}
	return agentURL(*v.URL)
}

func agentStdio(command, cwd *string, env map[string]string) string {
	switch {
	case command == nil || *command == "":
		return "it has no command"
	case strings.Contains(*command, "${"):
		return "its command holds a placeholder"
	case strings.ContainsAny(*command, " \t\n"):
		return "its command is more than one word"
	case strings.Contains(*command, "/") && !inside(*command, "./"):
		return "its command is neither a bare name nor a path inside the plugin that begins with ./"
	}
	if cwd != nil {
		ok := *cwd == "." || inside(*cwd, "./") || *cwd == "${PLUGIN_ROOT}" || *cwd == "${PLUGIN_DATA}" ||
			inside(*cwd, "${PLUGIN_ROOT}/") || inside(*cwd, "${PLUGIN_DATA}/")
		if !ok {
			return "its cwd is neither inside the plugin nor below ${PLUGIN_ROOT} or ${PLUGIN_DATA}"
		}
	}
	for _, name := range []string{"PLUGIN_ROOT", "PLUGIN_DATA"} {
		if _, set := env[name]; set {
			return "its env sets " + name
		}
	}
	return ""
}

// inside reports whether p begins with prefix and what follows stays below it.
func inside(p, prefix string) bool {
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && !strings.Contains(rest, "${") && fs.ValidPath(path.Clean(rest)) && !slices.Contains(strings.Split(rest, "/"), "..")
}

func agentURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return "its url is no address"
	case u.User != nil:
		return "its url holds user information"
	case u.Fragment != "" || strings.Contains(address, "#"):
		return "its url holds a fragment"
	case u.Scheme == "https":
		return ""
	case u.Scheme == "http" && loopback(u.Hostname()):
		return ""
	}
	return "its url is not https, and not http on loopback"
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
