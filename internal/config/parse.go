package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/approval"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Bounds of what one file may declare.
const (
	maxServers  = 512
	maxHooks    = 256
	maxChannels = 256
	maxTenants  = 5000
)

// Parse reads the text of a vak.toml. path is how problems name the file. The configuration is complete whatever the
// text: what could not be read has its default, or restricts.
func Parse(path string, text []byte) (Config, []capability.Problem) {
	d, ok := newDocument(path, text, unreadHint)
	top := &section{doc: d, values: d.values}
	c := read(top)
	if !ok {
		c.Unreadable = true
		c.Permissions = denyAll()
	}
	c.settings = d.settings
	capability.SortProblems(d.problems)
	return c, d.problems
}

// Default is the configuration of a workspace without a vak.toml.
func Default() Config {
	c, _ := Parse("", nil)
	return c
}

// Closed is the configuration of a workspace whose vak.toml exists and was never read: every call is denied.
func Closed() Config {
	c := Default()
	c.Unreadable, c.Permissions = true, denyAll()
	return c
}

func read(top *section) Config {
	c := Config{
		Listen: top.text("listen", "127.0.0.1:7717"),
		Data:   top.text("data", ""),
	}
	c.MCP = readServers(top)
	c.Hooks = readHooks(top)
	c.Channels = readChannels(top)
	c.Permissions, c.Approvals = readPermissions(top)
	c.Tenants = readTenants(top)
	readDaemon(top, &c)
	reportUnsupported(top)
	top.close()
	return c
}

// always opens a table of settings, an empty one when nothing is written, so that defaults are listed too.
func (s *section) always(key string) *section {
	if t := s.table(key, ""); t != nil {
		return t
	}
	return s.below("", nil, key)
}

func readDaemon(top *section, c *Config) {
	s := top.always("reconcile")
	c.Reconcile = Reconcile{
		Tick:     s.duration("tick", 10*time.Second),
		Debounce: s.duration("debounce", 250*time.Millisecond),
	}
	s.close()

	s = top.always("ledger")
	c.Ledger.Durability = Durability(s.oneOf("durability", string(DurabilityEffects), string(DurabilityEffects), string(DurabilityAll)))
	s.close()

	s = top.always("auth")
	c.Auth.TokenFile = s.text("token_file", "")
	s.close()

	s = top.always("pins")
	c.Pins.Tools = s.oneOf("tools", "keep", "keep", "refuse", "follow")
	s.close()

	s = top.always("hook_policy")
	c.HookPolicy.Rewrite = s.flag("rewrite", true)
	s.close()

	s = top.always("intent")
	c.Intent.SliceCapabilities = s.flag("slice_capabilities", true)
	s.close()

	s = top.always("sessions")
	c.Sessions = Sessions{
		IdleTTL:     s.duration("idle_ttl", 10*time.Minute),
		MaxResident: s.number("max_resident", 100_000, 100_000_000),
	}
	s.close()

	s = top.always("limits")
	def := DefaultLimits()
	c.Limits = Limits{
		MaxSkills:     s.number("max_skills", def.MaxSkills, 1_000_000),
		MaxCommands:   s.number("max_commands", def.MaxCommands, 1_000_000),
		MaxDepth:      s.number("max_depth", def.MaxDepth, 64),
		MaxFileBytes:  s.number("max_file_bytes", def.MaxFileBytes, 64<<20),
		MaxTotalBytes: s.number("max_total_bytes", def.MaxTotalBytes, 4<<30),
	}
	s.close()
}

func readTenants(top *section) map[string]Tenant {
	table := top.table("tenants", "")
	if table == nil {
		return nil
	}
	tenants := map[string]Tenant{}
	for _, s := range table.entries(maxTenants, "the tenant is left out until this is repaired") {
		if err := CheckName(s.name()); err != nil {
			s.fail("config_name", "", fmt.Sprintf("tenant %s: %v", keyText(s.name()), err), "give it another name")
		}
		t := Tenant{Workspace: s.text("workspace", ""), TokenFile: s.text("token_file", "")}
		s.close()
		if t.Workspace == "" && !s.bad {
			s.fail("config_value", "", "no workspace "+s.label(), `add workspace = "path/of/the/folder"`)
		}
		if !s.bad {
			tenants[s.name()] = t
		}
	}
	return tenants
}

// denyAll is what stands in for permissions that cannot be read.
func denyAll() policy.PermissionRules {
	return policy.PermissionRules{Mode: policy.ReadOnly.String(), Deny: []string{"*"}}
}

func readPermissions(top *section) (policy.PermissionRules, Approvals) {
	defaults := Approvals{Timeout: approval.DefaultTimeout}
	if _, written := top.values["permissions"]; !written {
		top.known = append(top.known, "permissions")
		return policy.PermissionRules{}, defaults
	}
	s := top.table("permissions", "every call is denied until this is repaired")
	if s == nil {
		return denyAll(), defaults
	}
	rules := policy.PermissionRules{
		Mode: s.oneOf("mode", policy.WorkspaceWrite.String(),
			policy.ReadOnly.String(), policy.WorkspaceWrite.String(), policy.FullAccess.String()),
		Allow: s.words("allow"), Ask: s.words("ask"), Deny: s.words("deny"),

		Source: s.doc.path,
		Lines: policy.RuleLines{
			Mode: s.line("mode"), Allow: s.elementLines("allow"), Ask: s.elementLines("ask"), Deny: s.elementLines("deny"),
		},
	}
	approvals := Approvals{Timeout: s.duration("approval_timeout", approval.DefaultTimeout)}
	if approvals.Timeout > approval.MaxTimeout {
		s.badValue("approval_timeout", "must not be longer than "+approval.MaxTimeout.String())
	}
	s.close()
	if s.bad {
		return denyAll(), defaults
	}
	// Only to name what cannot be read; whoever puts the rules in force knows the folders.
	_, problems := policy.CompileEngine(policy.Host{Workspace: "/", Home: "/"}, rules)
	s.doc.problems = append(s.doc.problems, problems...)
	return rules, approvals
}

// blockAll is what stands in for a channel that cannot be read: an empty allow list blocks its category.
func blockAll() policy.ChannelRules {
	none := policy.Filter{Allow: []string{}}
	return policy.ChannelRules{Tools: none, MCP: none, Skills: none, Hooks: none}
}

func readChannels(top *section) map[string]policy.ChannelRules {
	table := top.table("channels", "")
	if table == nil {
		return nil
	}
	channels := map[string]policy.ChannelRules{}
	const consequence = "the channel shows nothing until this is repaired"
	// A channel beyond the bound, or one that is no table, must not be mistaken for one without rules.
	for _, name := range slices.Sorted(maps.Keys(table.values)) {
		channels[name] = blockAll()
	}
	for _, s := range table.entries(maxChannels, consequence) {
		rules := policy.ChannelRules{
			Tools: s.filter("tools"), MCP: s.filter("mcp"), Skills: s.filter("skills"), Hooks: s.filter("hooks"),
		}
		s.close()
		if s.bad {
			continue
		}
		channels[s.name()] = rules
		_, problems := policy.CompileChannel(s.name(), rules)
		s.adopt(problems)
	}
	return channels
}

func (s *section) filter(key string) policy.Filter {
	t := s.table(key, s.consequence)
	if t == nil {
		return policy.Filter{}
	}
	f := policy.Filter{Allow: t.words("allow"), Deny: t.words("deny")}
	t.close()
	s.bad = s.bad || t.bad
	return f
}

// adopt reports the problems of another package at the line of the setting they name, or else at the section's.
func (s *section) adopt(problems []policy.ChannelProblem) {
	for _, p := range problems {
		s.doc.report(capability.SeverityError, "channel_pattern", s.line(p.Category, p.List, ElementKey(p.Entry)), p.Message, p.Hint)
	}
}

// elementLines are the lines of the entries of a list.
func (s *section) elementLines(key string) []int {
	list, _ := s.values[key].([]any)
	var lines []int
	for i := range list {
		lines = append(lines, s.line(key, ElementKey(i)))
	}
	return lines
}

// reportUnsupported names the sections that are known but do nothing in this version, and the spellings of others.
func reportUnsupported(top *section) {
	for _, key := range []string{"cluster", "components"} {
		if _, written := top.take(key); written {
			top.warn("config_unsupported", key, fmt.Sprintf("[%s] is not supported yet and has no effect", key),
				"remove the section, or keep it for a later version")
		}
	}
	for _, key := range []string{"mcp_servers", "mcpServers"} {
		written, ok := top.values[key]
		if !ok {
			continue
		}
		top.known = append(top.known, key)
		name := "<name>"
		if table, isTable := written.(map[string]any); isTable && len(table) > 0 {
			name = keyText(slices.Min(slices.Collect(maps.Keys(table))))
		}
		top.fail("config_unknown_key", key, fmt.Sprintf("[%s] is the spelling of another program; none of its servers is read", key),
			fmt.Sprintf("write [mcp.servers.%s]", name))
	}
}
