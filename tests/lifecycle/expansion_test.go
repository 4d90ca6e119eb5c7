package lifecycle

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V9, V10, V188, V192, V194: the host expands commands and skills before a model is called; what is no admitted command
// passes unchanged.
func TestPromptsAreExpanded(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("greet"):    skill("greet", "Say hello."),
		"commands/review.md":  "---\ndescription: Reviews.\n---\nReview $ARGUMENTS with care.",
		"commands/standup.md": "Tell what you did.",
	})
	a := w.open()
	for prompt, want := range map[string]string{
		"/review the patch":     "Review the patch with care.",
		"/review":               "Review  with care.",
		"/standup of yesterday": "Tell what you did.\n\nARGUMENTS: of yesterday",
		"/nothing here":         "/nothing here",
		"/etc/passwd":           "/etc/passwd",
		"say /review it":        "say /review it",
	} {
		u := a.prompt(prompt)
		if got := u.GetPrompt(); got != want {
			t.Errorf("%q was expanded to %q, want %q", prompt, got, want)
		}
		u.end()
	}
	u := a.prompt("/skill:greet the queen")
	if got := u.GetPrompt(); !strings.Contains(got, `<skill name="greet"`) || !strings.Contains(got, "Say hello.") || !strings.HasSuffix(got, "ARGUMENTS: the queen") {
		t.Errorf("V188: the skill was expanded to %q", got)
	}
	u.end()
	_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id, Prompt: "/skill:unknown x"})
	refused(t, err, vakerr.CapabilityNotAdmitted, "skill:unknown", "greet")
	u = a.begin() // the refused turn leaves none open
	u.end()
	eventually(t, "the expansions are on the ledger", func() bool { return len(recorded[ledger.CommandExpanded](a)) == 4 })

	w.remove("commands/review.md")
	w.revoke("command:standup", false)
	for _, prompt := range []string{"/review the patch", "/standup now"} {
		u := a.prompt(prompt)
		if got := u.GetPrompt(); got != prompt {
			t.Errorf("V194: %q is not admitted any more and became %q", prompt, got)
		}
		u.end()
	}
}

// V11, V12, V184, V185, V191: a model sees skills by name and description, loads them by the one tool
// whose schema names exactly those, and never sees a hook or command as a tool.
func TestSkillsAreLoadedByTheSkillTool(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("greet"): skill("greet", "Say hello."), skillFile("part"): skill("part", "Say farewell."),
		"skills/greet/words.txt": "hi", "commands/hi.md": "Greet.",
	})
	w.write("vak.toml", toml("[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n"))
	a := w.open()
	u := a.begin()
	for _, line := range []string{"- greet: Says how to greet.", "- part: Says how to part."} {
		if strings.Count(u.GetPromptSection(), line) != 1 {
			t.Errorf("V184: the prompt does not list a skill once: %s", u.GetPromptSection())
		}
	}
	if strings.Contains(u.String(), "Say hello.") {
		t.Error("V184: a body is in what the model is given at the start")
	}
	schemas := toolSchemas(t, u)
	for _, name := range []string{"greet", "part", "hi", "stop/true"} {
		if _, listed := schemas[name]; listed {
			t.Errorf("%s is listed as a tool", name)
		}
	}
	var schema struct {
		Properties struct {
			Name struct {
				Enum []string `json:"enum"`
			} `json:"name"`
		} `json:"properties"`
		AdditionalProperties bool `json:"additionalProperties"`
	}
	schema.AdditionalProperties = true
	w.must(json.Unmarshal(schemas["skill"], &schema))
	if !slices.Equal(schema.Properties.Name.Enum, []string{"greet", "part"}) || schema.AdditionalProperties {
		t.Errorf("V185: the schema of skill is %s", schemas["skill"])
	}
	u.want(u.call("skill", object{"name": "greet"}), `<skill name="greet" location="skills/greet/SKILL.md"`, `provenance="workspace"`,
		`base_directory="skills/greet"`, "Say hello.", "- skills/greet/words.txt")
	refused(t, u.call("skill", object{"name": "greet", "path": "x"}).err, vakerr.InvalidArguments)
	refused(t, u.call("skill", object{"name": "hi"}).err, vakerr.CapabilityNotAdmitted)
	u.end()

	w.revoke("skill:part", false)
	u = a.begin()
	refused(t, u.call("skill", object{"name": "part"}).err, vakerr.CapabilityRevoked)
	w.must(json.Unmarshal(toolSchemas(t, u)["skill"], &schema))
	if !slices.Equal(schema.Properties.Name.Enum, []string{"greet"}) {
		t.Errorf("V185: after a revocation the schema names %v", schema.Properties.Name.Enum)
	}
}

// toolSchemas are the input schemas of the tools a turn offers, by name.
func toolSchemas(t *testing.T, u *aTurn) map[string]json.RawMessage {
	t.Helper()
	var tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	u.must(json.Unmarshal(u.GetToolsJson(), &tools))
	schemas := make(map[string]json.RawMessage, len(tools))
	for _, tool := range tools {
		schemas[tool.Name] = tool.Schema
	}
	return schemas
}

// V127, V128: direct-write paths are checked before write and edit run, ahead of what rules and mode would allow, and
// through links as well.
func TestDirectWritePaths(t *testing.T) {
	w := newWorld(t, map[string]string{"notes/a.txt": "one", "src/main.go": "package main"})
	w.must(os.Symlink(w.path("src"), w.path("notes/link")))
	u := w.openWith(&sessionv1.OpenSession{WritePaths: []string{"notes/"}}).begin()
	u.want(u.call("write", object{"path": "notes/b.txt", "content": "two"}))
	u.want(u.call("edit", object{"path": "notes/a.txt", "old_string": "one", "new_string": "three"}))
	for _, path := range []string{"src/main.go", "notes/../src/main.go", "notes/link/main.go", "other.txt"} {
		refused(t, u.call("write", object{"path": path, "content": "broken"}).err, vakerr.PermissionDenied)
	}
	refused(t, u.call("edit", object{"path": "src/main.go", "old_string": "main", "new_string": "x"}).err, vakerr.PermissionDenied)
	u.want(u.call("read", object{"path": "src/main.go"}), "package main")
	if _, err := os.Stat(w.path("other.txt")); err == nil {
		t.Error("a file outside the direct-write paths was written")
	}
	free := w.open().begin()
	free.want(free.call("write", object{"path": "other.txt", "content": "x"}))
}
