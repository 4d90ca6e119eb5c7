package declare

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

// What a document says of its invocation, in every spelling in use.
func TestInvocation(t *testing.T) {
	tools := []string{"Read", "Bash(git add:*)", "mcp__a__b"}
	for _, c := range []struct {
		front string
		want  capability.Invocation
		codes string // of the problems
	}{
		{"allowed-tools: Read Bash(git add:*) mcp__a__b", capability.Invocation{AllowedTools: tools}, ""},
		{"allowed-tools: Read, Bash(git add:*),mcp__a__b", capability.Invocation{AllowedTools: tools}, ""},
		{"allowed-tools: [Read, \"Bash(git add:*)\", mcp__a__b]", capability.Invocation{AllowedTools: tools}, ""},
		{"allowed-tools:\n- Read\n- Bash(git add:*)\n- mcp__a__b", capability.Invocation{AllowedTools: tools}, ""},
		{"allowed_tools: Read", capability.Invocation{AllowedTools: []string{"Read"}}, "frontmatter_key"},
		{"allowedTools: Read", capability.Invocation{AllowedTools: []string{"Read"}}, "frontmatter_key"},
		{"disallowedTools: Write Edit", capability.Invocation{DisallowedTools: []string{"Write", "Edit"}}, "frontmatter_key"},
		{"disallowed-tools: Write", capability.Invocation{DisallowedTools: []string{"Write"}}, ""},
		{"allowed-tools: Read\nallowed_tools: Write", capability.Invocation{AllowedTools: []string{"Read"}}, "frontmatter_key"},
		{"tools: Read", capability.Invocation{}, "frontmatter_key"},
		{"user-invocable: false", capability.Invocation{DisableUserInvocation: true}, ""},
		{"user-invocable: 'no'", capability.Invocation{DisableUserInvocation: true}, ""},
		{"user-invocable: 0", capability.Invocation{DisableUserInvocation: true}, ""},
		{"user-invocable: On", capability.Invocation{}, ""},
		{"user-invocable:", capability.Invocation{}, ""},
		{"user-invocable: perhaps", capability.Invocation{DisableUserInvocation: true}, "frontmatter_type"},
		{"user_invocable: false", capability.Invocation{DisableUserInvocation: true}, "frontmatter_key"},
		{"disable-model-invocation: 1", capability.Invocation{DisableModelInvocation: true}, ""},
		{"disable-model-invocation: [a]", capability.Invocation{DisableModelInvocation: true}, "frontmatter_type"},
		{"hide-from-slash-command-tool: \"true\"", capability.Invocation{DisableModelInvocation: true}, "frontmatter_key"},
		{"argument-hint: <optional: platform>", capability.Invocation{ArgumentHint: "<optional: platform>"}, "frontmatter_repaired"},
		{"argument-hint: [a] | [b]", capability.Invocation{ArgumentHint: "[a] | [b]"}, "frontmatter_repaired"},
		{"argument-hint: [file]", capability.Invocation{ArgumentHint: "[file]"}, ""},
		{"argument_hint: x", capability.Invocation{ArgumentHint: "x"}, "frontmatter_key"},
		{"arguments: file mode", capability.Invocation{Arguments: []string{"file", "mode"}}, ""},
		{"arguments:\n  - name: file\n    required: false\n  - name: to-mode", capability.Invocation{Arguments: []string{"file", "to-mode"}}, ""},
		{"arguments: {file: x}", capability.Invocation{}, "frontmatter_type"},
		{"arguments: [\"a b$\"]", capability.Invocation{}, "frontmatter_type"},
		{
			"model: opus\neffort: high\ncontext: fork\nagent: Explore\nbackground: yes\nshell: powershell",
			capability.Invocation{Model: "opus", Effort: "high", Context: "fork", Agent: "Explore", Background: true, Shell: "powershell"},
			"",
		},
		{"effort: huge\ncontext: spoon\nshell: zsh\nmodel: {a: b}\nbackground: hm", capability.Invocation{}, "frontmatter_type"},
		{"hooks:\n  PreToolUse: []", capability.Invocation{}, "frontmatter_unsupported"},
		{"descripton: x\nallowed-tool: y", capability.Invocation{}, "frontmatter_key"},
		{"origin: x\nversion: 2\ntags: [a]\ncontent: y\nmode: z\npath: q", capability.Invocation{}, ""},
	} {
		t.Run(c.front, func(t *testing.T) {
			r := scan(t, files(
				"skills/x/SKILL.md", "---\nname: x\ndescription: d\n"+c.front+"\n---\nBody\n",
				"commands/x.md", "---\ndescription: d\n"+c.front+"\n---\nBody\n",
			))
			if len(r.Declarations) != 2 {
				t.Fatalf("declared %v, problems %v", ids(r), r.Problems)
			}
			if diff := cmp.Diff(c.want, r.Declarations[0].Config.(*capability.Skill).Invocation); diff != "" {
				t.Errorf("skill (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, r.Declarations[1].Config.(*capability.Command).Invocation); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			said := map[string]bool{}
			for _, p := range r.Problems {
				said[p.Code] = true
			}
			if len(said) > 1 || (c.codes == "") != (len(said) == 0) || c.codes != "" && !said[c.codes] {
				t.Errorf("problems %v, want %q", r.Problems, c.codes)
			}
		})
	}
}

// What belongs to a skill alone.
func TestSkillFields(t *testing.T) {
	r := scan(t, files("skills/x/SKILL.md", "---\nname: x\ndescription: d\nwhen-to-use: When asked.\ncompatibility: Needs git.\n"+
		"paths: src/**/*.{ts,tsx}, docs/**\nlicense: MIT\n---\nBody\n", "skills/y/SKILL.md", "---\nname: y\ndescription: d\npaths: [a/**, b]\ncompatibility: [a]\n---\n"))
	x, y := r.Declarations[0].Config.(*capability.Skill), r.Declarations[1].Config.(*capability.Skill)
	if x.WhenToUse != "When asked." || x.Compatibility != "Needs git." || x.License != "MIT" || !slices.Equal(x.Paths, []string{"src/**/*.{ts,tsx}", "docs/**"}) {
		t.Errorf("x is %+v", x)
	}
	if y.Compatibility != "" || !slices.Equal(y.Paths, []string{"a/**", "b"}) {
		t.Errorf("y is %+v", y)
	}
	if diff := cmp.Diff([]string{"w frontmatter_key skills/x/SKILL.md:4", "w frontmatter_type skills/y/SKILL.md:5"}, codes(r)); diff != "" {
		t.Error(diff)
	}
}

// Commands of other programs, at their places and by their endings.
func TestCommandDialects(t *testing.T) {
	r := scan(t, files(
		".gemini/commands/git/fix.toml", "description = \"Fixes.\"\nprompt = \"\"\"\nFix {{args}}\n\"\"\"\n[more]\nprompt = 1\n",
		".gemini/commands/notes.md", "No command.",
		".github/prompts/review.prompt.md", "---\nagent: agent\nmode: agent\ntools: ['codebase', 'search']\ndescription: Reviews.\n---\nReview.\n", ".github/prompts/README.md", "No command.",
		".cursor/commands/go.md", "Go.", "commands/plain.toml", "prompt = 'Do.'\n",
	))
	if diff := cmp.Diff([]string{"command:git:fix", "command:go", "command:plain", "command:review"}, ids(r)); diff != "" || len(r.Problems) > 0 {
		t.Fatalf("%s, %v", diff, r.Problems)
	}
	if review := r.Declarations[3].Config.(*capability.Command); review.Agent != "agent" || !slices.Equal(review.AllowedTools, []string{"codebase", "search"}) {
		t.Errorf("review is %+v", review)
	}
	fix := r.Declarations[0].Config.(*capability.Command)
	if string(fix.Body) != "Fix {{args}}\n" || fix.Description != "Fixes." || fix.Dialect != capability.DialectGemini || r.Declarations[0].Digest != capability.ContentDigest(fix.Body) {
		t.Errorf("fix is %+v", fix)
	}
	for text, want := range map[string]string{
		"prompt = \"\"\"\nx\n\ny = 1\n":                 "e command_syntax commands/x.toml:4",
		"# c\nprompt = \"\\q\"\n":                       "e command_syntax commands/x.toml:2",
		"description = \"d\"\n":                         "e command_prompt commands/x.toml:0",
		"a = 1\nprompt = 1\n":                           "e command_prompt commands/x.toml:2",
		"prompt = \" \"\n":                              "e command_prompt commands/x.toml:1",
		"prompt = \"a\"\nprompt = \"b\"\n":              "e command_syntax commands/x.toml:2",
		"prompt = \"a\"\ndescription = 1\n":             "w frontmatter_type commands/x.toml:2",
		"[a]\nprompt = \"a\"\n":                         "e command_prompt commands/x.toml:0",
		strings.Repeat("k = 1\n", 3) + "prompt = \"a\"": "e command_syntax commands/x.toml:2",
	} {
		if diff := cmp.Diff([]string{want}, codes(scan(t, files("commands/x.toml", text)))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// While a document is broken the version before stays in force with the problem beside it, unless the broken one was to be
// narrower: what cannot be read must not count as no restriction.
func TestBrokenDocumentsKeepTheLastGoodVersion(t *testing.T) {
	const good, restricted = skillText, "---\nname: a\ndescription: Does a.\nallowed-tools: Read\n---\nBody.\n"
	for _, c := range []struct {
		name, first, then string
		kept              bool
	}{
		{"a merge that is not finished", good, "---\nname: a\n<<<<<<< HEAD\ndescription: x\n---\n", true},
		{"cut", good, "---\nname: a\ndescr", true},
		{"emptied", good, "", true},
		{"no YAML", good, "---\nname: a\n  b: [\n---\n", true},
		{"the same restriction", restricted, "---\nname: a\n  b: [\nallowed-tools: Read\n---\n", true},
		{"the restriction is cut off", restricted, "---\nname: a\nallow", true},
		{"another restriction", restricted, "---\nname: a\n  b: [\nallowed-tools: Read(x)\n---\n", false},
		{"a new restriction", good, "---\nname: a\n  b: [\nallowed-tools: Read\n---\n", false},
		{"a restriction that cannot be read", good, "---\nname: a\ndescription: d\nallowed_tools: {a: b}\n---\n", false},
		{"a restriction over lines", restricted, "---\nname: a\n  b: [\nallowed-tools: Read\n  Write\n---\n", false},
		{"not for models any more", good, "---\nname: a\n  b: [\ndisable_model_invocation: yes\n---\n", false},
		{"a restriction without its fence", good, "---\nname: a\nuser-invocable: false\nBody", false},
		{"a restriction anywhere in the line", good, "---\n{name: a, 'allowed-tools': Read\n---\n", false},
		{"a restriction behind another end of a line", good, "---\nname: a\n  b: [\rallowed-tools: Read\n---\n", false},
		{"a list without indentation", restricted, "---\nname: a\n  b: [\nallowed-tools:\n- Read\n- Bash\n---\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &watched{MapFS: files("skills/a/SKILL.md", c.first)}
			s := NewScanner(Options{})
			first := w.scan(t, s, now)
			for i, text := range []string{c.then, c.then + "\n<!-- edited -->\n"} {
				if c.then == "" {
					text = strings.Repeat("\n", i)
				}
				w.MapFS["skills/a/SKILL.md"] = &fstest.MapFile{Data: []byte(text), ModTime: then.Add(time.Duration(i+1) * time.Minute)}
				r := w.scan(t, s, now)
				if c.kept {
					if diff := cmp.Diff(first.Declarations, r.Declarations); diff != "" {
						t.Errorf("pass %d (-first +now):\n%s", i, diff)
					}
				} else if len(r.Declarations) > 0 {
					t.Errorf("pass %d: %v stays in force", i, ids(r))
				}
				hasNote := slices.ContainsFunc(r.Problems, func(p capability.Problem) bool { return p.Code == "earlier_version" })
				if hasError := slices.ContainsFunc(r.Problems, func(p capability.Problem) bool { return p.Severity == capability.SeverityError }); !hasError || hasNote != c.kept {
					t.Errorf("pass %d: problems %v", i, r.Problems)
				}
				if again := w.scan(t, s, now); again.Revision != r.Revision {
					t.Error("a file that stays broken is news")
				}
			}
			w.MapFS["skills/a/SKILL.md"] = &fstest.MapFile{Data: []byte(strings.Replace(good, "Does a", "Repaired", 1)), ModTime: then.Add(time.Hour / 2)}
			if r := w.scan(t, s, now); len(r.Problems) > 0 || len(r.Declarations) != 1 || r.Declarations[0].Summary != "Repaired." {
				t.Errorf("repaired: %v, %v", r.Declarations, r.Problems)
			}
			delete(w.MapFS, "skills/a/SKILL.md")
			if r := w.scan(t, s, now); len(r.Declarations) > 0 {
				t.Error("a file that is gone stays in force")
			}
		})
	}
}

// What was never readable is nothing, and a broken command costs no other.
func TestBrokenFromTheStart(t *testing.T) {
	r := scan(t, files("commands/a.md", "---\nx: a\n  y: b\n---\nA\n", "commands/b.md", "B\n"))
	if diff := cmp.Diff([]string{"command:b"}, ids(r)); diff != "" {
		t.Error(diff)
	}
}

// Nothing outside the layout is opened, however it is called and whatever lies beside it.
func TestOnlyTheLayoutIsOpened(t *testing.T) {
	fsys := dated(files(
		"vak.toml", "", ".mcp.json", "{}", "secret.env", "KEY=1", ".env", "KEY=1", "skills/README.md", "x", "skills/a/SKILL.md", skillText,
		"skills/a/scripts/run.sh", "x", "skills/a/references/deep/x.md", "x", "skills/.hidden/SKILL.md", skillText, "skills/a/.env", "KEY=1",
		"commands/x.md", "x", "commands/x.png", "x", "commands/.secret/y.md", "x", ".claude/settings.json.bak", "{", ".claude/agents/a.md", "x",
		".git/config", "x", "node_modules/x/SKILL.md", skillText, ".ssh/id_rsa", "x", "other/skills/b/SKILL.md", skillText,
	))
	w := &watched{MapFS: fsys}
	w.scan(t, NewScanner(Options{}), now)
	want := []string{".mcp.json", "commands", "commands/x.md", "skills", "skills/a/SKILL.md", "vak.toml"}
	slices.Sort(w.opened)
	if diff := cmp.Diff(want, w.opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	// A home folder and a plugin are no workspaces: their other files are theirs.
	for name, layout := range map[string]Layout{"home": HomeLayout(), "plugin": {Skills: []string{"skills"}, CommandFiles: []string{"more/x.md"}}} {
		w := &watched{MapFS: fsys}
		w.scan(t, NewScanner(Options{Layout: &layout, Prefix: "~/"}), now)
		for _, opened := range w.opened {
			if name == "home" || !strings.HasPrefix(opened, "skills") {
				t.Errorf("%s: %s is opened", name, opened)
			}
		}
	}
}
