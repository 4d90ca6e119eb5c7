package lifecycle

import (
	"os"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// change is an edit of files while sessions have turns open. stays is how the world is to a turn that began before the edit,
// and comes how it is to one that begins after it; atOnce, how it is after the edit to those that began before.
type change struct {
	before, after map[string]string // files; an empty text removes one
	stays, comes  func(u *aTurn)
	atOnce        func(u *aTurn) // nil: as before
}

// reads is a skill that has a body.
func reads(name, body string) func(*aTurn) {
	return func(u *aTurn) { u.want(u.call("skill", object{"name": name}), body) }
}

// lacks is a skill that is not there.
func lacks(name string) func(*aTurn) {
	return func(u *aTurn) {
		u.Helper()
		if got := u.call("skill", object{"name": name}); got.err == nil {
			u.Errorf("there is a skill %s: %s", name, got)
		}
	}
}

// serves is a server that the mcp tool knows; misses is one that it does not.
func serves(name string) func(*aTurn) {
	return func(u *aTurn) { u.want(u.call("mcp", object{"action": "list"}), name) }
}

func misses(name string) func(*aTurn) {
	return func(u *aTurn) {
		u.Helper()
		if got := u.call("mcp", object{"action": "list"}); strings.Contains(got.text, name) {
			u.Errorf("there is a server %s: %s", name, got)
		}
	}
}

// globs is a call of glob that is refused with a code; empty: it is not.
func globs(code vakerr.Code) func(*aTurn) {
	return func(u *aTurn) {
		u.Helper()
		got := u.call("glob", object{"pattern": "*"})
		if code == "" {
			u.want(got)
			return
		}
		if vakerr.CodeOf(got.err) != code {
			u.Errorf("glob: %s, want %s", got, code)
		}
	}
}

// V1, V3, V82, V85, V97, V126, V213: while twenty sessions have a turn open, a file of any kind is edited. Each turn keeps its
// world, but what is denied is denied at once; the next turn of each session has the new world; nothing was restarted and no
// session was rotated.
func TestEveryKindOfFileIsLive(t *testing.T) {
	const hook = "[[hooks]]\nevent = \"pre-tool-use\"\nmatch = \"glob\"\ncommand = \"./hook.sh\"\n"
	const blocks = "#!/bin/sh\necho not now >&2\nexit 2\n"
	server := func(name string) string { return "[mcp.servers." + name + "]\ncommand = \"/bin/true\"\n" }
	for name, c := range map[string]change{
		"vak.toml: a deny rule": {
			before: map[string]string{"vak.toml": settings}, after: map[string]string{"vak.toml": strings.Replace(settings, "\n", "\ndeny = [\"glob\"]\n", 1)},
			stays: globs(""), atOnce: globs(vakerr.PermissionDenied), comes: globs(vakerr.PermissionDenied),
		},
		"vak.toml: a channel": {
			before: map[string]string{"vak.toml": settings}, after: map[string]string{"vak.toml": settings + "[channels.api.tools]\ndeny = [\"glob\"]\n"},
			stays: globs(""), atOnce: globs(vakerr.ChannelDenied), comes: globs(vakerr.UnknownTool),
		},
		"vak.toml: a rule is taken back": {
			before: map[string]string{"vak.toml": strings.Replace(settings, "\n", "\ndeny = [\"glob(x)\"]\n", 1)}, after: map[string]string{"vak.toml": settings},
			stays: globs(""), comes: globs(""),
		},
		"vak.toml: a server": {
			before: map[string]string{"vak.toml": settings + server("one")}, after: map[string]string{"vak.toml": settings + server("one") + server("two")},
			stays: misses("two"), comes: serves("two"),
		},
		"vak.toml: a server goes": {
			before: map[string]string{"vak.toml": settings + server("one") + server("two")}, after: map[string]string{"vak.toml": settings + server("one")},
			stays: serves("two"), comes: misses("two"),
		},
		"vak.toml: a hook": {
			before: map[string]string{"hook.sh": blocks}, after: map[string]string{"vak.toml": settings + hook},
			stays: globs(""), comes: globs(vakerr.HookBlocked),
		},
		"vak.toml: a hook goes": {
			before: map[string]string{"hook.sh": blocks, "vak.toml": settings + hook}, after: map[string]string{"vak.toml": settings},
			stays: globs(vakerr.HookBlocked), comes: globs(""),
		},
		".mcp.json": {
			before: map[string]string{".mcp.json": `{"mcpServers":{"one":{"command":"/bin/true"}}}`},
			after:  map[string]string{".mcp.json": `{"mcpServers":{"one":{"command":"/bin/true"},"two":{"command":"/bin/true"}}}`},
			stays:  misses("two"), comes: serves("two"),
		},
		".vak/config.toml": {
			before: map[string]string{".vak/config.toml": server("one")}, after: map[string]string{".vak/config.toml": server("one") + server("two")},
			stays: misses("two"), comes: serves("two"),
		},
		".cursor/mcp.json": {
			before: map[string]string{".cursor/mcp.json": `{"mcpServers":{}}`}, after: map[string]string{".cursor/mcp.json": `{"mcpServers":{"two":{"command":"/bin/true"}}}`},
			stays: misses("two"), comes: serves("two"),
		},
		".vscode/mcp.json": {
			before: map[string]string{".vscode/mcp.json": `{"servers":{}}`}, after: map[string]string{".vscode/mcp.json": `{"servers":{"two":{"type":"stdio","command":"/bin/true"}}}`},
			stays: misses("two"), comes: serves("two"),
		},
		".codex/config.toml": {
			before: map[string]string{".codex/config.toml": "model = \"x\"\n"}, after: map[string]string{".codex/config.toml": "[mcp_servers.two]\ncommand = \"/bin/true\"\n"},
			stays: misses("two"), comes: serves("two"),
		},
		".gemini/settings.json": {
			before: map[string]string{".gemini/settings.json": `{}`}, after: map[string]string{".gemini/settings.json": `{"mcpServers":{"two":{"command":"/bin/true"}}}`},
			stays: misses("two"), comes: serves("two"),
		},
		".claude/settings.json: a deny rule": {
			before: map[string]string{".claude/settings.json": `{}`}, after: map[string]string{".claude/settings.json": `{"permissions":{"deny":["Glob"]}}`},
			stays: globs(""), atOnce: globs(vakerr.PermissionDenied), comes: globs(vakerr.PermissionDenied),
		},
		".claude/settings.json: a hook": {
			before: map[string]string{".claude/settings.json": `{}`, "hook.sh": blocks},
			after:  map[string]string{".claude/settings.json": `{"hooks":{"PreToolUse":[{"matcher":"Glob","hooks":[{"type":"command","command":"./hook.sh"}]}]}}`},
			stays:  globs(""), comes: globs(vakerr.HookBlocked),
		},
		"a skill is edited": {
			before: map[string]string{skillFile("s"): skill("s", "The old one.")}, after: map[string]string{skillFile("s"): skill("s", "The new one.")},
			stays: reads("s", "The old one."), comes: reads("s", "The new one."),
		},
		"a skill is added": {
			before: map[string]string{skillFile("other"): skill("other", "x")}, after: map[string]string{skillFile("s"): skill("s", "The new one.")},
			stays: lacks("s"), comes: reads("s", "The new one."),
		},
		"a skill goes": {
			before: map[string]string{skillFile("other"): skill("other", "x"), skillFile("s"): skill("s", "The old one.")}, after: map[string]string{skillFile("s"): ""},
			stays: reads("s", "The old one."), comes: lacks("s"),
		},
		".claude/skills": {
			before: map[string]string{".claude/" + skillFile("s"): skill("s", "The old one.")}, after: map[string]string{".claude/" + skillFile("s"): skill("s", "The new one.")},
			stays: reads("s", "The old one."), comes: reads("s", "The new one."),
		},
		".agents/skills": {
			before: map[string]string{".agents/" + skillFile("s"): skill("s", "The old one.")}, after: map[string]string{".agents/" + skillFile("s"): skill("s", "The new one.")},
			stays: reads("s", "The old one."), comes: reads("s", "The new one."),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.before)
			if c.before["hook.sh"] != "" {
				w.must(os.Chmod(w.path("hook.sh"), 0o700)) //nolint:gosec // it is a program
				w.reload()
			}
			agents := w.openMany(20)
			turns := make([]*aTurn, len(agents))
			parallel(len(agents), func(i int) { turns[i] = agents[i].begin() })
			parallel(len(agents), func(i int) { c.stays(turns[i]) })
			for path, text := range c.after {
				if text == "" {
					w.remove(path)
					continue
				}
				w.write(path, text)
			}
			w.reload()
			after := c.stays
			if c.atOnce != nil {
				after = c.atOnce
			}
			parallel(len(agents), func(i int) { after(turns[i]) })
			parallel(len(agents), func(i int) {
				turns[i].end()
				u := agents[i].begin()
				c.comes(u)
				u.end()
			})
			w.verify()
		})
	}
}

// V184, V126: a command that is edited is the next prompt's, in every session.
func TestCommandsAreLive(t *testing.T) {
	for _, path := range []string{"commands/ship.md", ".claude/commands/ship.md"} {
		w := newWorld(t, map[string]string{path: "Ship the old way: $ARGUMENTS\n"})
		for _, a := range w.openMany(20) {
			u := a.prompt("/ship now")
			if !strings.Contains(u.GetPrompt(), "the old way: now") {
				t.Errorf("%s: %q", path, u.GetPrompt())
			}
			u.end()
		}
		w.write(path, "Ship the new way: $ARGUMENTS\n")
		for _, a := range w.openMany(20) {
			u := a.prompt("/ship now")
			if !strings.Contains(u.GetPrompt(), "the new way: now") {
				t.Errorf("%s: %q", path, u.GetPrompt())
			}
			u.end()
		}
	}
}

// V97, V98: a revocation reaches the open turns of all sessions at once, and the restoration their next turns.
func TestRevocationUnderOpenTurns(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("s"): skill("s", "The body."), skillFile("other"): skill("other", "x")})
	agents := w.openMany(20)
	turns := make([]*aTurn, len(agents))
	parallel(len(agents), func(i int) { turns[i] = agents[i].begin() })
	w.revoke("skill:s", false)
	parallel(len(agents), func(i int) {
		refused(t, turns[i].call("skill", object{"name": "s"}).err, vakerr.CapabilityRevoked)
		reads("other", "x")(turns[i])
		turns[i].end()
		turns[i] = agents[i].begin()
		lacks("s")(turns[i])
	})
	w.restore("skill:s")
	parallel(len(agents), func(i int) {
		turns[i].end()
		reads("s", "The body.")(agents[i].begin())
	})
}
