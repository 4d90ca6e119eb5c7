package declare

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// then is when every file of a test was written, now is when it is read.
var (
	then = time.Unix(1_700_000_000, 0)
	now  = then.Add(time.Hour)
)

// files makes a workspace of name and text pairs.
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), ModTime: then, Mode: 0o644}
	}
	return m
}

func scan(t testing.TB, fsys fstest.MapFS, opts ...Options) Result {
	t.Helper()
	o := Options{}
	if len(opts) > 0 {
		o = opts[0]
	}
	r, err := NewScanner(o).Scan(fsys, now)
	if err != nil {
		t.Fatal(err)
	}
	return check(t, r)
}

// check holds a result to what is promised of every result.
func check(t testing.TB, r Result) Result {
	t.Helper()
	set, err := capability.NewSet(r.Declarations, nil)
	if err != nil {
		t.Fatalf("declarations make no set: %v", err)
	}
	if err := set.Consistent(); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		if p.Code == "" || p.Path == "" || p.Message == "" || p.Line < 0 || p.Severity != capability.SeverityError && p.Severity != capability.SeverityWarning {
			t.Errorf("incomplete problem %+v", p)
		}
	}
	return r
}

func ids(r Result) []string {
	all := []string{}
	for _, d := range r.Declarations {
		all = append(all, d.ID.String())
	}
	return all
}

// codes lists problems as severity letter, code, path and line.
func codes(r Result) []string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, fmt.Sprintf("%c %s %s:%d", p.Severity[0], p.Code, p.Path, p.Line))
	}
	return all
}

const skillText = "---\nname: a\ndescription: Does a.\n---\nBody.\n"

// Everything a workspace can declare, once.
func TestWholeWorkspace(t *testing.T) {
	fsys := files(
		"check.sh", "#!/bin/sh\n",
		"vak.toml", "[mcp.servers.git]\ncommand = \"mcp-git\"\nargs = [\"${ROOT}\"]\nserves = [\"git\"]\n[mcp.servers.off]\ncommand = \"x\"\nenabled = false\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./check.sh\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"x\"\nenabled = false\n[permissions]\ndeny = [\"bash\"]\n",
		".mcp.json", `{"mcpServers": {"web": {"type": "streamable-http", "url": "https://example.com/mcp"}, "off": {"command": "x", "disabled": true}}}`,
		"skills/a/SKILL.md", "---\nname: a\ndescription: Does a. Use it for b.\nlicense: MIT\nallowed-tools: Read, Bash(git add:*)\nmetadata:\n  vak-serves: web live-data\n  n: {x: [1]}\ndisable-model-invocation: yes\n---\nBody.\n",
		".agents/skills/b/SKILL.md", "---\nname: b\ndescription: Does b.\nserves: [fs, Memory]\n---\nB.\n",
		".claude/skills/c/SKILL.md", "---\nname: c\ndescription: Does c.\n---\nC.\n",
		"commands/do.md", "---\nargument-hint: [file] [mode]\n---\n# Do it\nto $ARGUMENTS\n",
		".claude/commands/sub/go.md", "Go on.\n",
	)
	fsys["check.sh"].Mode = 0o755
	r := scan(t, fsys)
	if diff := cmp.Diff([]string{
		"skill:a", "skill:b", "skill:c", "mcp:git", "mcp:web", "hook:pre-tool-use/./check.sh", "command:do", "command:sub:go",
	}, ids(r)); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
	// argument-hint is repaired, for [file] [mode] is no YAML; nothing else is to be said.
	if diff := cmp.Diff([]string{"w frontmatter_repaired commands/do.md:2"}, codes(r)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	want := capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: "a"}, Origin: capability.Origin{Kind: capability.OriginWorkspace},
		Summary: "Does a. Use it for b.", Serves: capability.Domains{capability.LiveData, capability.Web},
		Digest: capability.ContentDigest([]byte("Body.\n")), Source: "skills/a/SKILL.md",
		Config: &capability.Skill{
			Body: []byte("Body.\n"), Description: "Does a. Use it for b.", License: "MIT",
			Invocation: capability.Invocation{AllowedTools: []string{"Read", "Bash(git add:*)"}, DisableModelInvocation: true},
			Metadata:   map[string]string{"vak-serves": "web live-data", "n": `{"x":[1]}`}, BaseDir: "skills/a",
		},
	}
	if diff := cmp.Diff(want, r.Declarations[0]); diff != "" {
		t.Errorf("skill a (-want +got):\n%s", diff)
	}
	// V27: a skill says what it serves in serves:, a server in its entry.
	if diff := cmp.Diff(capability.Domains{capability.Filesystem, capability.Memory}, r.Declarations[1].Serves); diff != "" {
		t.Errorf("V27 skill b: %s", diff)
	}
	git := r.Declarations[3]
	if diff := cmp.Diff(capability.Domains{capability.VCS}, git.Serves); diff != "" {
		t.Errorf("V27 server git: %s", diff)
	}
	// V28, V29: who declares nothing serves nothing in particular; a name such as web says nothing.
	if web := r.Declarations[4]; web.Serves != nil {
		t.Errorf("V29: server web serves %v", web.Serves)
	}
	if args := git.Config.(*capability.Server).Args; !slices.Equal(args, []string{"${ROOT}"}) {
		t.Errorf("args %q: placeholders stay as written", args)
	}
	command := r.Declarations[6].Config.(*capability.Command)
	if command.ArgumentHint != "[file] [mode]" || command.Description != "Do it" {
		t.Errorf("command %+v", command)
	}
	if diff := cmp.Diff([]string{"bash"}, r.Config.Permissions.Deny); diff != "" {
		t.Errorf("permissions: %s", diff)
	}
	if diff := cmp.Diff([]string{
		".", ".agents", ".agents/skills", ".agents/skills/b", ".claude", ".claude/commands", ".claude/commands/sub",
		".claude/skills", ".claude/skills/c", "commands", "skills", "skills/a",
	}, r.Watch); diff != "" {
		t.Errorf("watch (-want +got):\n%s", diff)
	}
}

// One file means one thing, whatever its line ends and byte-order mark; a second fence of another kind is no fence.
func TestLineEnds(t *testing.T) {
	lf := "---\nname: a\ndescription: one\n  two\nallowed-tools: Read\n---\nBody\n---\nname: decoy\n---\n"
	want := scan(t, files("skills/a/SKILL.md", lf)).Declarations
	mixed := strings.Replace(lf, "\n", "\r\n", 1)
	other := strings.Replace(strings.ReplaceAll(lf, "\n", "\r\n"), "\r\n", "\n", 1)
	for name, text := range map[string]string{
		"CRLF": strings.ReplaceAll(lf, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + lf, "CRLF first": mixed, "LF first": other,
	} {
		if diff := cmp.Diff(want, scan(t, files("skills/a/SKILL.md", text)).Declarations); diff != "" {
			t.Errorf("%s (-LF +%s):\n%s", name, name, diff)
		}
	}
}

// A change of the description alone, or of the body alone, changes the set.
func TestEditsMoveTheDigest(t *testing.T) {
	digest := func(text string) string {
		set, err := capability.NewSet(scan(t, files("skills/a/SKILL.md", text)).Declarations, nil)
		if err != nil {
			t.Fatal(err)
		}
		return set.Digest()
	}
	base := digest(skillText)
	for _, edit := range [][2]string{{"Does a", "Does b"}, {"Body", "Other"}, {"description", "license: MIT\ndescription"}} {
		if digest(strings.Replace(skillText, edit[0], edit[1], 1)) == base {
			t.Errorf("replacing %q by %q is not seen", edit[0], edit[1])
		}
	}
	if digest(skillText) != base {
		t.Error("one file has two digests")
	}
}

// V189, V190, V193: precedence, and shadowed ones stay visible.
func TestPrecedence(t *testing.T) {
	of := func(text string) string { return strings.Replace(skillText, "Does a", text, 1) }
	r := scan(t, files(
		"skills/a/SKILL.md", of("first"), ".agents/skills/a/SKILL.md", of("second"), ".claude/skills/a/SKILL.md", of("first"),
		"skills/z/SKILL.md", of("same folder, later"),
		"commands/x.md", "one", ".claude/commands/x.md", "two",
		"vak.toml", "[mcp.servers.s]\ncommand = \"one\"\n", ".mcp.json", `{"mcpServers": {"s": {"command": "two"}}}`,
	))
	if diff := cmp.Diff([]string{"skill:a", "mcp:s", "command:x"}, ids(r)); diff != "" {
		t.Errorf("declarations: %s", diff)
	}
	if got := r.Declarations[0].Source; got != "skills/a/SKILL.md" {
		t.Errorf("skill a is %s", got)
	}
	id := func(kind capability.Kind, name string) capability.ID { return capability.ID{Kind: kind, Name: name} }
	if diff := cmp.Diff([]capability.Shadow{
		{ID: id(capability.KindSkill, "a"), Source: "skills/z/SKILL.md", By: "skills/a/SKILL.md"},
		{ID: id(capability.KindSkill, "a"), Source: ".agents/skills/a/SKILL.md", By: "skills/a/SKILL.md"},
		{ID: id(capability.KindSkill, "a"), Source: ".claude/skills/a/SKILL.md", By: "skills/a/SKILL.md"},
		{ID: id(capability.KindMCP, "s"), Source: ".mcp.json", By: "vak.toml"},
		{ID: id(capability.KindCommand, "x"), Source: ".claude/commands/x.md", By: "commands/x.md"},
	}, r.Shadowed); diff != "" {
		t.Errorf("V190: shadowed (-want +got):\n%s", diff)
	}
	// A copy that would do the same is no finding.
	for _, p := range r.Problems {
		if p.Code == "name_shadowed" && p.Path == ".claude/skills/a/SKILL.md" {
			t.Errorf("an equal copy is reported: %+v", p)
		}
	}
	if n := len(slices.DeleteFunc(codes(r), func(c string) bool { return !strings.Contains(c, "name_shadowed") })); n != 4 {
		t.Errorf("%d shadowed names are reported, want 4: %v", n, codes(r))
	}
}

// V18: the id of a hook is its event and command; V147-V149 through the reader of a workspace.
func TestHooks(t *testing.T) {
	r := scan(t, files("vak.toml", `
[[hooks]]
event = "post_tool_use"
match = "write"
command = "log it"
[[hooks]]
event = "stop"
command = "off"
enabled = false
[[hooks]]
event = "stop"
command = 1
[[hooks]]
event = "stop"
command = 1
failure_mode = "closed"
`))
	if diff := cmp.Diff([]string{"hook:post-tool-use/log it", "hook:pre-tool-use/hook-4"}, ids(r)); diff != "" {
		t.Fatalf("hooks: %s", diff)
	}
	if diff := cmp.Diff(&capability.Hook{
		Event: "post-tool-use", Match: "write", Command: "log it", Timeout: 10 * time.Second, FailureMode: capability.FailOpen,
	}, r.Declarations[0].Config); diff != "" {
		t.Errorf("hook: %s", diff)
	}
	refusal := r.Declarations[1].Config.(*capability.Hook)
	if refusal.Refusal == "" || refusal.FailureMode != capability.FailClosed {
		t.Errorf("V147: %+v refuses nothing", refusal)
	}
}

// V39: a secret that resolves to something else changes the declaration, and so the set; the value itself is not in it.
func TestSecretDigest(t *testing.T) {
	secrets := map[string]string{}
	s := NewScanner(Options{SecretKey: []byte("k"), LookupSecret: func(name string) (string, bool) { v, ok := secrets[name]; return v, ok }})
	fsys := files("vak.toml", "[mcp.servers.a]\ncommand = \"c\"\nenv = { T = \"${TOKEN}\" }\n[mcp.servers.b]\ncommand = \"c\"\n")
	digests := map[string]bool{}
	var revision uint64
	for i, value := range []string{"", "one", "two", "two"} {
		if value != "" {
			secrets["TOKEN"] = value
		}
		r, err := s.Scan(fsys, now)
		if err != nil {
			t.Fatal(err)
		}
		check(t, r)
		a, b := r.Declarations[0].Config.(*capability.Server), r.Declarations[1].Config.(*capability.Server)
		if a.SecretDigest == "" || b.SecretDigest != "" || strings.Contains(fmt.Sprint(a), "two") {
			t.Errorf("pass %d: digests %q and %q of %v", i, a.SecretDigest, b.SecretDigest, a)
		}
		if moved := r.Revision != revision; moved != !digests[a.SecretDigest] {
			t.Errorf("pass %d: revision %d after %d", i, r.Revision, revision)
		}
		digests[a.SecretDigest], revision = true, r.Revision
	}
	if len(digests) != 3 {
		t.Errorf("%d digests for three states", len(digests))
	}
}

// Limits say what they skipped.
func TestLimits(t *testing.T) {
	fsys := files(
		"vak.toml", "[limits]\nmax_skills = 2\nmax_commands = 2\nmax_depth = 1\n",
		"commands/1.md", "x", "commands/2.md", "x", "commands/3.md", "x", "commands/4/5.md", "x", "commands/4/6/7.md", "x",
	)
	for _, name := range []string{"a", "b", "c", "d"} {
		fsys["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: d\n---\n"), ModTime: then}
	}
	r := scan(t, fsys)
	if diff := cmp.Diff([]string{"skill:a", "skill:b", "command:1", "command:2"}, ids(r)); diff != "" {
		t.Errorf("declarations: %s", diff)
	}
	if diff := cmp.Diff([]string{"e too_many commands:0", "w too_deep commands/4/6:0", "e too_many skills:0"}, codes(r)); diff != "" {
		t.Errorf("problems: %s", diff)
	}
	if !strings.Contains(r.Problems[2].Message, "2 skill folders beyond the first 2") {
		t.Errorf("message %q", r.Problems[2].Message)
	}
	limits := config.DefaultLimits()
	limits.MaxTotalBytes = len(skillText)
	r = scan(t, files("skills/a/SKILL.md", skillText, "skills/b/SKILL.md", skillText), Options{Limits: limits})
	if len(r.Declarations) != 1 || !slices.Contains(codes(r), "e too_many_bytes skills/b/SKILL.md:0") {
		t.Errorf("declared %v, problems %v", ids(r), codes(r))
	}
}

// A hook whose program cannot be run would fail at each delivery; that is said before.
func TestHookPrograms(t *testing.T) {
	fsys := files(
		"hooks/ok.sh", "x", "hooks/plain.sh", "x",
		"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/ok.sh\"\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"hooks/plain.sh --all\"\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/gone.sh\"\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"jq . hooks/gone.sh\"\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/off.sh\"\nenabled = false\n",
	)
	fsys["hooks/ok.sh"].Mode = 0o755
	if diff := cmp.Diff([]string{"w hook_command vak.toml:4", "w hook_command vak.toml:7"}, codes(scan(t, fsys))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
