package declare

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
)

// goodWorkspace declares one capability a file, two in vak.toml and .mcp.json.
func goodWorkspace() fstest.MapFS {
	return files(
		"vak.toml", "[mcp.servers.s1]\ncommand = \"c\"\n[[hooks]]\nevent = \"stop\"\ncommand = \"h\"\n",
		".mcp.json", `{"mcpServers": {"s2": {"command": "c"}, "s3": {"type": "http", "url": "https://h"}}}`,
		"skills/k1/SKILL.md", "---\nname: k1\ndescription: d\n---\nb\n", "skills/k2/SKILL.md", "---\nname: k2\ndescription: d\n---\nb\n",
		".claude/skills/k3/SKILL.md", "---\nname: k3\ndescription: d\n---\nb\n",
		"commands/c1.md", "one\n", ".claude/commands/sub/c2.md", "two\n",
	)
}

// One bad file never changes what the others declare, whatever stands in it. (A file that happens to declare a name of
// another one may hide it, by precedence.)
func TestOneBadFileNeverCostsAnother(t *testing.T) {
	good := goodWorkspace()
	names := slices.Sorted(maps.Keys(good))
	base := scan(t, good)
	rapid.Check(t, func(t *rapid.T) {
		victim := rapid.SampledFrom(names).Draw(t, "victim")
		text := slices.Clone(good[victim].Data)
		switch rapid.IntRange(0, 3).Draw(t, "damage") {
		case 0:
			text = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "text")
		case 1:
			text = text[:rapid.IntRange(0, len(text)).Draw(t, "cut")]
		case 2:
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[at] = rapid.Byte().Draw(t, "byte")
		default:
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = slices.Insert(text, at, rapid.SampledFrom([]string{"---\n", "\x00", "{", "[", ": ", "<<<<<<< a\n", "\"", "\r\n"}).Draw(t, "extra")[0])
		}
		fsys := maps.Clone(good)
		fsys[victim] = &fstest.MapFile{Data: text, ModTime: then}
		r, err := NewScanner(Options{}).Scan(fsys, now)
		if err != nil {
			t.Fatal(err)
		}
		others := func(all []capability.Declaration) map[string]capability.Declaration {
			m := map[string]capability.Declaration{}
			for _, d := range all {
				if d.Source != victim {
					m[d.ID.String()] = d
				}
			}
			return m
		}
		want, got := others(base.Declarations), others(r.Declarations)
		for _, shadow := range r.Shadowed {
			if shadow.By == victim {
				delete(want, shadow.ID.String())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("damage to %s changed others (-want +got):\n%s", victim, diff)
		}
	})
}

// A Scanner that followed a workspace through edits says what one that reads it afresh says.
func TestScannerAgreesWithAFreshOne(t *testing.T) {
	good := goodWorkspace()
	names := slices.Sorted(maps.Keys(good))
	rapid.Check(t, func(t *rapid.T) {
		fsys, s, at := maps.Clone(good), NewScanner(Options{}), then
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			at = at.Add(settleTime)
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch rapid.IntRange(0, 2).Draw(t, "edit") {
			case 0:
				delete(fsys, name)
			case 1:
				fsys[name] = good[name]
			default:
				text := strings.ReplaceAll(string(good[name].Data), "d\n", rapid.SampledFrom([]string{"e\n", "longer\n"}).Draw(t, "text"))
				fsys[name] = &fstest.MapFile{Data: []byte(text), ModTime: at}
			}
			got, err := s.Scan(fsys, at)
			if err != nil {
				t.Fatal(err)
			}
			want, err := NewScanner(Options{}).Scan(fsys, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range [][2]any{{want.Declarations, got.Declarations}, {want.Problems, got.Problems}, {want.Shadowed, got.Shadowed}, {want.Watch, got.Watch}} {
				if diff := cmp.Diff(part[0], part[1]); diff != "" {
					t.Fatalf("-fresh +kept:\n%s", diff)
				}
			}
		}
	})
}
