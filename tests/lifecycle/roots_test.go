package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// sharedWorld is a world with the user's folders beside its workspace, watched.
func sharedWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := emptyWorld(t, files)
	w.write("vak.toml", "[permissions]\nmode = \"full-access\"\n[reconcile]\ntick = \"1h\"\ndebounce = \"20ms\"\n")
	w.must(os.MkdirAll(w.outside("home"), 0o755))
	w.start(sharedOptions(w))
	return w
}

func sharedOptions(w *world) host.Options {
	return host.Options{Watch: true, Home: w.outside("home"), UserConfig: w.outside("home/.config/vak-actors")}
}

func (w *world) writeOutside(name, text string) {
	w.Helper()
	at := w.outside(name)
	w.must(os.MkdirAll(filepath.Dir(at), 0o755))
	w.must(os.WriteFile(at, []byte(text), 0o600))
}

// A skill that appears in any root, with all the folders above it, is there without a restart, a turn or a tick, and so is
// each edit of it: every root is watched the same way.
func TestEveryRootIsWatched(t *testing.T) {
	for _, place := range []string{
		"workspace/skills", "workspace/.claude/skills", "workspace/.agents/skills", "home/.claude/skills", "home/.agents/skills", "home/.config/vak-actors/skills",
	} {
		t.Run(place, func(t *testing.T) {
			w := sharedWorld(t, nil)
			w.must(os.MkdirAll(w.outside("home/.config"), 0o755))
			for _, text := range []string{"First.", "Second."} {
				w.writeOutside(place+"/fresh/SKILL.md", "---\nname: fresh\ndescription: "+text+"\n---\nx\n")
				eventually(t, text, func() bool { row := w.row("skill:fresh"); return row != nil && row.Summary == text })
			}
			// An editor that saves by renaming makes another file of the same name.
			w.writeOutside(place+"/fresh/new", "---\nname: fresh\ndescription: Third.\n---\nx\n")
			w.must(os.Rename(w.outside(place+"/fresh/new"), w.outside(place+"/fresh/SKILL.md")))
			eventually(t, "renamed into place", func() bool { return w.row("skill:fresh").Summary == "Third." })
			gone := w.outside(place)
			if place != "workspace/skills" {
				gone = filepath.Dir(gone)
			}
			w.must(os.RemoveAll(gone))
			eventually(t, "gone", func() bool { return w.row("skill:fresh") == nil })
			w.writeOutside(place+"/fresh/SKILL.md", skill("fresh", "x"))
			eventually(t, "back", func() bool { return w.row("skill:fresh") != nil })
		})
	}
}

// A body that changes alone changes what a list says of it and what is loaded, together: there is one digest for both.
func TestBodyAloneChanges(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("greet"): skill("greet", "One.")})
	a := w.open()
	u := a.begin()
	first := u.GetSetDigest()
	w.write(skillFile("greet"), skill("greet", "Two."))
	w.reload()
	u.want(u.call("skill", object{"name": "greet"}), "One.") // the turn keeps what it began with
	u.end()
	u = a.begin()
	if d := u.GetDelta(); !slices.Equal(d.GetUpdated(), []string{"skill:greet"}) || u.GetSetDigest() == first {
		t.Errorf("the change is told as %v, digest %s", d, u.GetSetDigest())
	}
	u.want(u.call("skill", object{"name": "greet"}), "Two.")
}

// Moving many skills from one root to another is no moment without them: what a turn is told, what the report lists and
// what can be loaded are one epoch.
func TestViewsAgreeWhileSkillsMove(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("skills/s%d/SKILL.md", i)] = skill(fmt.Sprintf("s%d", i), "x")
	}
	w := newWorld(t, files)
	a := w.open()
	for i := range 20 {
		w.must(os.MkdirAll(w.path(".claude/skills"), 0o755))
		w.must(os.Rename(w.path(fmt.Sprintf("skills/s%d", i)), w.path(fmt.Sprintf(".claude/skills/s%d", i))))
		u := a.begin()
		report, _ := w.report()
		listed := 0
		for _, row := range report.Capabilities {
			if row.Kind == capability.KindSkill {
				listed++
			}
		}
		if n := strings.Count(u.GetPromptSection(), "\n- s"); n != 20 || listed != 20 || uint64(report.Epoch) != u.GetEpoch() || u.GetNotice() != "" {
			t.Errorf("after %d moves: %d in the prompt of epoch %d, %d in the report of epoch %d, told %q", i+1, n, u.GetEpoch(), listed, report.Epoch, u.GetNotice())
		}
		u.end()
	}
}

// What changes while the daemon is down is told to a session that goes on afterwards; a workspace that was moved meanwhile
// is read where it is now, with the files of its skills.
func TestChangesWhileDown(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("stays"): skill("stays", "x"), "skills/stays/ref.md": "The reference.", skillFile("goes"): skill("goes", "x"),
	})
	a := w.open()
	a.begin().end()
	w.stop()
	w.remove(skillFile("goes"))
	w.write(skillFile("comes"), skill("comes", "x"))
	moved := w.outside("moved")
	w.must(os.Rename(w.path(""), moved))
	w.must(os.Symlink(moved, w.path("")))
	w.start(host.Options{})
	u := a.begin()
	if d := u.GetDelta(); !slices.Equal(d.GetAdded(), []string{"skill:comes"}) || !slices.Equal(d.GetRemoved(), []string{"skill:goes"}) {
		t.Errorf("the session is told %v", d)
	}
	u.want(u.call("skill", object{"name": "stays"}), "- skills/stays/ref.md")
	u.want(u.call("read", object{"path": "skills/stays/ref.md"}), "The reference.")
	u.want(u.call("read", object{"path": filepath.Join(moved, "skills/stays/ref.md")}), "The reference.")
}

// A file that somebody else rewrites without an entry takes the entry away, and says so; the other program's change is not
// undone.
func TestForeignRewriteIsTold(t *testing.T) {
	w := newWorld(t, map[string]string{".mcp.json": `{"mcpServers": {"one": {"command": "c"}, "two": {"command": "c"}}}`})
	a := w.open()
	a.begin().end()
	const rewritten = `{"mcpServers": {"two": {"command": "c"}}}`
	w.write(".mcp.json", rewritten)
	u := a.begin()
	if d := u.GetDelta(); !slices.Equal(d.GetRemoved(), []string{"mcp:one"}) || !strings.Contains(u.GetNotice(), "mcp:one") {
		t.Errorf("told %v, %q", d, u.GetNotice())
	}
	if text, err := os.ReadFile(w.path(".mcp.json")); err != nil || string(text) != rewritten {
		t.Errorf("the file is %q now, %v", text, err)
	}
}

// Whatever is listed can be loaded, links of every kind included, and what is hidden says by what.
func TestListedSkillsCanBeLoaded(t *testing.T) {
	w := emptyWorld(t, map[string]string{
		"lib/one/SKILL.md": skill("one", "Body of one."), "lib/text.md": skill("two", "Body of two."), "skills/plain/SKILL.md": skill("plain", "Body of plain."),
		"skills/nameless/SKILL.md": "---\ndescription: d\n---\nOf the workspace.\n",
	})
	for link, target := range map[string]string{
		"skills/one": "../lib/hop", "lib/hop": "one", "skills/alias": "plain", "skills/dangling": "nowhere",
		"skills/two/SKILL.md": "../../lib/text.md", "skills/file": "../lib/text.md",
	} {
		w.must(os.MkdirAll(filepath.Dir(w.path(link)), 0o755))
		w.must(os.Symlink(target, w.path(link)))
	}
	w.writeOutside("home/.claude/skills/nameless/SKILL.md", skill("nameless", "Of the user."))
	w.start(host.Options{Home: w.outside("home")})
	u := w.open().begin()
	var names []string
	for line := range strings.Lines(u.GetPromptSection()) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- "), ":"); ok && strings.HasPrefix(line, "- ") {
			names = append(names, name)
		}
	}
	if !slices.Equal(names, []string{"nameless", "one", "plain", "two"}) {
		t.Fatalf("listed %v", names)
	}
	for _, name := range names[1:] {
		u.want(u.call("skill", object{"name": name}), "Body of "+name+".")
	}
	u.want(u.call("skill", object{"name": "nameless"}), "Of the workspace.")
	report, _ := w.report()
	var hidden []string
	for _, s := range report.Shadowed {
		hidden = append(hidden, s.ID.String()+" "+s.Source+" "+s.By)
	}
	slices.Sort(hidden)
	if !slices.Equal(hidden, []string{
		"skill:nameless ~/.claude/skills/nameless/SKILL.md skills/nameless/SKILL.md", "skill:plain skills/alias/SKILL.md skills/plain/SKILL.md",
	}) {
		t.Errorf("shadowed: %q", hidden)
	}
	told := 0
	for _, f := range report.Findings() {
		if f.Subject == "~/.claude/skills/nameless/SKILL.md" && strings.Contains(f.Problem, "comes first") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("doctor tells %d times that the user's skill is hidden", told)
	}
}

// A workspace cannot switch off a guard of its user by declaring a harmless hook of the same name.
func TestAWorkspaceCannotHideAGuard(t *testing.T) {
	w := sharedWorld(t, nil)
	guard := "echo the guard says no >&2; exit 2"
	w.writeOutside("home/.config/vak-actors/vak.toml", hook("pre-tool-use", "write", guard))
	w.write("vak.toml", toml(hook("pre-tool-use", "write(nothing.here)", guard)))
	w.reload()
	refused(t, w.open().begin().call("write", object{"path": "a.txt", "content": "x"}).err, vakerr.HookBlocked, "the guard says no")
	hooks := 0
	report, _ := w.report()
	for _, row := range report.Capabilities {
		if row.Kind == capability.KindHook {
			hooks++
		}
	}
	if hooks != 2 {
		t.Errorf("the report shows %d hooks, want both", hooks)
	}
}
