package declare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Of every name the first root wins, whatever the roots hold; all others are shadowed by it; nothing is lost.
func TestMergeKeepsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roots := make([]Result, rapid.IntRange(0, 4).Draw(t, "roots"))
		first, total := map[capability.ID]string{}, 0
		for i := range roots {
			for n := range 4 {
				if !rapid.Bool().Draw(t, "has") {
					continue
				}
				d := capability.Declaration{
					ID:     capability.ID{Kind: capability.KindCommand, Name: fmt.Sprintf("c%d", n)},
					Source: fmt.Sprintf("root%d/c%d.md", i, n), Digest: fmt.Sprint(i), Config: &capability.Command{},
				}
				roots[i].Declarations = append(roots[i].Declarations, d)
				if _, known := first[d.ID]; !known {
					first[d.ID] = d.Source
				}
				total++
			}
		}
		m := Merge(roots...)
		for _, d := range m.Declarations {
			if first[d.ID] != d.Source {
				t.Fatalf("%s is that of %s, want %s", d.ID, d.Source, first[d.ID])
			}
		}
		for _, s := range m.Shadowed {
			if first[s.ID] != s.By || s.Source == s.By {
				t.Fatalf("%+v is shadowed by something else than %s", s, first[s.ID])
			}
		}
		if len(m.Declarations) != len(first) || len(m.Declarations)+len(m.Shadowed) != total || len(m.Problems) != len(m.Shadowed) {
			t.Fatalf("%d declared, %d shadowed, %d problems of %d", len(m.Declarations), len(m.Shadowed), len(m.Problems), total)
		}
	})
}

// V134: of two roots that speak of one channel neither shows what the other hides; each other channel is that of the root that names
// it. Permissions are layers, and a root that cannot be read closes them.
func TestMergeConfig(t *testing.T) {
	read := func(text string) Result { return scan(t, files("vak.toml", text)) }
	if m := Merge(read("[permissions]\ndeny = [\"a\"]\n"), read("[permissions]\ndeny = [\"b\"]\n")); len(m.Permissions) != 2 || m.Config.Unreadable {
		t.Errorf("permissions %+v", m.Permissions)
	}
	if m := Merge(read(""), read("[")); !m.Config.Unreadable {
		t.Error("an unreadable root is not noticed")
	}
	m := Merge(
		read("[channels.a]\ntools = { allow = [\"x\"], deny = [\"y\"] }\n"), read("[channels.a]\ntools = { allow = [\"*\"], deny = [\"z\"] }\nskills = { allow = [] }\n[channels.b]\ntools = { deny = [\"q\"] }\n"),
	).Config
	if a, _ := policy.CompileChannel("a", m.Channels["a"]); len(m.Channels) != 2 || !a.AllowsTool("x") || a.AllowsTool("w") || a.AllowsTool("y") || a.AllowsTool("z") || a.AllowsSkill("any") {
		t.Errorf("channels %+v", m.Channels)
	}
	// An allow list of the workspace does not widen that of the user.
	m = Merge(read("[channels.a]\ntools = { allow = [\"*\"] }\n"), read("[channels.a]\ntools = { allow = [\"x\"] }\n")).Config
	if a, _ := policy.CompileChannel("a", m.Channels["a"]); a.AllowsTool("w") || !a.AllowsTool("x") {
		t.Errorf("widened: %+v", m.Channels)
	}
}

// Which of two is used depends on their places, never on the order in which they came about.
func TestOrderOfCreationDoesNotMatter(t *testing.T) {
	pairs := []string{"skills/a/SKILL.md", "---\nname: same\ndescription: one\n---\n", "skills/b/SKILL.md", "---\nname: same\ndescription: two\n---\n"}
	var results [][]capability.Declaration
	for _, order := range [][]string{pairs, slices.Concat(pairs[2:], pairs[:2])} {
		r, err := NewScanner(Options{}).Scan(onDisk(t, order...).FS(), now)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r.Declarations)
	}
	if diff := cmp.Diff(results[0], results[1]); diff != "" || len(results[0]) != 1 || results[0][0].Source != "skills/a/SKILL.md" {
		t.Errorf("%s", diff)
	}
}
