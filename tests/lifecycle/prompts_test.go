package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// A command's !`lines` run when a user types it, under the rules for the shell, and their output is text: it is never
// looked at for placeholders, files or commands. Declaring, listing and beginning a turn run none.
func TestCommandsInPrompts(t *testing.T) {
	w := newWorld(t, map[string]string{
		"secret.txt": "CANARY",
		"commands/status.md": "---\nallowed-tools: Bash(touch:*)\nmodel: small\neffort: high\ncontext: fork\nagent: Explore\n---\n" +
			"Now:\n- !`printf '%s' '$ARGUMENTS[0] !\\x60id\\x60 @secret.txt'`\n- !`printf \"in $CLAUDE_PROJECT_DIR with [$TOKEN]\"`\n```\n!`touch made`\n```\n",
		"commands/greedy.md": "!`mkdir made` and !`touch made`",
		"commands/broken.md": "!`printf %d x`",
		"commands/say.md":    "!`printf %s $ARGUMENTS`",
		"commands/long.md":   "!`printf %099999d 7`",
	})
	t.Setenv("TOKEN", "CANARY")
	w.write("vak.toml", "[reconcile]\ntick = \"1h\"\n[permissions]\nallow = [\"bash(printf *)\", \"bash(mkdir *)\"]\n")
	a := w.open()
	u := a.prompt("/status one")
	for _, part := range []string{
		"$ARGUMENTS[0] !\\x60id\\x60 @secret.txt", "in " + w.path("") + " with []", "```\n!`touch made`\n```",
	} {
		if part = strings.TrimRight(part, "/"); !strings.Contains(strings.ReplaceAll(u.GetPrompt(), "one !", "$ARGUMENTS[0] !"), strings.ReplaceAll(part, w.path("")+" ", strings.TrimRight(w.path(""), "/")+" ")) {
			t.Errorf("%q is not in the prompt %q", part, u.GetPrompt())
		}
	}
	if strings.Contains(u.GetPrompt(), "CANARY") {
		t.Errorf("the prompt holds a secret: %q", u.GetPrompt())
	}
	advice := u.GetInvocation()
	if advice.GetCapability() != "command:status" || advice.GetModel() != "small" || advice.GetEffort() != "high" || advice.GetContext() != "fork" ||
		advice.GetAgent() != "Explore" || !slices.Equal(advice.GetAllowedTools(), []string{"Bash(touch:*)"}) {
		t.Errorf("V189: the advice is %v", advice)
	}
	u.end()
	// Anything but an allow ends the whole expansion before the first command runs, whatever the file allows itself.
	_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/greedy"})
	refused(t, err, vakerr.ApprovalRequired, "command:greedy", "touch made")
	_, err = try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/say x; touch made"})
	refused(t, err, vakerr.ApprovalRequired, "command:say")
	_, err = try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/broken"})
	refused(t, err, vakerr.ExpansionFailed, "command:broken", "exit code 1")
	if _, err := os.Stat(w.path("made")); err == nil {
		t.Error("a command ran that nobody allowed")
	}
	u = a.prompt("/long") // the refused turns left none open
	if n := strings.Count(u.GetPrompt(), "0"); n < 30_000 || n > 30_010 || !strings.Contains(u.GetPrompt(), "cut after 30000 bytes") {
		t.Errorf("%d bytes of output are shown", n)
	}
	u.end()
	eventually(t, "what ran is on the ledger", func() bool {
		n := 0
		for _, call := range recorded[ledger.CallFinished](a) {
			if call.Outcome == ledger.CallOK {
				n++
			}
		}
		return n == 3 && len(recorded[ledger.CallStarted](a)) == 4 && len(recorded[ledger.CommandExpanded](a)) == 2
	})
}

// A file that a prompt names is read by the read tool, under its rules; what is no file is text.
func TestFilesInPrompts(t *testing.T) {
	w := newWorld(t, map[string]string{
		"src/a.txt": "alpha $1 @src/b.txt\n", "src/b.txt": "beta\n", "private/c.txt": "CANARY\n",
		"commands/look.md":             "Look at @src/a.txt, @$0 and @private/c.txt; mail user@example.com, @nobody or @types/none.\n`@src/b.txt`\n```\n@src/b.txt\n```\n",
		".gemini/commands/g/look.toml": "prompt = \"Look: @{src/b.txt} with {{args}} {@}\"",
	})
	w.must(os.Symlink(w.path("private"), w.path("src/link")))
	w.write("vak.toml", "[permissions]\ndeny = [\"read(private/**)\"]\n")
	a := w.open()
	u := a.prompt("/look src/link/c.txt")
	want := "Look at @src/a.txt, @src/link/c.txt and @private/c.txt; mail user@example.com, @nobody or @types/none.\n`@src/b.txt`\n```\n@src/b.txt\n```\n\n" +
		"<file path=\"src/a.txt\">\nalpha $1 @src/b.txt\n</file>"
	if got := u.GetPrompt(); !strings.HasPrefix(got, want) || strings.Contains(got, "CANARY") || strings.Count(got, "was not read") != 2 {
		t.Errorf("the prompt is\n%s\nwant\n%s", got, want)
	}
	u.end()
	u = a.prompt("/g:look 'x'")
	if got := u.GetPrompt(); got != "Look: beta\n with 'x' {@}" {
		t.Errorf("the prompt is %q", got)
	}
	u.end()
}

// V188, V190: a skill beats a command of its name, and says who may call it; its placeholders are replaced.
func TestSkillsByName(t *testing.T) {
	w := newWorld(t, map[string]string{
		"skills/greet/SKILL.md": "---\nname: greet\ndescription: d\narguments: who\n---\nGreet $who from ${CLAUDE_SKILL_DIR}.\n",
		"commands/greet.md":     "The command.",
		"skills/quiet/SKILL.md": "---\nname: quiet\ndescription: d\nuser-invocable: false\n---\nBy models alone, in ${CLAUDE_PROJECT_DIR}.\n",
		"commands/quiet.md":     "The quiet command.",
		"commands/hidden.md":    "---\nuser-invocable: false\n---\nx",
	})
	a := w.open()
	u := a.prompt("/greet Ada")
	if got := u.GetPrompt(); !strings.Contains(got, "Greet Ada from "+w.path("skills/greet")+".") || strings.Contains(got, "ARGUMENTS") {
		t.Errorf("the prompt is %q", got)
	}
	u.end()
	for prompt, want := range map[string]string{"/quiet": "The quiet command.", "/hidden x": "/hidden x"} {
		u := a.prompt(prompt)
		if got := u.GetPrompt(); got != want {
			t.Errorf("%s became %q", prompt, got)
		}
		u.end()
	}
	_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/skill:quiet"})
	refused(t, err, vakerr.CapabilityNotAdmitted, "skill:quiet", "user-invocable")
	u = a.begin()
	u.want(u.call("skill", object{"name": "quiet"}), "By models alone, in "+strings.TrimRight(w.path(""), "/")+".")
	u.end()
}

// A skill of the user's own folder is loaded with the names of its files, which can be read where they lie, and nothing
// around them can.
func TestSkillsFromElsewhere(t *testing.T) {
	home := t.TempDir()
	w := newWorldWith(t, host.Options{Home: home}, map[string]string{"a.txt": "x"})
	put := func(name, text string) {
		at := filepath.Join(home, name)
		w.must(os.MkdirAll(filepath.Dir(at), 0o755))
		w.must(os.WriteFile(at, []byte(text), 0o600))
	}
	put(".claude/skills/far/SKILL.md", skill("far", "Read ${CLAUDE_SKILL_DIR}/ref.md."))
	put(".claude/skills/far/ref.md", "The reference.")
	put(".claude/skills/far/.env", "KEY=1")
	put(".claude/secret.txt", "CANARY")
	put(".claude/skills/other/SKILL.md", "---\nname: other\n")
	base := filepath.Join(home, ".claude/skills/far")
	w.must(os.Symlink("../../secret.txt", filepath.Join(base, "leak.txt")))
	u := w.open().begin()
	u.want(u.call("skill", object{"name": "far"}), `location="~/.claude/skills/far/SKILL.md" provenance="shared" base_directory="`+base+`"`,
		"Read "+base+"/ref.md.", "- "+base+"/ref.md")
	u.want(u.call("read", object{"path": base + "/ref.md"}), "The reference.")
	u.end()
	u = u.agent.prompt("/skill:far now")
	if got := u.GetPrompt(); !strings.Contains(got, "\n- "+base+"/ref.md\n") || !strings.HasSuffix(got, "</skill>\n\nARGUMENTS: now") {
		t.Errorf("the skill by hand is %q", got)
	}
	for _, outside := range []string{
		home + "/.claude/secret.txt", base + "/../../secret.txt", base + "/leak.txt", home + "/.claude/skills/other/SKILL.md", "/etc/passwd",
	} {
		refused(t, u.call("read", object{"path": outside}).err, vakerr.PathEscapes)
	}
	u.end()
	w.write("vak.toml", "[permissions]\ndeny = [\"read("+base+"/**)\"]\n")
	u = w.open().begin()
	refused(t, u.call("read", object{"path": base + "/ref.md"}).err, vakerr.PermissionDenied)
}

// Who asks for a skill or command by name whose file is there and cannot be read hears that, with path, line and cure, and
// not that there is none.
func TestBrokenOnesAreNamed(t *testing.T) {
	w := newWorld(t, map[string]string{
		"skills/torn/SKILL.md": "---\nname: torn\ndescription: x\n<<<<<<< HEAD\n---\n", "commands/deep/torn.md": "---\na: b\n",
		skillFile("whole"): skill("whole", "Fine."),
	})
	a := w.open()
	for prompt, tells := range map[string][]string{
		"/skill:torn x": {"skill:torn", "skills/torn/SKILL.md, line 4", "unfinished merge"}, "/torn": {"skill:torn", "line 4"},
		"/deep:torn": {"command:deep:torn", "commands/deep/torn.md, line 1"},
	} {
		_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: prompt})
		refused(t, err, vakerr.CapabilityInvalid, tells...)
	}
	u := a.begin()
	refused(t, u.call("skill", object{"name": "torn"}).err, vakerr.CapabilityInvalid, "skills/torn/SKILL.md, line 4")
	refused(t, u.call("skill", object{"name": "none"}).err, vakerr.CapabilityNotAdmitted)
	u.end()
	w.write("skills/torn/SKILL.md", skill("torn", "Mended."))
	u = a.begin()
	u.want(u.call("skill", object{"name": "torn"}), "Mended.")
	u.end()
	// One that was good stays in force while it is broken, unless a restriction cannot be read; then it is named again.
	w.write("skills/torn/SKILL.md", "---\nname: torn\n  x: [\n---\n")
	u = a.begin()
	u.want(u.call("skill", object{"name": "torn"}), "Mended.")
	u.end()
	w.write("skills/torn/SKILL.md", "---\nname: torn\ndescription: d\nallowed-tools: {Read: x}\n---\nWider.\n")
	u = a.begin()
	refused(t, u.call("skill", object{"name": "torn"}).err, vakerr.CapabilityInvalid, "allowed-tools", "line 4")
}
