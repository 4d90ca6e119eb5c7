package policy

import (
	"fmt"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
)

// Channel says what is visible on one channel. It is a stack of layers and shows only what every layer shows, so adding
// a layer can only restrict. The nil *Channel shows everything. A Channel is never changed after it was compiled.
type Channel struct{ layers []layer }

type layer struct {
	tools, skills, hooks nameFilter
	mcp                  addressFilter
}

// nameFilter is a compiled Filter. open is false where an allow list exists.
type nameFilter struct {
	open        bool
	allow, deny []glob
}

type addressFilter struct {
	open        bool
	allow, deny []addressGlob
}

// CompileChannel compiles the rules of channel name. A pattern that cannot be read is a problem: in an allow list it
// grants nothing, in a deny list it hides the whole category, since nobody can say what it was meant to hide.
func CompileChannel(name string, rules ChannelRules) (*Channel, []ChannelProblem) {
	c := channelCompiler{channel: name}
	l := layer{
		tools:  c.names("tools", rules.Tools),
		skills: c.names("skills", rules.Skills),
		hooks:  c.names("hooks", rules.Hooks),
		mcp:    c.addresses("mcp", rules.MCP),
	}
	channel := &Channel{layers: []layer{l}}
	for _, also := range rules.Also {
		further, problems := CompileChannel(name, also)
		channel, c.problems = Compose(channel, further), append(c.problems, problems...)
	}
	return channel, c.problems
}

// Compose returns the channel that shows what both show.
func Compose(parent, child *Channel) *Channel {
	switch {
	case parent == nil:
		return child
	case child == nil:
		return parent
	}
	return &Channel{layers: slices.Concat(parent.layers, child.layers)}
}

// ChannelProblem is a pattern of a channel that cannot be read, and where it stands: [channels.<name>] <category>.<list>,
// counted from 0.
type ChannelProblem struct {
	Category, List string
	Entry          int
	Message, Hint  string
}

type channelCompiler struct {
	channel  string
	problems []ChannelProblem
}

func (c *channelCompiler) names(category string, f Filter) nameFilter {
	allow := compileList(c, category, "allow", f.Allow, compileGlob, nil)
	deny := compileList(c, category, "deny", f.Deny, compileGlob, []glob{"*"})
	return nameFilter{f.Allow == nil, allow, deny}
}

func (c *channelCompiler) addresses(category string, f Filter) addressFilter {
	allow := compileList(c, category, "allow", f.Allow, compileAddress, nil)
	deny := compileList(c, category, "deny", f.Deny, compileAddress, []addressGlob{{"*", "*"}})
	return addressFilter{f.Allow == nil, allow, deny}
}

// compileList compiles every pattern of a list; instead is what stands in for an unreadable one.
func compileList[G any](c *channelCompiler, category, list string, patterns []string, compile func(string) (G, error), instead []G) []G {
	var all []G
	for i, p := range patterns {
		g, err := compile(p)
		if err != nil {
			c.problems = append(c.problems, ChannelProblem{
				Category: category, List: list, Entry: i,
				Message: fmt.Sprintf("[channels.%s] %s.%s, entry %d: %v", c.channel, category, list, i+1, err),
				Hint:    "write * for anything, for instance mcp = { deny = [\"github/delete_*\"] }",
			})
			all = append(all, instead...)
			continue
		}
		all = append(all, g)
	}
	return all
}

func (f nameFilter) shows(name string) bool {
	matches := func(g glob) bool { return g.match(name) }
	return !slices.ContainsFunc(f.deny, matches) && (f.open || slices.ContainsFunc(f.allow, matches))
}

func (f addressFilter) showsTool(server, tool string) bool {
	matches := func(g addressGlob) bool { return g.server.match(server) && g.tool.match(tool) }
	return !slices.ContainsFunc(f.deny, matches) && (f.open || slices.ContainsFunc(f.allow, matches))
}

func (f addressFilter) showsServer(server string) bool {
	denied := slices.ContainsFunc(f.deny, func(g addressGlob) bool { return g.tool.universal() && g.server.match(server) })
	return !denied && (f.open || slices.ContainsFunc(f.allow, func(g addressGlob) bool { return g.server.match(server) }))
}

func (c *Channel) every(shows func(*layer) bool) bool {
	if c == nil {
		return true
	}
	for i := range c.layers {
		if !shows(&c.layers[i]) {
			return false
		}
	}
	return true
}

// AllowsTool reports whether the tool, or the command, of that name is visible.
func (c *Channel) AllowsTool(name string) bool {
	return c.every(func(l *layer) bool { return l.tools.shows(name) })
}

// AllowsSkill reports whether the skill is visible.
func (c *Channel) AllowsSkill(name string) bool {
	return c.every(func(l *layer) bool { return l.skills.shows(name) })
}

// AllowsHook reports whether the hook of that id (event/command) runs on this channel.
func (c *Channel) AllowsHook(name string) bool {
	return c.every(func(l *layer) bool { return l.hooks.shows(name) })
}

// AllowsServer reports whether the server is visible: it disappears only when server/* is denied or no allow pattern
// touches it. Its tools are judged one by one, by AllowsServerTool.
func (c *Channel) AllowsServer(server string) bool {
	return c.every(func(l *layer) bool { return l.mcp.showsServer(server) })
}

// AllowsServerTool reports whether that tool of that server is visible.
func (c *Channel) AllowsServerTool(server, tool string) bool {
	return c.every(func(l *layer) bool { return l.mcp.showsTool(server, tool) })
}

// Allows reports whether the capability of that id is visible, by the category its kind belongs to.
func (c *Channel) Allows(id capability.ID) bool {
	switch id.Kind {
	case capability.KindTool, capability.KindCommand:
		return c.AllowsTool(id.Name)
	case capability.KindSkill:
		return c.AllowsSkill(id.Name)
	case capability.KindHook:
		return c.AllowsHook(id.Name)
	case capability.KindMCP:
		return c.AllowsServer(id.Name)
	case capability.KindUnspecified:
	}
	return false
}

// EnablesTool reports whether a server's own lists offer the tool. A pattern that cannot be read enables nothing, and
// disables everything.
func EnablesTool(server *capability.Server, tool string) bool {
	for _, pattern := range server.DisabledTools {
		if g, err := compileGlob(pattern); err != nil || g.match(tool) {
			return false
		}
	}
	for _, pattern := range server.EnabledTools {
		if g, err := compileGlob(pattern); err == nil && g.match(tool) {
			return true
		}
	}
	return len(server.EnabledTools) == 0
}
