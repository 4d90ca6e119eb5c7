package artifact_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/artifact"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func kept(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, ".vak/artifacts/*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func textOf(t *testing.T, r op.Result) string {
	t.Helper()
	var content struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(r.Content, &content); err != nil || len(content.Content) != 1 || content.IsError != r.IsError {
		t.Fatalf("%s: %v", r.Content, err)
	}
	return content.Content[0].Text
}

// V64: an oversized result goes to a file, and the reply has a preview.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	s := artifact.New(artifact.Config{Workspace: dir})
	small := op.Text("short")
	if r, err := s.Spill(small, 1000, start); err != nil || string(r.Content) != string(small.Content) || len(kept(t, dir)) != 0 {
		t.Fatalf("a small result was changed: %s, %v", r.Content, err)
	}
	long := strings.Repeat("line of text\n", 10_000)
	big := op.Text(long)
	big.Promote = []string{"x"}
	r, err := s.Spill(big, 1000, start)
	if err != nil {
		t.Fatal(err)
	}
	files := kept(t, dir)
	if len(files) != 1 || filepath.Ext(files[0]) != ".txt" {
		t.Fatalf("files %v", files)
	}
	rel, err := filepath.Rel(dir, files[0])
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, r)
	if !strings.Contains(text, rel) || !strings.Contains(text, "130000 bytes") || !strings.Contains(text, "line of text\nline") || len(text) > 3000 {
		t.Errorf("reply %.200s", text)
	}
	if r.Promote[0] != "x" {
		t.Error("what the result promotes is lost")
	}
	if raw, err := os.ReadFile(files[0]); err != nil || string(raw) != long {
		t.Errorf("the file holds %d bytes, %v", len(raw), err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// Equal content has one file.
	if _, err := s.Spill(big, 1000, start.Add(time.Hour)); err != nil || len(kept(t, dir)) != 1 {
		t.Errorf("%v, %v", kept(t, dir), err)
	}
}

func TestSpillKeepsWhatIsNoTextAsJSON(t *testing.T) {
	dir := t.TempDir()
	content := `{"content":[{"type":"image","data":"` + strings.Repeat("A", 5000) + `"}],"isError":true}`
	r, err := artifact.New(artifact.Config{Workspace: dir}).Spill(op.Result{IsError: true, Content: json.RawMessage(content)}, 100, start)
	if err != nil {
		t.Fatal(err)
	}
	textOf(t, r)
	files := kept(t, dir)
	if len(files) != 1 || filepath.Ext(files[0]) != ".json" {
		t.Fatalf("files %v", files)
	}
	var back any
	raw, _ := os.ReadFile(files[0])
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Error(err)
	}
}

func TestArtifactsAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := artifact.New(artifact.Config{Workspace: dir, MaxFiles: 5, MaxBytes: 20_000})
	foreign := filepath.Join(dir, ".vak/artifacts/notes.md")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		r, err := s.Spill(op.Text(fmt.Sprint(i, strings.Repeat("x", 1000))), 100, start.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(kept(t, dir)) - 1; n > 5 {
			t.Fatalf("%d files are kept", n)
		}
		name := strings.Fields(strings.SplitAfter(textOf(t, r), "the file ")[1])[0]
		if _, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(name, ","))); err != nil {
			t.Fatalf("the file just named is gone: %v", err)
		}
	}
	if _, err := s.Spill(op.Text(strings.Repeat("y", 19_000)), 100, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := len(kept(t, dir)) - 1; n != 1 {
		t.Errorf("%d files beside one that takes all the room", n)
	}
	if _, err := s.Spill(op.Text(strings.Repeat("z", 30_000)), 100, start); vakerr.CodeOf(err) != vakerr.TooLarge {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of someone else was removed: %v", err)
	}
}

func TestArtifactsStayInTheWorkspace(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, ".vak")); err != nil {
		t.Fatal(err)
	}
	_, err := artifact.New(artifact.Config{Workspace: dir}).Spill(op.Text(strings.Repeat("x", 1000)), 100, start)
	if vakerr.CodeOf(err) != vakerr.PathEscapes {
		t.Errorf("got %v", err)
	}
}

// The oldest by the clock passed in goes first, but never the file that was just named, even if the clock was set back.
func TestTheOldestGoesFirst(t *testing.T) {
	dir := t.TempDir()
	s := artifact.New(artifact.Config{Workspace: dir, MaxFiles: 2})
	spill := func(text string, second int) {
		t.Helper()
		if _, err := s.Spill(op.Text(strings.Repeat(text, 200)), 100, start.Add(time.Duration(second)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	first := func() (all string) {
		t.Helper()
		for _, file := range kept(t, dir) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all += string(raw[:1])
		}
		return all
	}
	spill("a", 10)
	spill("b", 5)
	spill("c", 20)
	if got := first(); len(got) != 2 || strings.Contains(got, "b") {
		t.Errorf("kept %q", got)
	}
	spill("d", 1)
	if got := first(); len(got) != 2 || !strings.Contains(got, "d") || !strings.Contains(got, "c") {
		t.Errorf("kept %q", got)
	}
}
