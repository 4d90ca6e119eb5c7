package declare

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// watched is a file system that counts what is opened and fails where it is told to.
type watched struct {
	fstest.MapFS
	opened []string
	fail   map[string]error
}

func (w *watched) Open(name string) (fs.File, error) {
	w.opened = append(w.opened, name)
	if err := w.fail[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return w.MapFS.Open(name)
}

func (w *watched) Stat(name string) (fs.FileInfo, error) {
	if err := w.fail[name]; err != nil && errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return w.MapFS.Stat(name)
}

func (w *watched) scan(t *testing.T, s *Scanner, at time.Time) Result {
	t.Helper()
	w.opened = nil
	r, err := s.Scan(w, at)
	if err != nil {
		t.Fatal(err)
	}
	return check(t, r)
}

// dated gives every folder of a workspace the time of its files. Without, a folder has no time and is listed each pass.
func dated(m fstest.MapFS) fstest.MapFS {
	for _, name := range slices.Collect(maps.Keys(m)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			m[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: then}
		}
	}
	return m
}

// A quiet pass reads nothing and says that nothing moved.
func TestQuietPass(t *testing.T) {
	w := &watched{MapFS: dated(files("skills/a/SKILL.md", skillText, "skills/bad/SKILL.md", "", "commands/x.md", "x", "vak.toml", "listen = 1\n", ".mcp.json", "{}"))}
	s := NewScanner(Options{})
	first := w.scan(t, s, now)
	if len(w.opened) == 0 || first.Revision == 0 {
		t.Fatalf("the first pass opened %v, revision %d", w.opened, first.Revision)
	}
	for range 25 {
		if again := w.scan(t, s, now); len(w.opened) > 0 || again.Revision != first.Revision {
			t.Fatalf("a quiet pass opened %v, revision %d after %d", w.opened, again.Revision, first.Revision)
		}
	}
	w.MapFS["skills/a/SKILL.md"] = &fstest.MapFile{Data: []byte(strings.Replace(skillText, "Body", "Text", 1)), ModTime: then.Add(time.Second)}
	next := w.scan(t, s, now)
	if diff := cmp.Diff([]string{"skills/a/SKILL.md"}, w.opened); diff != "" || next.Revision == first.Revision {
		t.Errorf("after one edit: opened %s, revision %d", diff, next.Revision)
	}
	if string(next.Declarations[0].Config.(*capability.Skill).Body) != "Text.\n" || string(first.Declarations[0].Config.(*capability.Skill).Body) != "Body.\n" {
		t.Error("the edit is not seen, or it changed a result that was handed out")
	}
	delete(w.MapFS, "skills/a/SKILL.md")
	w.MapFS["skills/a"].ModTime = then.Add(time.Minute)
	if gone := w.scan(t, s, now); len(ids(gone)) != 1 {
		t.Errorf("after the removal: %v", ids(gone))
	}
}

// An edit within the clock's grain of another one, of the same size, is seen: a young file is read again.
func TestYoungFilesAreReadAgain(t *testing.T) {
	w := &watched{MapFS: dated(files("skills/a/SKILL.md", skillText))}
	s := NewScanner(Options{})
	at := then.Add(time.Second)
	first := w.scan(t, s, at)
	w.MapFS["skills/a/SKILL.md"].Data = []byte(strings.Replace(skillText, "Body", "Text", 1))
	next := w.scan(t, s, at)
	if next.Revision == first.Revision || string(next.Declarations[0].Config.(*capability.Skill).Body) != "Text.\n" {
		t.Error("an edit of one second ago is not seen")
	}
	w.scan(t, s, then.Add(2*time.Second)) // read once more, now old enough to be trusted
	if w.scan(t, s, then.Add(3*time.Second)); len(w.opened) > 0 {
		t.Errorf("an old file is read again: %v", w.opened)
	}
}

// While vak.toml or .mcp.json is broken the version before stays in force; when the file goes, so does it.
func TestBrokenSharedFilesKeepTheLastGoodVersion(t *testing.T) {
	const good, broken = "[mcp.servers.a]\ncommand = \"c\"\n[permissions]\ndeny = [\"bash\"]\n", "[mcp.servers.a\n"
	w := &watched{MapFS: files("vak.toml", good, ".mcp.json", `{"b": {"command": "c"}}`)}
	s := NewScanner(Options{})
	write := func(name, text string) {
		w.MapFS[name] = &fstest.MapFile{Data: []byte(text), ModTime: then.Add(time.Duration(len(text)) * time.Minute)}
	}
	w.scan(t, s, now)
	write("vak.toml", broken)
	write(".mcp.json", "{")
	r := w.scan(t, s, now)
	if diff := cmp.Diff([]string{"mcp:a", "mcp:b"}, ids(r)); diff != "" {
		t.Errorf("while broken: %s", diff)
	}
	if !slices.Equal(r.Config.Permissions.Deny, []string{"bash"}) {
		t.Errorf("while broken the permissions are %+v", r.Config.Permissions)
	}
	if diff := cmp.Diff([]string{"e mcp_syntax .mcp.json:1", "e config_syntax vak.toml:1"}, codes(r)); diff != "" {
		t.Errorf("problems: %s", diff)
	}
	write("vak.toml", strings.Replace(good, "servers.a", "servers.c", 1))
	delete(w.MapFS, ".mcp.json")
	if diff := cmp.Diff([]string{"mcp:c"}, ids(w.scan(t, s, now))); diff != "" {
		t.Errorf("repaired: %s", diff)
	}
}

// A vak.toml that was never readable may hold any restriction: every call is denied.
func TestUnreadableConfigFailsClosed(t *testing.T) {
	for name, w := range map[string]*watched{
		"no TOML":   {MapFS: files("vak.toml", "[permissions\n")},
		"denied":    {MapFS: files("vak.toml", "x = 1"), fail: map[string]error{"vak.toml": fs.ErrPermission}},
		"too large": {MapFS: files("vak.toml", strings.Repeat("# x\n", 1<<20))},
		"folder":    {MapFS: files("vak.toml/x", "")},
	} {
		r := w.scan(t, NewScanner(Options{}), now)
		engine, _ := policy.CompileEngine(policy.Host{}, r.Config.Permissions)
		if d := engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); d.Effect != policy.Deny || len(r.Problems) == 0 {
			t.Errorf("%s: a call is decided %v, problems %v", name, d.Effect, codes(r))
		}
	}
}

// So may every other file of rules: one that is there and was never read denies every call, whatever keeps it from being read.
func TestUnreadableRulesFailClosed(t *testing.T) {
	for _, file := range []string{".claude/settings.json", ".claude/settings.local.json", ".vak/config.toml"} {
		for name, w := range map[string]*watched{
			"denied":                           {MapFS: files(file, "{}"), fail: map[string]error{file: fs.ErrPermission}},
			"too large":                        {MapFS: files(file, strings.Repeat("    ", 1<<20))},
			"folder":                           {MapFS: files(file+"/x", "")},
			"a link that leaves the workspace": {MapFS: fstest.MapFS{file: {Data: []byte("/etc/rules"), Mode: fs.ModeSymlink | 0o777}}},
		} {
			s := NewScanner(Options{})
			r := w.scan(t, s, now)
			engine, _ := policy.CompileEngine(policy.Host{}, r.Permissions...)
			if d := engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); d.Effect != policy.Deny || len(r.Problems) == 0 {
				t.Errorf("%s, %s: a call is decided %v, problems %v", file, name, d.Effect, codes(r))
			}
			if again := w.scan(t, s, now.Add(time.Hour)); again.Revision != r.Revision {
				t.Errorf("%s, %s: a quiet pass is news", file, name)
			}
		}
	}
}

// V38: a skill whose body cannot be read is not declared, and is a problem; the others stay.
func TestUnreadableSkill(t *testing.T) {
	w := &watched{MapFS: files("skills/a/SKILL.md", skillText, "skills/b/SKILL.md", strings.Replace(skillText, "name: a", "name: b", 1))}
	s := NewScanner(Options{})
	w.scan(t, s, now)
	w.fail = map[string]error{"skills/b/SKILL.md": fs.ErrPermission}
	w.MapFS["skills/b/SKILL.md"].ModTime = then.Add(time.Minute)
	for range 2 {
		r := w.scan(t, s, now)
		if diff := cmp.Diff([]string{"skill:a"}, ids(r)); diff != "" {
			t.Errorf("declared: %s", diff)
		}
		if diff := cmp.Diff([]string{"e file_unreadable skills/b/SKILL.md:0"}, codes(r)); diff != "" {
			t.Errorf("problems: %s", diff)
		}
	}
	// A disk that fails for a moment retires nothing that was read before.
	w.fail = map[string]error{"skills/a/SKILL.md": syscall.EIO, "skills": syscall.EIO}
	w.MapFS["skills/a/SKILL.md"].ModTime = then.Add(time.Minute)
	w.MapFS["skills"] = &fstest.MapFile{Mode: fs.ModeDir, ModTime: then.Add(time.Minute)}
	r := w.scan(t, s, now)
	if diff := cmp.Diff([]string{"skill:a", "skill:b"}, ids(r)); diff != "" {
		t.Errorf("after an I/O error: %s", diff)
	}
	if diff := cmp.Diff([]string{"e file_unreadable skills:0", "e file_unreadable skills/a/SKILL.md:0"}, codes(r)); diff != "" {
		t.Errorf("problems: %s", diff)
	}
	w.fail = nil
	if r := w.scan(t, s, now); len(r.Problems) > 0 || len(r.Declarations) != 2 {
		t.Errorf("after the repair: %v, %v", ids(r), codes(r))
	}
}

// A workspace that is gone is an error, not a workspace without capabilities.
func TestWorkspaceGone(t *testing.T) {
	w := &watched{MapFS: files("skills/a/SKILL.md", skillText)}
	s := NewScanner(Options{})
	first := w.scan(t, s, now)
	w.fail = map[string]error{".": fs.ErrNotExist}
	r, err := s.Scan(w, now)
	if vakerr.CodeOf(err) != vakerr.WorkspaceUnreadable || r.Revision != first.Revision || len(r.Declarations) != 1 {
		t.Errorf("error %v, revision %d, declared %v", err, r.Revision, ids(r))
	}
}

// onDisk makes a workspace in a temporary folder: a name that ends with -> is a link to the text.
func onDisk(t testing.TB, pairs ...string) *os.Root {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ws")
	for i := 0; i < len(pairs); i += 2 {
		name, link := strings.CutSuffix(pairs[i], "->")
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if link {
			err = os.Symlink(pairs[i+1], at)
		} else {
			err = os.WriteFile(at, []byte(pairs[i+1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// Links are followed once, never out of the workspace, and a bad one costs itself; on the file system of a caller that
// ends at the workspace.
func TestLinks(t *testing.T) {
	named := func(name string) string { return strings.Replace(skillText, "name: a", "name: "+name, 1) }
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "SKILL.md"), []byte(named("outside")), 0o644); err != nil {
		t.Fatal(err)
	}
	root := onDisk(t,
		"skills/plain/SKILL.md", named("plain"),
		"skills/alias->", "plain",
		"shared/far/SKILL.md", named("far"),
		"skills/far->", "../shared/hop",
		"shared/hop->", "far", // a chain of two
		"skills/again->", "../shared/far",
		"skills/file/SKILL.md->", "../../shared/text.md",
		"shared/text.md", named("file"),
		"skills/readme->", "../shared/text.md", // a link to a file is no skill
		"skills/dangling->", "../nowhere",
		"skills/circle->", "circle",
		"skills/up->", "../../outside",
		"skills/abs->", outside,
		"skills/leak/SKILL.md->", "../../../outside/SKILL.md",
		"skills/lost/SKILL.md->", "nothing.md",
		".claude/skills->", "../.agents/skills",
		".agents/skills/b/SKILL.md", named("b"),
		"commands/x.md", "x", "commands/deep/y.md", "y",
		"commands/deep/round->", "..",
		"commands/bad.md->", "../../outside/SKILL.md",
	)
	s := NewScanner(Options{})
	r, err := s.Scan(root.FS(), now)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r)
	if diff := cmp.Diff([]string{"skill:b", "skill:far", "skill:file", "skill:plain", "command:deep:y", "command:x"}, ids(r)); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"e link_outside commands/bad.md:0", "e link_outside skills/abs:0", "w skill_name_mismatch skills/again/SKILL.md:2", "e link_cycle skills/circle:0", "e link_dangling skills/dangling:0",
		"e link_outside skills/leak/SKILL.md:0", "e link_dangling skills/lost/SKILL.md:0", "e link_outside skills/up:0",
	}, codes(r)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	var aliases []string
	for _, a := range r.Shadowed {
		aliases = append(aliases, a.Source+" = "+a.By)
	}
	if diff := cmp.Diff([]string{"skills/far/SKILL.md = skills/again/SKILL.md", "skills/alias/SKILL.md = skills/plain/SKILL.md"}, aliases); diff != "" {
		t.Errorf("one folder found twice (-want +got):\n%s", diff)
	}
	if !slices.Contains(r.Watch, "skills/again") || slices.Contains(r.Watch, "skills/dangling") {
		t.Errorf("watch %v", r.Watch)
	}
	if again, err := s.Scan(root.FS(), now); err != nil || again.Revision != r.Revision {
		t.Errorf("bad links are news in every pass: revision %d after %d, %v", again.Revision, r.Revision, err)
	}
}

// A folder is one skill by however many links it is reached, even where it has no name of its own.
func TestOneFolderIsOneSkill(t *testing.T) {
	const nameless = "---\ndescription: d\n---\n"
	root := onDisk(t,
		"shared/x/SKILL.md", nameless, "skills/l1->", "../shared/x", "skills/l2->", "../shared/x",
		".agents/skills/y/SKILL.md", nameless, "skills/l3->", "../.agents/skills/y",
		"skills/z/SKILL.md", nameless, ".claude/skills/l4->", "../../skills/z",
	)
	r, err := NewScanner(Options{}).Scan(root.FS(), now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"skill:l1", "skill:l3", "skill:z"}, ids(check(t, r))); diff != "" || len(r.Shadowed) != 3 {
		t.Errorf("declared %s, shadowed %v", diff, r.Shadowed)
	}
}

// A pipe in the place of a file is refused before it is opened: opening it would wait for ever.
func TestPipeIsNotOpened(t *testing.T) {
	root := onDisk(t, "skills/a/SKILL.md", skillText, "skills/p/x", "")
	if err := syscall.Mkfifo(filepath.Join(root.Name(), "skills/p/SKILL.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := NewScanner(Options{}).Scan(root.FS(), now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"e file_not_regular skills/p/SKILL.md:0"}, codes(r)); diff != "" || len(r.Declarations) != 1 {
		t.Errorf("problems %s, declared %v", diff, ids(r))
	}
}

// A file replaced by another of the same size and time is another file.
func TestReplacedFile(t *testing.T) {
	root := onDisk(t, "skills/a/SKILL.md", skillText, "new.md", strings.Replace(skillText, "Body", "Text", 1))
	at := func(name string) string { return filepath.Join(root.Name(), name) }
	for _, name := range []string{"skills/a/SKILL.md", "new.md"} {
		if err := os.Chtimes(at(name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	s := NewScanner(Options{})
	if _, err := s.Scan(root.FS(), now); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(at("new.md"), at("skills/a/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	r, err := s.Scan(root.FS(), now)
	if err != nil || string(r.Declarations[0].Config.(*capability.Skill).Body) != "Text.\n" {
		t.Errorf("the new file is not seen: %v", err)
	}
}

// A root that appears later, with everything in it, is found by the next pass.
func TestNewRoot(t *testing.T) {
	w := &watched{MapFS: files("vak.toml", "")}
	s := NewScanner(Options{})
	first := w.scan(t, s, now)
	w.MapFS[".claude/skills/a/SKILL.md"] = &fstest.MapFile{Data: []byte(skillText), ModTime: then}
	r := w.scan(t, s, now)
	if diff := cmp.Diff([]string{"skill:a"}, ids(r)); diff != "" || r.Revision == first.Revision {
		t.Error(diff)
	}
	// A folder without a document yet is worth watching already.
	w.MapFS[".claude/skills/b"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: then.Add(time.Minute)}
	w.MapFS[".claude/skills"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: then.Add(time.Minute)}
	if r = w.scan(t, s, now); !slices.Contains(r.Watch, ".claude/skills/b") {
		t.Errorf("watch %v", r.Watch)
	}
}
