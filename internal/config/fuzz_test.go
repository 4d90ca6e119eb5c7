package config

import (
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "[mcp.servers.a]\ncommand = \"a\"\n", "[[hooks]]\nevent = 1\n[[hooks]]\n", "a.b.c = [[1], {x = 2}]\n", "[permissions]\ndeny = [\"*\"]",
		"[mcp]\nservers = { a = { url = \"http://x?token=y\" } }", "[[mcp.servers]]\n", "hooks = [{event=\"stop\",command=\"x\"}]", "\xff", "[channels.\"\"]\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, problems := Parse("vak.toml", text)
		for _, p := range problems {
			if p.Code == "" || p.Message == "" || p.Line > strings.Count(string(text), "\n")+1 {
				t.Errorf("problem %+v", p)
			}
		}
		for name, s := range c.MCP {
			if CheckName(name) != nil || (s.Command == "") == (s.URL == "") {
				t.Errorf("server %q %+v", name, s)
			}
		}
		for _, h := range c.EnabledHooks() {
			if h.Name == "" || h.Refusal != "" && h.FailureMode != capability.FailClosed {
				t.Errorf("hook %+v", h)
			}
		}
		engine, _ := policy.CompileEngine(policy.Host{}, c.Permissions)
		if d := engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); c.Unreadable && d.Effect != policy.Deny {
			t.Error("a file that is no TOML lets calls through")
		}
	})
}

// Nesting is bounded: neither deep values nor deep keys may cost the process its stack or its time.
func TestDeepNesting(t *testing.T) {
	const n = 100_000
	for _, text := range []string{
		"a = " + strings.Repeat("[", n), "a = " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"[" + strings.Repeat("a.", n) + "a]\n", strings.Repeat("a.", n) + "a = 1\n", strings.Repeat("[[hooks]]\n", n),
	} {
		if _, problems := Parse("vak.toml", []byte(text)); len(problems) == 0 {
			t.Errorf("%.20q is taken", text)
		}
	}
}
