package declare

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// manySkills is a workspace on disk with n skills of about 2 KB, written an hour ago.
func manySkills(b *testing.B, n int) *os.Root {
	b.Helper()
	body := make([]byte, 2000)
	for i := range body {
		body[i] = "abcdefg \n"[i%9]
	}
	pairs := make([]string, 0, 2*n)
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("skills/skill-%d/SKILL.md", i), fmt.Sprintf("---\nname: skill-%d\ndescription: Does %d.\n---\n%s", i, i, body))
	}
	root := onDisk(b, pairs...)
	for i := 0; i < len(pairs); i += 2 {
		if err := os.Chtimes(filepath.Join(root.Name(), pairs[i]), then, then); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(root.Name(), "skills"), then, then); err != nil {
		b.Fatal(err)
	}
	return root
}

const benchSkills = 2000

func BenchmarkScanCold(b *testing.B) {
	fsys := manySkills(b, benchSkills).FS()
	b.ReportAllocs()
	for b.Loop() {
		if r, err := NewScanner(Options{}).Scan(fsys, now); err != nil || len(r.Declarations) != benchSkills {
			b.Fatal(len(r.Declarations), err)
		}
	}
}

func BenchmarkScanQuiet(b *testing.B) {
	fsys := manySkills(b, benchSkills).FS()
	s := NewScanner(Options{})
	first, err := s.Scan(fsys, now)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := s.Scan(fsys, now); err != nil || r.Revision != first.Revision {
			b.Fatal("a quiet pass is not quiet", err)
		}
	}
}

// One skill of many changes: the price of an edit.
func BenchmarkScanOneEdit(b *testing.B) {
	root := manySkills(b, benchSkills)
	s := NewScanner(Options{})
	if _, err := s.Scan(root.FS(), now); err != nil {
		b.Fatal(err)
	}
	revision := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		text := fmt.Sprintf("---\nname: skill-7\ndescription: Does 7.\n---\nEdit %d.\n", revision)
		if err := os.WriteFile(filepath.Join(root.Name(), "skills/skill-7/SKILL.md"), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		r, err := s.Scan(root.FS(), now)
		if revision++; err != nil || r.Revision != revision {
			b.Fatal("the edit is not seen", r.Revision, err)
		}
	}
}
