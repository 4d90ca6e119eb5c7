package plugin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/vak-actors/vak-actors/capability"
)

// defaults are the places where a format looks without being told.
func defaults(f Format) Components {
	c := Components{Skills: []string{"skills"}}
	switch f {
	case FormatClaude, FormatPlain, FormatNone, FormatCodex:
		c.Commands, c.Hooks, c.Servers = []string{"commands"}, []string{"hooks/hooks.json"}, []string{".mcp.json"}
	case FormatCursor:
		c.Commands, c.Hooks, c.Servers = []string{"commands"}, []string{"hooks/hooks.json"}, []string{"mcp.json"}
	case FormatGemini:
		c.Commands, c.Hooks = []string{"commands"}, []string{"hooks/hooks.json"}
	case FormatAgentPlugins:
		c.Servers = []string{"mcp.json"}
		c.Commands, c.Hooks = []string{Namespace + "/commands"}, []string{Namespace + "/hooks/hooks.json"}
	case FormatNative, FormatRegistry, FormatMCPB:
		c.Skills = nil
	}
	return c
}

// cleanPath checks a path of a manifest. An absolute one and one with .. refuse the plugin, for whoever writes that wants
// out of its folder; a missing ./ is a warning.
func (r *reader) cleanPath(key string, line int, p string) (string, bool) {
	switch {
	case p == "" || len(p) > 1024 || strings.ContainsAny(p, "\x00\n"):
		r.refuse("plugin_path", line, fmt.Sprintf("%s names no path", quoted(key)), `write it as "./folder"`)
		return "", false
	case strings.Contains(p, `\`):
		r.refuse("plugin_path", line, fmt.Sprintf("the path %s of %s holds a backslash", quoted(p), quoted(key)), "write / between folders")
		return "", false
	case strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || len(p) > 1 && p[1] == ':':
		r.refuse("plugin_path", line, fmt.Sprintf("the path %s of %s is absolute", quoted(p), quoted(key)), "keep everything inside the plugin")
		return "", false
	case slices.Contains(strings.Split(p, "/"), ".."):
		r.refuse("plugin_path", line, fmt.Sprintf("the path %s of %s leaves the plugin", quoted(p), quoted(key)), "keep everything inside the plugin")
		return "", false
	case p != "." && !strings.HasPrefix(p, "./"):
		r.warn("plugin_path_style", line, fmt.Sprintf("the path %s of %s does not begin with ./", quoted(p), quoted(key)), "write ./ before it; other programs refuse it")
	}
	return path.Clean(p), true
}

// paths reads one path or a list of them.
func (r *reader) paths(k member) []string {
	var all []string
	for _, p := range r.texts(k, true) {
		if clean, ok := r.cleanPath(k.name, k.line, p); ok && !slices.Contains(all, clean) {
			all = append(all, clean)
		}
	}
	return all
}

// mixed reads a component that is a path, an object in place, or a list of both.
func (r *reader) mixed(k member) (files []string, inline bool) {
	switch v := k.value.Value.(type) {
	case *hujson.Object:
		return nil, true
	case *hujson.Array:
		for _, e := range v.Elements {
			f, in := r.mixed(member{k.name, e, r.line(e.StartOffset)})
			if in {
				r.component("plugin_inline_list", k.line, fmt.Sprintf("%s holds an object within a list, which is not supported", quoted(k.name)), "write the object alone, or put it into a file")
				continue
			}
			files = append(files, f...)
		}
		return files, false
	}
	return r.paths(k), false
}

// union adds what is not there yet, in order.
func union(a []string, b ...string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// parts reads a key that names a kind of component. replace says whether a path takes the place of the usual one.
func (r *reader) parts(m *Manifest, k member, replace bool) bool {
	c := &m.Components
	set := func(list *[]string, found []string) {
		if replace {
			*list = found
		} else {
			*list = union(*list, found...)
		}
	}
	switch k.name {
	case "skills":
		c.Skills = union(c.Skills, r.paths(k)...) // they add up everywhere
	case "commands":
		if k.value.Value.Kind() == '{' {
			r.component("plugin_unsupported", k.line, "commands is an object, which is not supported", "name the files in a list")
			return true
		}
		set(&c.Commands, r.paths(k))
	case "hooks":
		files, inline := r.mixed(k)
		c.Hooks, c.InlineHooks = union(c.Hooks, files...), inline
	case "mcpServers":
		files, inline := r.mixed(k)
		if bundle := slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, ".mcpb") || strings.HasSuffix(f, ".dxt") }); bundle >= 0 {
			r.component("plugin_unsupported", k.line, "mcpServers names a bundle, which is not supported inside a plugin", "install the bundle as a plugin of its own")
			files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, ".mcpb") || strings.HasSuffix(f, ".dxt") })
		}
		c.Servers, c.InlineServers = union(c.Servers, files...), inline
	default:
		return false
	}
	return true
}

// foreign notes a kind of component that this program has no use for.
func (r *reader) foreign(m *Manifest, k member) {
	u := Unsupported{Kind: k.name}
	switch k.value.Value.Kind() {
	case '"', '[':
		u.Names = r.paths(k)
	case '{':
		for _, x := range r.members(k.value, "") {
			u.Names = append(u.Names, x.name)
		}
	}
	m.Unsupported = append(m.Unsupported, u)
}

// claude reads .claude-plugin/plugin.json: a wrong type in a known field fails the plugin, except experimental and
// metadata; unknown fields are ignored.
func (r *reader) claude(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	for _, k := range top {
		switch k.name {
		case "agents", "workflows", "outputStyles", "lspServers", "channels":
			r.foreign(m, k)
		case "experimental":
			for _, x := range r.members(k.value, "") {
				m.Unsupported = append(m.Unsupported, Unsupported{Kind: "experimental." + x.name})
			}
		case "userConfig":
			m.Options = r.options(k)
		case "dependencies":
			r.dependencies(m, k)
		case "defaultEnabled", "strict":
			r.truth(k) // what is installed is disabled, whatever it wishes
		default:
			if !r.about(m, k) && !r.parts(m, k, true) {
				r.unknown(k)
			}
		}
	}
}

// dependencies are not installed; the operator is told.
func (r *reader) dependencies(m *Manifest, k member) {
	if k.value.Value.Kind() != '[' && k.value.Value.Kind() != '{' {
		r.refuse("plugin_type", k.line, "dependencies is neither a list nor an object", `write ["name"]`)
		return
	}
	m.Unsupported = append(m.Unsupported, Unsupported{Kind: "dependencies"})
}

// codex reads .codex-plugin/plugin.json, whose paths add to the usual ones.
func (r *reader) codex(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	for _, k := range top {
		switch k.name {
		case "apps":
			r.foreign(m, k)
		case "interface":
			for _, x := range r.object(k) {
				if x.name == "displayName" {
					m.Title = r.text(x)
				}
			}
		default:
			if !r.about(m, k) && !r.parts(m, k, false) {
				r.unknown(k)
			}
		}
	}
}

// cursor reads .cursor-plugin/plugin.json.
func (r *reader) cursor(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	for _, k := range top {
		switch k.name {
		case "agents", "rules":
			r.foreign(m, k)
		case "variables":
			m.Options = r.options(k)
		default:
			if !r.about(m, k) && !r.parts(m, k, true) {
				r.unknown(k)
			}
		}
	}
}

// gemini reads gemini-extension.json. What would grant or change other tools than its own is not taken.
func (r *reader) gemini(m *Manifest, top []member) {
	m.Components = defaults(m.Format)
	for _, k := range top {
		switch k.name {
		case "mcpServers":
			r.object(k)
			m.Components.InlineServers = true
		case "contextFileName", "excludeTools":
			m.Unsupported = append(m.Unsupported, Unsupported{Kind: k.name, Names: r.texts(k, true)})
		case "themes", "plan", "migratedTo":
			m.Unsupported = append(m.Unsupported, Unsupported{Kind: k.name})
		case "settings":
			m.Options = r.settings(k)
		default:
			if !r.about(m, k) {
				r.unknown(k)
			}
		}
	}
}

// settings reads the settings of a Gemini extension: each is a variable that its programs read.
func (r *reader) settings(k member) []Option {
	list, ok := k.value.Value.(*hujson.Array)
	if !ok {
		r.refuse("plugin_type", k.line, "settings is no list", `write [{"name": "...", "envVar": "..."}]`)
		return nil
	}
	var all []Option
	for _, e := range list.Elements {
		o := Option{Type: "string"}
		for _, x := range r.object(member{k.name, e, r.line(e.StartOffset)}) {
			switch x.name {
			case "name":
				o.Title = r.text(x)
			case "description":
				o.Description = r.text(x)
			case "envVar":
				o.Env = r.text(x)
			case "sensitive":
				o.Sensitive = r.truth(x)
			}
		}
		if o.Key = o.Env; !optionKey.MatchString(o.Key) {
			r.component("plugin_option", r.line(e.StartOffset), "a setting names no variable", `add "envVar": "NAME"`)
			continue
		}
		all = append(all, o)
	}
	return all
}

// NativeSchema is the version of vak-plugin.json that this program reads.
const NativeSchema = 1

// native reads vak-plugin.json:
//
//	{
//	  "schema": 1,                          required
//	  "name": "kit",                        required
//	  "version": "1.0.0", "description": "...", "author": {"name": "..."}, "license": "...", "homepage": "...",
//	  "components": {                       each a path or a list of paths inside the plugin; nothing is found unnamed
//	    "skills": "./skills",               folders of skills, folders that are one, or SKILL.md files
//	    "commands": "./commands",           folders or files
//	    "hooks": "./hooks.json",            files in the shape of Claude Code or Cursor
//	    "servers": "./mcp.json"             files with an object mcpServers
//	  },
//	  "serves": ["web"],                    domains of what says none itself
//	  "options": {"region": {"type": "string", "description": "...", "default": "eu", "required": true, "sensitive": false}}
//	}
//
// Its components stand in an object of their own, so that one that this program does not know is told from a misspelt
// remark, and refused. Its texts may hold ${VAK_PLUGIN_ROOT}, ${VAK_PLUGIN_DATA} and ${user_config.KEY}.
func (r *reader) native(m *Manifest, top []member) {
	schema := false
	for _, k := range top {
		switch k.name {
		case "schema":
			schema = true
			if n := string(raw(k.value)); n != fmt.Sprint(NativeSchema) {
				r.incompatible(m, k.line, fmt.Sprintf("the manifest has schema %s, and this program reads schema %d", quoted(n), NativeSchema), "update this program, or get the plugin for its version")
			}
		case "components":
			r.nativeComponents(m, k)
		case "serves":
			m.Serves = capability.ParseDomains(r.texts(k, true)...)
		case "options":
			m.Options = r.options(k)
		default:
			if !r.about(m, k) {
				r.unknown(k)
			}
		}
	}
	if !schema {
		r.refuse("plugin_schema", 1, "the manifest names no schema", fmt.Sprintf(`add "schema": %d`, NativeSchema))
	}
}

func (r *reader) nativeComponents(m *Manifest, k member) {
	for _, x := range r.object(k) {
		switch x.name {
		case "skills":
			m.Components.Skills = r.paths(x)
		case "commands":
			m.Components.Commands = r.paths(x)
		case "hooks":
			m.Components.Hooks = r.paths(x)
		case "servers":
			m.Components.Servers = r.paths(x)
		default:
			r.incompatible(m, x.line, fmt.Sprintf("the plugin has components of the unknown type %s", quoted(x.name)), "update this program, or remove them from the manifest")
		}
	}
}

// incompatible says that the plugin may be right and this program cannot use it.
func (r *reader) incompatible(m *Manifest, line int, message, hint string) {
	r.component("plugin_incompatible", line, message, hint)
	if m.Problem == nil {
		m.Problem = &capability.Problem{
			Severity: capability.SeverityError, Code: "plugin_incompatible", Path: r.path, Line: line, Message: message, Hint: hint,
		}
	}
}
