package plugin

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// Placement is where an installed plugin stands and what the operator gave it.
type Placement struct {
	Scope     string
	Folder    capability.Folder
	Workspace string            // absolute
	Home      string            // absolute
	Values    map[string]string // of options, by key
}

// Origin is the origin of everything that the plugin declares.
func (m Manifest) Origin(scope string) capability.Origin {
	return capability.Origin{Kind: capability.OriginPlugin, Plugin: m.Name, Scope: scope}
}

// Qualified is the name that a capability of a plugin has for everybody: plugin:name, for a server
// plugin.<plugin>.<server>, and for a hook <event>/<plugin>:<command>.
func Qualified(plugin string, id capability.ID) capability.ID {
	switch id.Kind {
	case capability.KindMCP:
		id.Name = "plugin." + plugin + "." + id.Name
	case capability.KindHook:
		event, rest, found := strings.Cut(id.Name, "/")
		if !found {
			event, rest = id.Name, ""
		}
		id.Name = event + "/" + plugin + ":" + rest
	case capability.KindSkill, capability.KindCommand, capability.KindTool, capability.KindUnspecified:
		id.Name = plugin + ":" + id.Name
	}
	return id
}

// Place turns what was read in a plugin's folder into what it declares for everybody: under qualified names, with the
// places and values behind its placeholders. What needs a value that nobody gave is left out with a problem. The
// declarations that are handed in are not changed.
func (m Manifest) Place(read []capability.Declaration, p Placement) ([]capability.Declaration, []capability.Problem) {
	t := m.texts(p)
	all := make([]capability.Declaration, 0, len(read)+len(m.Servers))
	for _, d := range read {
		if d.ID.Kind == capability.KindMCP && m.Refused[d.ID.Name] {
			continue // agentServers said why
		}
		if d.Serves == nil {
			d.Serves = m.Serves
		}
		d.ID, d.Origin = Qualified(m.Name, d.ID), m.Origin(p.Scope)
		t.missing = ""
		switch c := d.Config.(type) {
		case *capability.Server:
			d.Config = t.server(c)
		case *capability.Hook:
			d.Config = t.hook(c)
		}
		if t.missing != "" {
			t.note(d.ID, t.missing)
			continue
		}
		all = append(all, d)
	}
	return all, t.problems
}

// note says that a capability lacks a value.
func (t *texts) note(id capability.ID, key string) {
	hint := fmt.Sprintf("vak-actors plugin enable %s --set %s=VALUE", t.m.Name, key)
	if o, known := t.m.option(key); known && o.Sensitive {
		hint = "set " + SecretName(t.m.Name, key) + " in secrets.env of the data folder, or in the environment"
	}
	t.problems = append(t.problems, capability.Problem{
		Severity: capability.SeverityError, Code: "plugin_option_missing", Path: t.m.label(), Message: fmt.Sprintf("%s is not declared: the option %s has no value", id, quoted(key)), Hint: hint,
	})
}

func (m Manifest) label() string { return path.Join("plugin:"+m.Name, m.Path) }

func (m Manifest) option(key string) (Option, bool) {
	i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Key == key })
	if i < 0 {
		return Option{}, false
	}
	return m.Options[i], true
}

// texts expands the placeholders of one plugin, once: what stands in a value is not expanded again.
type texts struct {
	m        Manifest
	p        Placement
	names    map[string]string
	missing  string // key of an option that a text needs and nobody gave
	problems []capability.Problem
}

// texts knows the placeholders of the plugin's format. Those of secrets stay as they are: who starts a server expands them.
func (m Manifest) texts(p Placement) *texts {
	root, data := p.Folder.Path, p.Folder.Data
	names := map[string]string{"VAK_PLUGIN_ROOT": root, "VAK_PLUGIN_DATA": data}
	add := func(more map[string]string) { maps.Copy(names, more) }
	switch m.Format {
	case FormatClaude, FormatPlain, FormatNone, FormatNative:
		add(map[string]string{"CLAUDE_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_DATA": data, "CLAUDE_PROJECT_DIR": p.Workspace, "PLUGIN_ROOT": root})
	case FormatCodex:
		add(map[string]string{"CODEX_PLUGIN_ROOT": root, "PLUGIN_ROOT": root, "PLUGIN_DATA": data, "CLAUDE_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_DATA": data})
	case FormatCursor:
		add(map[string]string{"CURSOR_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_ROOT": root, "workspaceFolder": p.Workspace, "userHome": p.Home, "pathSeparator": "/", "/": "/"})
	case FormatGemini:
		add(map[string]string{"extensionPath": root, "workspacePath": p.Workspace, "pathSeparator": "/", "/": "/"})
	case FormatAgentPlugins:
		names = map[string]string{"PLUGIN_ROOT": root, "PLUGIN_DATA": data}
	case FormatMCPB:
		add(map[string]string{
			"__dirname": root, "HOME": p.Home, "DESKTOP": path.Join(p.Home, "Desktop"), "DOCUMENTS": path.Join(p.Home, "Documents"),
			"DOWNLOADS": path.Join(p.Home, "Downloads"), "/": "/", "pathSeparator": "/",
		})
	case FormatRegistry:
	}
	return &texts{m: m, p: p, names: names}
}

// expand replaces ${name} where the plugin's format knows name.
func (t *texts) expand(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("${" + rest)
			return b.String()
		}
		if value, known := t.value(name); known {
			b.WriteString(value)
		} else {
			b.WriteString("${" + name + "}")
		}
		text = after
	}
}

func (t *texts) value(name string) (string, bool) {
	if key, is := strings.CutPrefix(name, "user_config."); is {
		return t.optionValue(key), true
	}
	value, known := t.names[name]
	return value, known
}

// optionValue is the operator's value, else the default, else nothing where nobody needs one.
func (t *texts) optionValue(key string) string {
	o, known := t.m.option(key)
	if o.Sensitive {
		return "${" + SecretName(t.m.Name, key) + "}"
	}
	if value, given := t.p.Values[key]; given && known {
		return value
	}
	if (!o.hasDefault && o.Default == "" && o.Required) || !known {
		t.missing = key
	}
	return o.Default
}

func (t *texts) list(all []string) []string {
	if all == nil {
		return nil
	}
	out := make([]string, 0, len(all))
	for _, text := range all {
		key, is := strings.CutPrefix(strings.TrimSuffix(text, "}"), "${user_config.")
		if o, known := t.m.option(key); is && known && o.Multiple {
			for v := range strings.SplitSeq(t.optionValue(key), ",") {
				if v = strings.TrimSpace(v); v != "" {
					out = append(out, v)
				}
			}
			continue
		}
		out = append(out, t.expand(text))
	}
	return out
}

func (t *texts) table(all map[string]string) map[string]string {
	if all == nil {
		return nil
	}
	out := make(map[string]string, len(all))
	for k, v := range all {
		out[k] = t.expand(v)
	}
	return out
}

func (t *texts) server(s *capability.Server) *capability.Server {
	c := *s
	c.Args, c.Env, c.Cwd = t.list(s.Args), t.table(s.Env), t.expand(s.Cwd)
	if t.m.Format != FormatAgentPlugins { // its command, url and headers are taken as they are
		c.Command, c.URL, c.Headers = t.expand(s.Command), t.expand(s.URL), t.table(s.Headers)
	}
	if c.Transport != capability.TransportStdio {
		return &c
	}
	if strings.HasPrefix(c.Command, "./") {
		c.Command = path.Join(t.p.Folder.Path, c.Command)
	}
	if strings.HasPrefix(c.Cwd, "./") || c.Cwd == "." || c.Cwd == "" && t.m.Format == FormatAgentPlugins {
		c.Cwd = path.Join(t.p.Folder.Path, c.Cwd)
	}
	env := t.environment()
	maps.Copy(env, c.Env)
	c.Env = env
	return &c
}

// environment is what the programs of a plugin find: where they stand, and the options that are no secrets.
func (t *texts) environment() map[string]string {
	env := map[string]string{}
	root, data := "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"
	switch t.m.Format {
	case FormatAgentPlugins:
		root, data = "PLUGIN_ROOT", "PLUGIN_DATA"
	case FormatClaude, FormatPlain, FormatNone, FormatCodex, FormatCursor:
	case FormatNative, FormatGemini, FormatRegistry, FormatMCPB:
		root, data = "VAK_PLUGIN_ROOT", "VAK_PLUGIN_DATA"
	}
	env[root], env[data] = t.p.Folder.Path, t.p.Folder.Data
	for _, o := range t.m.Options {
		name := o.Env
		if name == "" {
			name = "CLAUDE_PLUGIN_OPTION_" + config.EnvironmentName(o.Key)
		}
		switch value, given := t.p.Values[o.Key]; {
		case o.Sensitive && o.Env != "":
			env[name] = "${" + SecretName(t.m.Name, o.Key) + ":-}"
		case o.Sensitive:
		case given:
			env[name] = value
		case o.Default != "":
			env[name] = o.Default
		}
	}
	return env
}

// hook expands what no shell reads: a value in a line for the shell would be code.
func (t *texts) hook(h *capability.Hook) *capability.Hook {
	c := *h
	c.Root = t.p.Folder
	c.Args, c.URL, c.Headers = t.list(h.Args), t.expand(h.URL), t.table(h.Headers)
	if strings.Contains(c.Command, "${user_config.") {
		c.Idle = "its line for the shell holds the value of an option, which would be code there"
	}
	return &c
}
