package host

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/actors/reconciler"
	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// folders writes files below one temporary folder and returns it.
func folders(t *testing.T, pairs ...string) string {
	t.Helper()
	top := realFolder(t.TempDir())
	for i := 0; i < len(pairs); i += 2 {
		writeFile(t, filepath.Join(top, pairs[i]), pairs[i+1])
	}
	return top
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// threeRoots scans ws with the user's folders etc and home of one temporary folder.
func threeRoots(top string) *scanner {
	h := &Host{options: Options{UserConfig: filepath.Join(top, "home/.config/vak-actors"), Home: filepath.Join(top, "home")}}
	ws := filepath.Join(top, "ws")
	return &scanner{
		workspace: openedAt(ws, declare.Options{}), shared: h.userRoots(ws, declare.Options{}),
		misplaced: func(config.Config) []capability.Problem { return nil },
	}
}

func pass(t *testing.T, s *scanner) reconciler.World {
	t.Helper()
	w, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sources lists what a world declares as id, origin and source.
func sources(w reconciler.World) []string {
	var all []string
	for _, d := range w.Declarations {
		all = append(all, d.ID.String()+" "+d.Origin.Label()+" "+d.Source)
	}
	return all
}

func skillNamed(name, text string) string {
	return "---\nname: " + name + "\ndescription: " + text + "\n---\nBody.\n"
}

// V190, V193: the workspace beats the user's own files, the user's folder beats the home folder, and what is hidden stays
// visible. Of a home folder only texts are read.
func TestUserRoots(t *testing.T) {
	top := folders(t,
		"ws/skills/a/SKILL.md", skillNamed("a", "of the workspace"), "ws/.claude/commands/x.md", "workspace",
		"home/.config/vak-actors/skills/a/SKILL.md", skillNamed("a", "of the user"),
		"home/.config/vak-actors/skills/b/SKILL.md", skillNamed("b", "of the user"),
		"home/.config/vak-actors/vak.toml", "listen = \"x\"\n[mcp.servers.s]\ncommand = \"c\"\n[permissions]\ndeny = [\"bash\"]\n",
		"home/.claude/skills/b/SKILL.md", skillNamed("b", "of another program"),
		"home/.agents/skills/c/SKILL.md", skillNamed("c", "c"), "home/.claude/commands/x.md", "home", "home/.claude/commands/y.md", "home",
		"home/.mcp.json", `{"mcpServers": {"evil": {"command": "c"}}}`, "home/vak.toml", "[mcp.servers.evil]\ncommand = \"c\"\n",
		"home/.claude/settings.json", `{"hooks": {}}`,
	)
	s := threeRoots(top)
	w := pass(t, s)
	if diff := cmp.Diff([]string{
		"skill:a workspace skills/a/SKILL.md",
		"skill:b shared ~/.config/vak-actors/skills/b/SKILL.md",
		"skill:c shared ~/.agents/skills/c/SKILL.md",
		"mcp:s shared ~/.config/vak-actors/vak.toml",
		"command:x workspace .claude/commands/x.md",
		"command:y shared ~/.claude/commands/y.md",
	}, sources(w)); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
	var hidden []string
	for _, shadow := range w.Shadowed {
		hidden = append(hidden, shadow.ID.String()+" "+shadow.Source+" by "+shadow.By)
	}
	if diff := cmp.Diff([]string{
		"skill:a ~/.config/vak-actors/skills/a/SKILL.md by skills/a/SKILL.md",
		"skill:b ~/.claude/skills/b/SKILL.md by ~/.config/vak-actors/skills/b/SKILL.md",
		"command:x ~/.claude/commands/x.md by .claude/commands/x.md",
	}, hidden); diff != "" {
		t.Errorf("shadowed (-want +got):\n%s", diff)
	}
	found := map[string]string{}
	for _, p := range w.Problems {
		found[p.Path] = p.Code
	}
	want := map[string]string{
		"~/.config/vak-actors/skills/a/SKILL.md": "name_shadowed", "~/.claude/skills/b/SKILL.md": "name_shadowed",
		"~/.claude/commands/x.md": "name_shadowed", "~/.config/vak-actors/vak.toml": "config_misplaced",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if base := w.Declarations[1].Config.(*capability.Skill).BaseDir; base != filepath.ToSlash(filepath.Join(top, "home/.config/vak-actors/skills/b")) {
		t.Errorf("skill b has its files in %s", base)
	}
	if d := w.Policy.Engine.Decide(policy.Request{Tool: "bash"}); d.Effect != policy.Deny {
		t.Errorf("what the user denies is decided %v", d.Effect)
	}
	for _, folder := range []string{"ws", "ws/skills/a", "home/.claude/skills/b", "home/.claude/commands", "home/.agents/skills/c", "home/.config/vak-actors/skills/a"} {
		if !slices.Contains(w.Watch, filepath.Join(top, folder)) {
			t.Errorf("%s is not watched: %v", folder, w.Watch)
		}
	}
	if again := pass(t, s); again.Policy != w.Policy || &again.Declarations[0] != &w.Declarations[0] {
		t.Error("a quiet pass is not quiet")
	}
}

// An edit in any root is seen by the next pass, and so is a root that appears or goes; two views of one pass agree.
func TestEveryRootIsFollowed(t *testing.T) {
	places := map[string]string{
		"ws/skills/p/SKILL.md": "workspace", "ws/.claude/skills/q/SKILL.md": "workspace",
		"home/.config/vak-actors/skills/r/SKILL.md": "shared", "home/.claude/skills/u/SKILL.md": "shared", "home/.agents/skills/v/SKILL.md": "shared",
	}
	for place, origin := range places {
		t.Run(place, func(t *testing.T) {
			top := folders(t, "ws/vak.toml", "")
			name := filepath.Base(filepath.Dir(place))
			s := threeRoots(top)
			if w := pass(t, s); len(w.Declarations) != 0 || len(w.Problems) != 0 {
				t.Fatalf("an empty world holds %v, %v", sources(w), w.Problems)
			}
			for _, text := range []string{"one", "two"} {
				writeFile(t, filepath.Join(top, place), skillNamed(name, text))
				w := pass(t, s)
				if len(w.Declarations) != 1 || w.Declarations[0].Summary != text || w.Declarations[0].Origin.Label() != origin {
					t.Fatalf("after writing %s: %v, %v", text, sources(w), w.Problems)
				}
			}
			if err := os.RemoveAll(filepath.Join(top, strings.SplitAfterN(place, "/", 3)[0], strings.Split(place, "/")[1])); err != nil {
				t.Fatal(err)
			}
			if w := pass(t, s); len(w.Declarations) != 0 {
				t.Errorf("after the removal: %v", sources(w))
			}
		})
	}
}

// A user's folder that cannot be read costs no workspace. What was read of it stays in force; what was never read may deny
// anything.
func TestUnreadableUserFolder(t *testing.T) {
	top := folders(t, "ws/skills/a/SKILL.md", skillNamed("a", "a"), "home/.config/vak-actors/skills/b/SKILL.md", skillNamed("b", "b"))
	known, fresh := threeRoots(top), threeRoots(top)
	pass(t, known)
	// A file in the place of the folder is no folder for anybody, the superuser included.
	config := filepath.Join(top, "home/.config/vak-actors")
	if err := errors.Join(os.RemoveAll(config), os.WriteFile(config, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w := pass(t, known)
	if len(w.Declarations) != 2 || len(w.Problems) != 1 || w.Problems[0].Code != "folder_unreadable" {
		t.Errorf("known: %v, %v", sources(w), w.Problems)
	}
	if d := w.Policy.Engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); d.Effect == policy.Deny {
		t.Error("known: a call is denied although no rule says so")
	}
	w = pass(t, fresh)
	if len(w.Declarations) != 1 || len(w.Problems) != 1 {
		t.Errorf("fresh: %v, %v", sources(w), w.Problems)
	}
	if d := w.Policy.Engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); d.Effect != policy.Deny {
		t.Errorf("fresh: a call is decided %v", d.Effect)
	}
}

// Plugins are further roots: of two with one plain name each has its own, and they follow the list of the enabled ones.
func TestPluginsAreRoots(t *testing.T) {
	top := folders(t, "ws/skills/setup/SKILL.md", skillNamed("setup", "of the workspace"),
		"p1/skills/setup/SKILL.md", skillNamed("setup", "one"), "p2/skills/setup/SKILL.md", skillNamed("setup", "two"), "p2/more/do.md", "Do.")
	plugin := func(name string) source {
		return source{
			dir: filepath.Join(top, name), data: "/data/" + name, prefix: "plugin:" + name + "/",
			origin: capability.Origin{Kind: capability.OriginPlugin, Plugin: name, Scope: "user"},
			layout: &declare.Layout{Skills: []string{"skills"}, CommandFiles: []string{"more/do.md"}, Prefix: name + ":"},
		}
	}
	enabled := map[string]source{"p1": plugin("p1"), "p2": plugin("p2")}
	var failed error
	s := threeRoots(top)
	s.plugins = func(context.Context) ([]source, []capability.Problem, error) {
		var all []source
		for _, name := range slices.Sorted(maps.Keys(enabled)) {
			all = append(all, enabled[name])
		}
		return all, nil, failed
	}
	all := []string{
		"skill:p1:setup plugin:user:p1 plugin:p1/skills/setup/SKILL.md", "skill:p2:setup plugin:user:p2 plugin:p2/skills/setup/SKILL.md",
		"skill:setup workspace skills/setup/SKILL.md", "command:p2:do plugin:user:p2 plugin:p2/more/do.md",
	}
	w := pass(t, s)
	if diff := cmp.Diff(all, sources(w)); diff != "" || len(w.Problems) > 0 || len(w.Shadowed) > 0 {
		t.Errorf("%s\nproblems %v, shadowed %v", diff, w.Problems, w.Shadowed)
	}
	skill := w.Declarations[0].Config.(*capability.Skill)
	if want := (capability.Folder{Path: filepath.Join(top, "p1"), Data: "/data/p1"}); skill.Root != want || skill.BaseDir != want.Path+"/skills/setup" {
		t.Errorf("the skill belongs to %+v and has its files in %s", skill.Root, skill.BaseDir)
	}
	failed = errors.New("the store is locked")
	if w := pass(t, s); len(w.Declarations) != 4 || len(w.Problems) != 1 {
		t.Errorf("while the list cannot be read: %v, %v", sources(w), w.Problems)
	}
	failed = nil
	delete(enabled, "p2")
	if w := pass(t, s); len(w.Declarations) != 2 || slices.ContainsFunc(w.Watch, func(f string) bool { return strings.HasPrefix(f, filepath.Join(top, "p2")) }) {
		t.Errorf("after disabling p2: %v, watched %v", sources(w), w.Watch)
	}
}

// Links of a home folder lead where they lead, absolute ones too, as long as they stay in it.
func TestLinksOfAHomeFolder(t *testing.T) {
	top := folders(t, "ws/vak.toml", "", "home/dot/skills/a/SKILL.md", skillNamed("a", "a"), "home/dot/skills/b/SKILL.md", skillNamed("b", "b"), "elsewhere/c/SKILL.md", skillNamed("c", "c"))
	for link, target := range map[string]string{
		".claude": filepath.Join(top, "home/dot"), ".agents/skills/alias": filepath.Join(top, "home/dot/skills/b"), ".agents/skills/c": filepath.Join(top, "elsewhere/c"),
	} {
		at := filepath.Join(top, "home", link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
	}
	w := pass(t, threeRoots(top))
	if diff := cmp.Diff([]string{"skill:a shared ~/.claude/skills/a/SKILL.md", "skill:b shared ~/.agents/skills/alias/SKILL.md"}, sources(w)); diff != "" {
		t.Error(diff)
	}
	var codes []string
	for _, p := range w.Problems {
		codes = append(codes, p.Code+" "+p.Path)
	}
	if diff := cmp.Diff([]string{"skill_name_mismatch ~/.agents/skills/alias/SKILL.md", "link_outside ~/.agents/skills/c"}, codes); diff != "" {
		t.Error(diff)
	}
}
