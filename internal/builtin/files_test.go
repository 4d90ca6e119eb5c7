package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestRead(t *testing.T) {
	w := newWorld(t)
	w.put("a.txt", "one\ntwo\nthree\nfour")
	w.put("empty", "")
	w.put("bin", "ELF\x00\x01")
	w.put("latin", "caf\xe9 au lait, long enough to be seen")
	w.put("cut.txt", strings.Repeat("x", binaryProbe-1)+"ä and more")
	for _, tt := range []struct{ args, want string }{
		{`{"path":"a.txt"}`, "one\ntwo\nthree\nfour"},
		{`{"path":"./a.txt","offset":2,"limit":2}`, "two\nthree\n[lines 2 to 3; go on with offset 4]"},
		{`{"path":"a.txt","offset":4}`, "four"},
		{`{"path":"` + w.dir + `/a.txt","limit":1}`, "one\n[lines 1 to 1; go on with offset 2]"},
		{`{"path":"empty"}`, "[the file is empty]"},
	} {
		if got := w.text("read", tt.args); got != tt.want {
			t.Errorf("%s: %q", tt.args, got)
		}
	}
	if got := w.text("read", `{"path":"cut.txt"}`); !strings.HasSuffix(got, "ä and more") {
		t.Error("a character at the edge of the probe makes a text binary")
	}
	w.refused("read", `{"path":"bin"}`, vakerr.InvalidArguments)
	w.refused("read", `{"path":"latin"}`, vakerr.InvalidArguments)
	w.refused("read", `{"path":"a.txt","offset":9}`, vakerr.InvalidArguments)
	w.refused("read", `{"path":"none"}`, vakerr.FileNotFound)
	w.refused("read", `{"path":"."}`, vakerr.InvalidArguments)
	w.refused("read", `{"path":"../x"}`, vakerr.PathEscapes)
	w.refused("read", `{"path":"/etc/passwd"}`, vakerr.PathEscapes)
}

func TestReadIsBounded(t *testing.T) {
	w := newWorld(t)
	w.put("line", strings.Repeat("ä", MaxText))
	got := w.text("read", `{"path":"line"}`)
	if len(got) > MaxText+200 || !strings.Contains(got, "[line 1 is cut here") {
		t.Errorf("%d bytes: %s", len(got), got[max(0, len(got)-100):])
	}
	w.put("lines", strings.Repeat(strings.Repeat("y", 99)+"\n", 10_000))
	got = w.text("read", `{"path":"lines","limit":20000}`)
	if len(got) > MaxText+200 || !strings.Contains(got, "is cut here") {
		t.Errorf("%d bytes", len(got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.call(ctx, "read", `{"path":"lines"}`); vakerr.CodeOf(err) != vakerr.Canceled {
		t.Errorf("got %v", err)
	}
}

// What a link leads to is judged, not only its name.
func TestLinksAreJudgedByTheirTarget(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{"vak.toml": "a = 1", "plain.txt": "x"} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("vak.toml", filepath.Join(w.dir, "innocent")); err != nil {
		t.Fatal(err)
	}
	w.text("write", `{"path":"plain.txt","content":"y"}`)
	if len(w.judged) > 0 {
		t.Errorf("a path without links was judged again: %q", w.judged)
	}
	w.forbidden = vakerr.New(vakerr.ApprovalRequired, "it governs")
	w.refused("write", `{"path":"innocent","content":"b"}`, vakerr.ApprovalRequired)
	w.refused("edit", `{"path":"innocent","old_string":"a","new_string":"b"}`, vakerr.ApprovalRequired)
	if diff := cmp.Diff([]string{"vak.toml", "vak.toml"}, w.judged); diff != "" {
		t.Errorf("judged (-want +got):\n%s", diff)
	}
	if raw, _ := os.ReadFile(filepath.Join(w.dir, "vak.toml")); string(raw) != "a = 1" {
		t.Errorf("it was written: %s", raw)
	}
}

// Nothing that a file tool does leaves the workspace through a link.
func TestLinksDoNotLeadOut(t *testing.T) {
	w := newWorld(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": outside, "file.txt": secret} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{`{"path":"out/secret.txt"}`, `{"path":"file.txt"}`} {
		w.refused("read", args, vakerr.PathEscapes)
	}
	w.refused("write", `{"path":"out/new","content":"x"}`, vakerr.PathEscapes)
	w.refused("write", `{"path":"file.txt","content":"x"}`, vakerr.PathEscapes)
	w.refused("edit", `{"path":"file.txt","old_string":"hunter2","new_string":"x"}`, vakerr.PathEscapes)
	w.refused("grep", `{"pattern":"hunter","path":"out"}`, vakerr.PathEscapes)
	w.refused("glob", `{"pattern":"out/*"}`, vakerr.PathEscapes)
	if got := w.text("grep", `{"pattern":"hunter"}`); got != "[no line matches]" {
		t.Errorf("grep: %s", got)
	}
	if raw, _ := os.ReadFile(secret); string(raw) != "hunter2" {
		t.Errorf("the file outside is %q", raw)
	}
}

func TestGlob(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{"b.go", "a.go", "a/x.go", "a/deep/y.go", "a/z.txt", ".git/c.go", "node_modules/m/d.go"} {
		w.put(f, "")
	}
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"**/*.go"}`, "a.go\na/deep/y.go\na/x.go\nb.go"},
		{`{"pattern":"*.go"}`, "a.go\nb.go"},
		{`{"pattern":"*.go","path":"a"}`, "a/x.go"},
		{`{"pattern":"a/{x,z}*"}`, "a/x.go\na/z.txt"},
		{`{"pattern":"a/z.txt"}`, "a/z.txt"},
		{`{"pattern":"node_modules/**/*.go"}`, "node_modules/m/d.go"},
		{`{"pattern":"` + w.dir + `/a/*.txt"}`, "a/z.txt"},
		{`{"pattern":"none/*"}`, "[no file matches]"},
		{`{"pattern":"*.rs"}`, "[no file matches]"},
	} {
		if got := w.text("glob", tt.args); got != tt.want {
			t.Errorf("%s: %q", tt.args, got)
		}
	}
	w.refused("glob", `{"pattern":"[a"}`, vakerr.InvalidArguments)
	w.refused("glob", `{"pattern":"../*"}`, vakerr.PathEscapes)
	for i := range globMost + 5 {
		w.put(fmt.Sprintf("many/%04d", i), "")
	}
	got := w.text("glob", `{"pattern":"many/*"}`)
	if lines := strings.Split(got, "\n"); len(lines) != globMost+1 || lines[0] != "many/0000" || lines[globMost] != "[5 more match; narrow the pattern]" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// What a rule keeps from being read is not found by a search, and a link is judged by what it leads to.
func TestGrepSeesWhatItMay(t *testing.T) {
	w := newWorld(t)
	w.put("open.txt", "alpha\n")
	w.put("secret/key.txt", "alpha\n")
	if err := os.Symlink("secret/key.txt", filepath.Join(w.dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	table, err := op.NewTable(Ops(Config{Workspace: w.dir})...)
	if err != nil {
		t.Fatal(err)
	}
	grep, _ := table.Lookup("grep")
	open := func(p string) bool { return !strings.HasPrefix(p, "secret/") }
	call := op.Call{Commit: func() error { return nil }, MaySee: open, PermitPath: func(p string) error {
		if !open(p) {
			return vakerr.New(vakerr.PermissionDenied, "%s is denied", p)
		}
		return nil
	}}
	call.Arguments = json.RawMessage(`{"pattern":"alpha"}`)
	result, err := grep.Run(t.Context(), call)
	if err != nil || strings.Contains(string(result.Content), "secret") || !strings.Contains(string(result.Content), "open.txt") {
		t.Errorf("%s, %v", result.Content, err)
	}
	if err := os.Symlink("secret", filepath.Join(w.dir, "public")); err != nil {
		t.Fatal(err)
	}
	call.Arguments = json.RawMessage(`{"pattern":"alpha","path":"public"}`)
	if result, err := grep.Run(t.Context(), call); err != nil || strings.Contains(string(result.Content), "key.txt") {
		t.Errorf("a folder behind a link: %s, %v", result.Content, err)
	}
	for _, name := range []string{"link.txt", "secret/key.txt"} {
		call.Arguments = json.RawMessage(`{"pattern":"alpha","path":"` + name + `"}`)
		if result, err := grep.Run(t.Context(), call); vakerr.CodeOf(err) != vakerr.PermissionDenied {
			t.Errorf("%s: %s, %v", name, result.Content, err)
		}
	}
}

func TestGrep(t *testing.T) {
	w := newWorld(t)
	w.put("a.go", "package a\n\nfunc Alpha() {}\n")
	w.put("sub/b.go", "func beta() {}\nvar alphabet = 1\n")
	w.put("sub/c.txt", "alpha\n")
	w.put("bin", "alpha\x00")
	w.put(".git/x", "alpha")
	w.put("long.txt", strings.Repeat("z", 1000)+"gamma\n")
	for _, tt := range []struct{ args, want string }{
		{`{"pattern":"alpha"}`, "sub/b.go:2:var alphabet = 1\nsub/c.txt:1:alpha"},
		{`{"pattern":"ALPHA","ignore_case":true,"glob":"*.go"}`, "a.go:3:func Alpha() {}\nsub/b.go:2:var alphabet = 1"},
		{`{"pattern":"^func (\\w+)","path":"sub"}`, "sub/b.go:1:func beta() {}"},
		{`{"pattern":"alpha","path":"sub/c.txt"}`, "sub/c.txt:1:alpha"},
		{`{"pattern":"alpha","limit":1}`, "sub/b.go:2:var alphabet = 1\n[more lines match than the 1 asked for]"},
		{`{"pattern":"alpha","path":"sub/c.txt","limit":1}`, "sub/c.txt:1:alpha"},
		{`{"pattern":"gamma"}`, "long.txt:1:" + strings.Repeat("z", grepLine) + "…"},
		{`{"pattern":"nothing"}`, "[no line matches]"},
	} {
		if got := w.text("grep", tt.args); got != tt.want {
			t.Errorf("%s: %q", tt.args, got)
		}
	}
	w.refused("grep", `{"pattern":"(?=x)"}`, vakerr.InvalidArguments)
	w.refused("grep", `{"pattern":"x","path":"none"}`, vakerr.FileNotFound)
	w.put("huge", strings.Repeat("alpha\n", grepFile/6+1))
	if got := w.text("grep", `{"pattern":"alpha","glob":"huge"}`); !strings.Contains(got, "1 files of more than 4 MiB") {
		t.Errorf("got %q", got)
	}
}

func TestWriteAndEdit(t *testing.T) {
	w := newWorld(t)
	if got := w.text("write", `{"path":"new/deep/a.txt","content":"one two two"}`); got != "made new/deep/a.txt, 11 bytes" {
		t.Errorf("got %q", got)
	}
	if got := w.text("edit", `{"path":"new/deep/a.txt","old_string":"one","new_string":"1"}`); got != "replaced 1 occurrence in new/deep/a.txt" {
		t.Errorf("got %q", got)
	}
	e := w.refused("edit", `{"path":"new/deep/a.txt","old_string":"two","new_string":"2"}`, vakerr.InvalidArguments)
	if !strings.Contains(e.Reason, "2 times") {
		t.Errorf("got %s", e.Reason)
	}
	w.text("edit", `{"path":"new/deep/a.txt","old_string":"two","new_string":"$2","replace_all":true}`)
	if got := w.get("new/deep/a.txt"); got != "1 $2 $2" {
		t.Errorf("got %q", got)
	}
	w.text("write", `{"path":"new/deep/a.txt","content":"again"}`)
	if got := w.get("new/deep/a.txt"); got != "again" {
		t.Errorf("got %q", got)
	}
	w.refused("edit", `{"path":"new/deep/a.txt","old_string":"absent","new_string":"x"}`, vakerr.InvalidArguments)
	w.refused("edit", `{"path":"new/deep/a.txt","old_string":"again","new_string":"again"}`, vakerr.InvalidArguments)
	w.refused("edit", `{"path":"none","old_string":"a","new_string":"b"}`, vakerr.FileNotFound)
	w.put("bin", "a\x00b")
	w.refused("edit", `{"path":"bin","old_string":"a","new_string":"b"}`, vakerr.InvalidArguments)
	w.put("dots", strings.Repeat(".", 1<<20))
	w.refused("edit", `{"path":"dots","old_string":".","new_string":"0123456789","replace_all":true}`, vakerr.TooLarge)
	w.refused("write", `{"path":"new","content":"x"}`, vakerr.InvalidArguments)
}

// Two edits of one file in flight do not undo each other.
func TestEditsDoNotOverlap(t *testing.T) {
	w := newWorld(t)
	var before, want strings.Builder
	for i := range 20 {
		fmt.Fprintf(&before, "<%02d>", i)
		fmt.Fprintf(&want, "[%02d]", i)
	}
	w.put("a", before.String())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"path":"a","old_string":"<%02d>","new_string":"[%02d]"}`, i, i)
			if _, err := w.call(t.Context(), "edit", args); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := w.get("a"); got != want.String() {
		t.Errorf("got %s", got)
	}
}

// V127: the target is known from the arguments alone; and where a link leads elsewhere, the tool itself refuses.
func TestWritePaths(t *testing.T) {
	w := newWorld(t)
	o, _ := w.table.Lookup("edit")
	for args, want := range map[string]string{
		`{"path":"out/../a.txt"}`: "a.txt", `{"path":"` + w.dir + `/out/b"}`: "out/b",
	} {
		if got, err := o.WriteTarget(json.RawMessage(args)); err != nil || got != want {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}
	if _, err := o.WriteTarget(json.RawMessage(`{"path":"../x"}`)); vakerr.CodeOf(err) != vakerr.PathEscapes {
		t.Errorf("got %v", err)
	}
	if _, err := o.WriteTarget(json.RawMessage(`{"path":7}`)); vakerr.CodeOf(err) != vakerr.InvalidArguments {
		t.Errorf("got %v", err)
	}
	w.put("secret/a.txt", "keep")
	w.put("out/x", "")
	if err := os.Symlink("../secret", filepath.Join(w.dir, "out/link")); err != nil {
		t.Fatal(err)
	}
	w.writes = []string{"out"}
	w.text("write", `{"path":"out/ok.txt","content":"x"}`)
	w.refused("write", `{"path":"out/link/a.txt","content":"x"}`, vakerr.PermissionDenied)
	w.refused("edit", `{"path":"out/link/a.txt","old_string":"keep","new_string":"x"}`, vakerr.PermissionDenied)
	w.refused("write", `{"path":"other.txt","content":"x"}`, vakerr.PermissionDenied)
	if got := w.get("secret/a.txt"); got != "keep" {
		t.Errorf("the protected file is %q", got)
	}
	w.writes = []string{}
	w.refused("write", `{"path":"out/ok.txt","content":"x"}`, vakerr.PermissionDenied)
}

// A call that waited for others is stopped by what was revoked meanwhile, and has no effect.
func TestTheGateIsAskedRightBeforeAWrite(t *testing.T) {
	w := newWorld(t)
	w.put("a", "old")
	w.gate = vakerr.New(vakerr.CapabilityRevoked, "revoked")
	w.refused("write", `{"path":"a","content":"new"}`, vakerr.CapabilityRevoked)
	w.refused("edit", `{"path":"a","old_string":"old","new_string":"new"}`, vakerr.CapabilityRevoked)
	if got := w.get("a"); got != "old" {
		t.Errorf("the file is %q", got)
	}
}

func TestTheWorkspaceMayBeMadeAnew(t *testing.T) {
	w := newWorld(t)
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	w.refused("read", `{"path":"a"}`, vakerr.WorkspaceUnreadable)
	w.put("a", "back")
	if got := w.text("read", `{"path":"a"}`); got != "back" {
		t.Errorf("got %q", got)
	}
}

// The arguments of a call come from a model: whatever they are, a file tool answers or refuses with a typed error, and
// changes nothing outside the workspace.
func FuzzFileTools(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a.txt"}`, `{"path":"link/../../x","content":"VAK"}`, `{"pattern":"**/[a"}`, `{"pattern":"(a","path":"/"}`,
		`{"path":"a.txt","old_string":"a","new_string":"b","replace_all":true}`, `[]`, `{"path":"\u0000"}`,
	} {
		f.Add("write", seed)
		f.Add("grep", seed)
	}
	top := f.TempDir()
	dir, outside := filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, d := range []string{dir, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		f.Fatal(err)
	}
	table, err := op.NewTable(Ops(Config{Workspace: dir})...)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name, args string) {
		o, ok := table.Lookup(name)
		if !ok || name == "skill" || name == "find_tools" {
			return
		}
		_, err := o.Run(t.Context(), op.Call{
			Arguments: json.RawMessage(args), Commit: func() error { return nil }, PermitPath: func(string) error { return nil },
		})
		if code := vakerr.CodeOf(err); code == vakerr.Internal {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Fatalf("%s %s wrote outside: %v, %v", name, args, entries, err)
		}
		if entries, err := os.ReadDir(top); err != nil || len(entries) != 2 {
			t.Fatalf("%s %s wrote beside the workspace: %v, %v", name, args, entries, err)
		}
	})
}
