package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
)

func compile(t testing.TB, rules ChannelRules) *Channel {
	t.Helper()
	c, problems := CompileChannel("test", rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// V133, V134, V136: absent inherits, empty blocks, deny wins; case counts, and '*' crosses everything.
func TestChannelNames(t *testing.T) {
	for name, tc := range map[string]struct {
		filter     Filter
		shows, not []string
	}{
		"absent inherits": {Filter{}, []string{"read", ""}, nil},
		"empty blocks":    {Filter{Allow: []string{}}, nil, []string{"read"}},
		"allow":           {Filter{Allow: []string{"re*", "{a,b}", "x[0-9]"}}, []string{"read", "a", "x7"}, []string{"write", "Read", "xa"}},
		"deny wins":       {Filter{Allow: []string{"*"}, Deny: []string{"rm*"}}, []string{"read"}, []string{"rm", "rmdir"}},
		"deny alone":      {Filter{Deny: []string{"rm"}}, []string{"read", "rmdir"}, []string{"rm"}},
		"crosses slashes": {Filter{Allow: []string{"pre-tool-use/*"}}, []string{"pre-tool-use/./hooks/a b"}, []string{"stop/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, ChannelRules{Tools: tc.filter, Skills: tc.filter, Hooks: tc.filter})
			for _, list := range []struct {
				names []string
				want  bool
			}{{tc.shows, true}, {tc.not, false}} {
				for _, n := range list.names {
					for category, got := range map[string]bool{
						"tools": c.AllowsTool(n), "commands": c.Allows(capability.ID{Kind: capability.KindCommand, Name: n}),
						"skills": c.AllowsSkill(n), "hooks": c.AllowsHook(n), "hook ids": c.Allows(capability.ID{Kind: capability.KindHook, Name: n}),
					} {
						if got != list.want {
							t.Errorf("%s shows %q: %v", category, n, got)
						}
					}
				}
			}
		})
	}
}

// V135: a server disappears only when server/* is denied or no allow pattern touches it; its tools are judged alone.
func TestChannelServers(t *testing.T) {
	for name, tc := range map[string]struct {
		filter Filter
		server bool     // is git visible
		tools  []string // of git: commit, repo/push
	}{
		"absent":                 {Filter{}, true, []string{"commit", "repo/push"}},
		"empty":                  {Filter{Allow: []string{}}, false, nil},
		"one tool denied":        {Filter{Deny: []string{"git/commit"}}, true, []string{"repo/push"}},
		"all denied":             {Filter{Deny: []string{"git/*"}}, false, nil},
		"all of all denied":      {Filter{Deny: []string{"*/*"}}, false, nil},
		"denied by name":         {Filter{Deny: []string{"git"}}, false, nil},
		"denied, other server":   {Filter{Deny: []string{"github/*"}}, true, []string{"commit", "repo/push"}},
		"one tool allowed":       {Filter{Allow: []string{"git/commit"}}, true, []string{"commit"}},
		"touched by a wild card": {Filter{Allow: []string{"*/commit"}}, true, []string{"commit"}},
		"not touched":            {Filter{Allow: []string{"github/*"}}, false, nil},
		"all but one":            {Filter{Allow: []string{"git/*"}, Deny: []string{"git/repo/*"}}, true, []string{"commit"}},
		"many denied, not all":   {Filter{Deny: []string{"git/c*", "git/r*"}}, true, nil},
		"case counts":            {Filter{Allow: []string{"Git/*"}}, false, nil},
		"stars do not join":      {Filter{Deny: []string{"g*t"}}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, ChannelRules{MCP: tc.filter})
			if got := c.AllowsServer("git"); got != tc.server {
				t.Errorf("AllowsServer = %v", got)
			}
			var tools []string
			for _, tool := range []string{"commit", "repo/push"} {
				if c.AllowsServerTool("git", tool) {
					tools = append(tools, tool)
				}
			}
			if strings.Join(tools, " ") != strings.Join(tc.tools, " ") {
				t.Errorf("tools %v, want %v", tools, tc.tools)
			}
		})
	}
}

// A pattern that cannot be read is a problem; it grants nothing, and denied it hides the category and nothing else.
func TestChannelUnreadable(t *testing.T) {
	c, problems := CompileChannel("web", ChannelRules{
		Tools: Filter{Allow: []string{"[", "read"}}, Skills: Filter{Deny: []string{"{a"}}, MCP: Filter{Deny: []string{"git/["}},
	})
	if len(problems) != 3 {
		t.Fatalf("problems: %v", problems)
	}
	if p := problems[0]; p.Category != "tools" || p.List != "allow" || p.Entry != 0 ||
		!strings.HasPrefix(p.Message, "[channels.web] tools.allow, entry 1:") || p.Hint == "" {
		t.Errorf("problem: %+v", p)
	}
	if !c.AllowsTool("read") || c.AllowsTool("[") || c.AllowsSkill("x") || c.AllowsServer("any") || c.AllowsServerTool("any", "x") || !c.AllowsHook("stop/x") {
		t.Error("an unreadable pattern granted something or hid another category")
	}
}

// V134: composing can only restrict, whatever the layers say, and nil is no layer.
func TestComposeRestricts(t *testing.T) {
	globs := rapid.Custom(func(t *rapid.T) []string {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return append([]string{}, rapid.SliceOfN(rapid.SampledFrom([]string{"*", "a*", "a", "b", "a/*", "*/b", "a/b"}), 0, 3).Draw(t, "globs")...)
	})
	filter := rapid.Custom(func(t *rapid.T) Filter { return Filter{globs.Draw(t, "allow"), globs.Draw(t, "deny")} })
	rapid.Check(t, func(t *rapid.T) {
		draw := func() *Channel {
			c, _ := CompileChannel("c", ChannelRules{Tools: filter.Draw(t, "tools"), MCP: filter.Draw(t, "mcp"), Skills: filter.Draw(t, "skills"), Hooks: filter.Draw(t, "hooks")})
			return c
		}
		parent, child := draw(), draw()
		both := Compose(parent, child)
		for _, k := range capability.Kinds() {
			for _, n := range []string{"a", "b", "ab"} {
				id := capability.ID{Kind: k, Name: n}
				if got, want := both.Allows(id), parent.Allows(id) && child.Allows(id); got != want {
					t.Fatalf("%s: composed %v, the parts say %v", id, got, want)
				}
				if Compose(nil, child).Allows(id) != child.Allows(id) || Compose(parent, nil).Allows(id) != parent.Allows(id) {
					t.Fatal("nil is not neutral")
				}
			}
		}
		for _, tool := range []string{"a", "b"} {
			if both.AllowsServerTool("a", tool) != (parent.AllowsServerTool("a", tool) && child.AllowsServerTool("a", tool)) {
				t.Fatal("server tools are not composed")
			}
		}
	})
	if Compose(nil, nil) != nil || !(*Channel)(nil).AllowsTool("x") {
		t.Error("no channel does not show everything")
	}
}

// A server whose tools are visible is visible itself.
func TestServerToolNeedsServer(t *testing.T) {
	glob := rapid.SampledFrom([]string{"git/*", "git/a", "*/a", "*", "git", "g*/**", "x/*", "git/a*"})
	rapid.Check(t, func(t *rapid.T) {
		f := Filter{Deny: rapid.SliceOfN(glob, 0, 3).Draw(t, "deny")}
		if rapid.Bool().Draw(t, "allows") {
			f.Allow = append([]string{}, rapid.SliceOfN(glob, 0, 3).Draw(t, "allow")...)
		}
		c, _ := CompileChannel("c", ChannelRules{MCP: f})
		if c.AllowsServerTool("git", "a") && !c.AllowsServer("git") {
			t.Fatalf("%+v shows git/a and hides git", f)
		}
	})
}

func TestEnablesTool(t *testing.T) {
	for _, tc := range []struct {
		enabled, disabled []string
		tool              string
		want              bool
	}{
		{nil, nil, "x", true},
		{[]string{"get_*"}, nil, "get_a", true},
		{[]string{"get_*"}, nil, "set_a", false},
		{[]string{"get_*"}, []string{"*_a"}, "get_a", false},
		{[]string{"["}, nil, "x", false},
		{nil, []string{"["}, "x", false},
	} {
		if got := EnablesTool(&capability.Server{EnabledTools: tc.enabled, DisabledTools: tc.disabled}, tc.tool); got != tc.want {
			t.Errorf("enabled %v, disabled %v: %s is %v", tc.enabled, tc.disabled, tc.tool, got)
		}
	}
}
