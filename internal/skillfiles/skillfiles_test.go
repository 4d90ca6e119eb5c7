package skillfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// shelf is a workspace with skills in it.
type shelf struct {
	*testing.T
	Store
	skills []*capability.Capability
}

func newShelf(t *testing.T) *shelf { return &shelf{T: t, Store: Store{Workspace: t.TempDir()}} }

func (s *shelf) write(name, text string) {
	s.Helper()
	at := filepath.Join(s.Workspace, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// add declares the skill of a folder as it is on disk now.
func (s *shelf) add(id, folder, text string) {
	s.Helper()
	s.write(folder+"/SKILL.md", text)
	_, body, err := declare.SkillFile([]byte(text))
	if err != nil {
		s.Fatal(err)
	}
	s.skills = append(s.skills, &capability.Capability{Declaration: capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: id}, Digest: capability.ContentDigest(body),
		Config: &capability.Skill{BaseDir: folder},
	}})
}

func skill(name string) string {
	return "---\nname: " + name + "\ndescription: About " + name + ".\nmetadata:\n  a: [1, x]\n---\nDo it.\n"
}

func TestEntriesFilesAndFolders(t *testing.T) {
	s := newShelf(t)
	s.add("pdf", "skills/pdf", skill("pdf"))
	s.write("skills/pdf/scripts/fill.py", "print(1)\n")
	s.write("skills/pdf/logo.bin", "\xff\x00\x01")
	s.add("tools:pdf", "plugins/tools/pdf", skill("pdf"))
	s.add("Odd Name", "skills/odd", skill("Odd Name")) // which the extension does not allow
	s.add("other", "skills/other", skill("another"))   // whose file names another skill
	entries, err := s.List(t.Context(), s.skills)
	if err != nil || len(entries) != 2 || entries[0].URI != "skill://pdf/SKILL.md" || entries[1].URI != "skill://tools/pdf/SKILL.md" {
		t.Fatalf("%+v, %v", entries, err)
	}
	e, err := s.Entry(t.Context(), s.skills, "skill://pdf/SKILL.md")
	if err != nil || len(e.Resources) != 3 || e.Frontmatter["description"] != "About pdf." {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, f := range e.Resources {
		c, err := s.Read(t.Context(), s.skills, f.URI)
		if err != nil {
			t.Fatal(err)
		}
		raw := []byte(c.Text)
		if c.Blob != nil {
			raw = c.Blob
		}
		sum := sha256.Sum256(raw)
		if f.Digest != "sha256:"+hex.EncodeToString(sum[:]) || f.Size != int64(len(raw)) {
			t.Errorf("%s: digest and size of other bytes than are read", f.URI)
		}
	}
	if c, _ := s.Read(t.Context(), s.skills, "skill://pdf/SKILL.md"); c.MIME != "text/markdown" || c.Text != skill("pdf") {
		t.Errorf("SKILL.md is %+v", c)
	}
	children, err := s.Folder(t.Context(), s.skills, "skill://pdf")
	if err != nil || len(children) != 3 || children[2].Name != "scripts" || children[2].MIME != "inode/directory" {
		t.Errorf("%+v, %v", children, err)
	}
	if r := e.Resource(); r.Name != "pdf" || r.Description != "About pdf." || r.MIME != "text/markdown" {
		t.Errorf("%+v", r)
	}
}

// Nothing but files of the folder is shown, and nothing of a skill that is another on disk than the one in force.
func TestWhatIsNotShown(t *testing.T) {
	s := newShelf(t)
	s.add("pdf", "skills/pdf", skill("pdf"))
	s.write("secret.txt", "secret")
	if err := os.Symlink("../../secret.txt", filepath.Join(s.Workspace, "skills/pdf/link.txt")); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{
		"skill://pdf/../../secret.txt", "skill://pdf/%2e%2e/secret.txt", "skill://pdf/link.txt", "skill://pdf//SKILL.md",
		"skill:///etc/passwd", "skill://none/SKILL.md", "file:///etc/passwd", "skill://", "skill://pdf", "", "skill://pdf/SKILL.md/",
	} {
		if c, err := s.Read(t.Context(), s.skills, uri); vakerr.CodeOf(err) != vakerr.InvalidArguments {
			t.Errorf("%q: %+v, %v", uri, c, err)
		}
	}
	if _, err := s.Folder(t.Context(), s.skills, "skill://pdf/SKILL.md"); vakerr.CodeOf(err) != vakerr.InvalidArguments {
		t.Errorf("a file as a folder: %v", err)
	}
	e, err := s.Entry(t.Context(), s.skills, "skill://pdf/SKILL.md")
	if err != nil || len(e.Resources) != 1 {
		t.Errorf("the link is among the files: %+v, %v", e.Resources, err)
	}
	s.write("skills/pdf/SKILL.md", strings.Replace(skill("pdf"), "Do it.", "Do something else.", 1))
	if _, err := s.Read(t.Context(), s.skills, "skill://pdf/SKILL.md"); vakerr.CodeOf(err) != vakerr.CapabilityUnavailable {
		t.Errorf("an edit that is not published: %v", err)
	}
	if all, err := s.List(t.Context(), s.skills); err != nil || len(all) != 0 {
		t.Errorf("an edit that is not published: %v, %v", all, err)
	}
}

// A skill with too many or too large files is not shown, and costs no other one.
func TestBounds(t *testing.T) {
	s := newShelf(t)
	s.add("many", "skills/many", skill("many"))
	for i := range maxFiles {
		s.write("skills/many/"+strings.Repeat("x", i%50+1)+"/"+strings.Repeat("y", i/50+1), "")
	}
	s.add("large", "skills/large", skill("large"))
	s.write("skills/large/data", strings.Repeat("d", maxBytes))
	s.add("fine", "skills/fine", skill("fine"))
	if all, err := s.List(t.Context(), s.skills); err != nil || len(all) != 1 || all[0].URI != "skill://fine/SKILL.md" {
		t.Errorf("%v, %v", all, err)
	}
}

func FuzzFind(f *testing.F) {
	for _, uri := range []string{"skill://pdf/SKILL.md", "skill://pdf/../x", "skill://a/b/c", "skill:////", "x"} {
		f.Add(uri)
	}
	skills := []*capability.Capability{
		{Declaration: capability.Declaration{ID: capability.ID{Kind: capability.KindSkill, Name: "pdf"}}},
		{Declaration: capability.Declaration{ID: capability.ID{Kind: capability.KindSkill, Name: "a:b"}}},
	}
	f.Fuzz(func(t *testing.T, uri string) {
		c, rel, err := find(skills, uri)
		if err != nil {
			return
		}
		if c == nil || strings.HasPrefix(rel, "/") || strings.HasPrefix(rel, "..") || strings.Contains(rel, "/../") {
			t.Errorf("%q leads to %q", uri, rel)
		}
	})
}

// A digest that is kept is that of the file as it is: an edit is seen, also one of the same size.
func TestDigestsFollowEdits(t *testing.T) {
	s := newShelf(t)
	s.add("pdf", "skills/pdf", skill("pdf"))
	name := filepath.Join(s.Workspace, "skills/pdf/a.txt")
	digestNow := func(text string, age time.Duration) string {
		t.Helper()
		s.write("skills/pdf/a.txt", text)
		at := time.Now().Add(-age)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second answer is the kept one
			e, err := s.Entry(t.Context(), s.skills, "skill://pdf/SKILL.md")
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(text))
			if got := e.Resources[1]; got.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Errorf("%q has the digest %s", text, got.Digest)
			}
		}
		return text
	}
	digestNow("one", time.Hour)
	digestNow("two", time.Minute)
	digestNow("six", 0)
	digestNow("ten", 0)
}
