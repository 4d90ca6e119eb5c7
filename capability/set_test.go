package capability

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func id(text string) ID {
	parsed, err := ParseID(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// declare is a declaration of that id with the smallest configuration of its kind.
func declare(text string, edits ...func(*Declaration)) Declaration {
	d := Declaration{ID: id(text), Origin: Origin{Kind: OriginWorkspace}, Summary: "about " + text}
	d.Config = map[Kind]Config{
		KindTool: &Tool{InputSchema: json.RawMessage(`{"type":"object"}`)}, KindSkill: &Skill{},
		KindMCP: &Server{}, KindHook: &Hook{}, KindCommand: &Command{},
	}[d.ID.Kind]
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

func newSet(t testing.TB, revoked Revocations, declared ...Declaration) *Set {
	t.Helper()
	set, err := NewSet(declared, revoked)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Consistent(); err != nil {
		t.Fatal(err)
	}
	return set
}

func idsOf(s *Set) []string {
	var all []string
	for c := range s.All() {
		all = append(all, c.ID.String())
	}
	return all
}

// V14, V17, V20: order and digest do not depend on the order of declarations, and two kinds share a name in peace.
func TestSetIsDeterministic(t *testing.T) {
	declared := []Declaration{declare("mcp:pdf"), declare("tool:b"), declare("command:x"), declare("skill:pdf"), declare("hook:stop/x"), declare("tool:a")}
	want := []string{"tool:a", "tool:b", "skill:pdf", "mcp:pdf", "hook:stop/x", "command:x"}
	first := newSet(t, nil, declared...)
	rapid.Check(t, func(t *rapid.T) {
		set, err := NewSet(rapid.Permutation(declared).Draw(t, "order"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, idsOf(set)); diff != "" || set.Digest() != first.Digest() {
			t.Fatalf("digest %s, order (-want +got):\n%s", set.Digest(), diff)
		}
	})
	for _, name := range want {
		if c, ok := first.Get(id(name)); !ok || c.ID.String() != name {
			t.Errorf("Get(%s) = %v, %v", name, c, ok)
		}
	}
	if _, ok := first.Get(id("tool:pdf")); ok {
		t.Error("a name was found under another kind")
	}
	var tools []string
	for c := range first.OfKind(KindTool) {
		tools = append(tools, c.ID.Name)
	}
	if !slices.Equal(tools, []string{"a", "b"}) || first.Len() != len(want) {
		t.Errorf("tools %v, %d capabilities", tools, first.Len())
	}
}

func TestSetRefuses(t *testing.T) {
	for name, declared := range map[string][]Declaration{
		"declared twice":   {declare("tool:a"), declare("tool:a")},
		"has no name":      {{ID: ID{Kind: KindTool}, Config: &Tool{}}},
		"no configuration": {{ID: id("tool:a")}},
		"of a skill":       {{ID: id("tool:a"), Config: &Skill{}}},
		"cannot encode":    {{ID: id("tool:a"), Config: &Tool{InputSchema: json.RawMessage(`{`)}}},
	} {
		if _, err := NewSet(declared, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// V19, V22, V23, V33, V37, V39, V47: everything a turn could notice moves the digest, each by itself.
func TestDigestCovers(t *testing.T) {
	base := func() *Declaration {
		d := declare("mcp:git", func(d *Declaration) {
			d.Serves, d.Digest = ParseDomains("vcs"), "d1"
			d.Config = &Server{Command: "git-mcp", SecretDigest: "s1"}
		})
		return &d
	}
	digests := map[string]string{newSet(t, nil, *base()).Digest(): "nothing"}
	for what, edit := range map[string]func(*Declaration){
		"identity":      func(d *Declaration) { d.ID.Name = "git2" },
		"origin label":  func(d *Declaration) { d.Origin.Kind = OriginShared },
		"summary":       func(d *Declaration) { d.Summary = "other" },
		"content":       func(d *Declaration) { d.Digest = "d2" },
		"domains":       func(d *Declaration) { d.Serves = ParseDomains("vcs", "web") },
		"configuration": func(d *Declaration) { d.Config = &Server{Command: "other", SecretDigest: "s1"} },
		"secret":        func(d *Declaration) { d.Config = &Server{Command: "git-mcp", SecretDigest: "s2"} },
		"observation": func(d *Declaration) {
			d.Config = &Server{Command: "git-mcp", SecretDigest: "s1", Observation: &Observation{Catalog: []ObservedTool{{Name: "x", InputSchema: json.RawMessage(`{}`), Definition: json.RawMessage(`{}`)}}}}
		},
		"failure": func(d *Declaration) {
			d.Config = &Server{Command: "git-mcp", SecretDigest: "s1", Observation: &Observation{Failure: "down"}}
		},
	} {
		d := base()
		edit(d)
		digest := newSet(t, nil, *d).Digest()
		if other, same := digests[digest]; same {
			t.Errorf("a change of %s looks like a change of %s", what, other)
		}
		digests[digest] = what
	}
	for reason, revoked := range map[string]Revocations{"usability": {id("mcp:git"): "r"}, "another reason": {id("mcp:git"): "r2"}} {
		digest := newSet(t, revoked, *base()).Digest()
		if other, same := digests[digest]; same {
			t.Errorf("%s looks like a change of %s", reason, other)
		}
		digests[digest] = reason
	}
	moved := base()
	moved.Source = "elsewhere/file"
	if digests[newSet(t, nil, *moved).Digest()] != "nothing" {
		t.Error("moving a file is taken for a change")
	}
	if len((&Set{}).computeDigest()) != 64 || (*Set)(nil).Digest() != newSet(t, nil).Digest() {
		t.Error("V23: not SHA-256, or the nil set is not the empty set")
	}
}

// V33, V34: usable is declared and not revoked; revoking what is not declared declares nothing.
func TestResolution(t *testing.T) {
	set := newSet(t, Revocations{id("tool:a"): "audit", id("tool:ghost"): "x"}, declare("tool:a"), declare("tool:b"))
	a, _ := set.Get(id("tool:a"))
	b, _ := set.Get(id("tool:b"))
	if a.Usable() || a.Resolution != (Resolution{true, "audit"}) || !b.Usable() || set.Len() != 2 {
		t.Errorf("a %+v, b %+v, %d capabilities", a.Resolution, b.Resolution, set.Len())
	}
}

// A broken set is noticed.
func TestConsistent(t *testing.T) {
	for name, breakIt := range map[string]func(*Set){
		"order":  func(s *Set) { s.list[0], s.list[1] = s.list[1], s.list[0] },
		"index":  func(s *Set) { s.index[id("tool:a")] = 1 },
		"digest": func(s *Set) { s.list[0].Resolution.Retired = true },
	} {
		set := newSet(t, nil, declare("tool:a"), declare("tool:b"))
		breakIt(set)
		if set.Consistent() == nil {
			t.Errorf("a broken %s is consistent", name)
		}
	}
	if (*Set)(nil).Consistent() != nil || (*Set)(nil).Len() != 0 {
		t.Error("the nil set is not an empty set")
	}
}

// V21, V88: epoch 0 is the empty set, the first publication is 1, and only a difference moves it.
func TestNext(t *testing.T) {
	zero := Snapshot{}
	first, moved := zero.Next(newSet(t, nil, declare("tool:a")))
	if !moved || first.Epoch != 1 {
		t.Fatalf("first publication: %d, %v", first.Epoch, moved)
	}
	if same, moved := first.Next(newSet(t, nil, declare("tool:a"))); moved || same != first {
		t.Errorf("an equal set moved the epoch to %d", same.Epoch)
	}
	if _, moved := zero.Next(newSet(t, nil)); moved {
		t.Error("an empty world is a publication")
	}
	back, _ := first.Next(newSet(t, nil))
	again, moved := back.Next(newSet(t, nil, declare("tool:a")))
	if !moved || back.Epoch != 2 || again.Epoch != 3 {
		t.Errorf("a number was used twice: %d, %d", back.Epoch, again.Epoch)
	}
}

// worlds draws sets over few ids, so that they differ in every way.
func worlds(t *rapid.T, name string) *Set {
	var declared []Declaration
	revoked := Revocations{}
	for _, text := range []string{"tool:a", "tool:b", "skill:a", "mcp:a", "hook:stop/a"} {
		switch rapid.IntRange(0, 3).Draw(t, name+" "+text) {
		case 0:
			continue
		case 1:
			declared = append(declared, declare(text))
		case 2:
			declared = append(declared, declare(text, func(d *Declaration) { d.Summary = "edited" }))
		case 3:
			declared = append(declared, declare(text))
			revoked[id(text)] = "r"
		}
	}
	set, err := NewSet(declared, revoked)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// V90: a delta names exactly what differs; losing usability is an update. The same from marks, and over a history.
func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to, last := worlds(t, "from"), worlds(t, "to"), worlds(t, "last")
		d := Diff(from, to)
		if diff := cmp.Diff(d, DiffMarks(from.Marks(), to)); diff != "" {
			t.Fatalf("by marks (-sets +marks):\n%s", diff)
		}
		if d.Empty() != (from.Digest() == to.Digest()) {
			t.Fatalf("%s, and digests %s, %s", d, from.Digest(), to.Digest())
		}
		naive := naiveDiff(from, to)
		if diff := cmp.Diff(naive, d.String()); diff != "" {
			t.Fatalf("(-naive +got):\n%s", diff)
		}
		h := NewHistory([]Step{{5, d}, {6, Diff(to, last)}})
		over, known := h.Between(4, 6)
		whole := Diff(from, last)
		// What was changed and changed back is told as updated; nothing else may differ.
		over.Updated = slices.DeleteFunc(over.Updated, func(i ID) bool { return !slices.Contains(whole.Updated, i) })
		if over.String() != whole.String() || !known {
			t.Fatalf("over two steps %s, known %v; want %s", over, known, whole)
		}
	})
}

func naiveDiff(from, to *Set) string {
	lists := map[string][]string{}
	for _, text := range []string{"tool:a", "tool:b", "skill:a", "mcp:a", "hook:stop/a"} {
		a, hadIt := from.Get(id(text))
		b, hasIt := to.Get(id(text))
		switch {
		case !hadIt && hasIt:
			lists["added"] = append(lists["added"], text)
		case hadIt && !hasIt:
			lists["removed"] = append(lists["removed"], text)
		case hadIt && (a.Summary != b.Summary || a.Usable() != b.Usable()):
			lists["updated"] = append(lists["updated"], text)
		}
	}
	var parts []string
	for _, word := range []string{"added", "updated", "removed"} {
		if lists[word] != nil {
			parts = append(parts, word+" "+strings.Join(lists[word], ", "))
		}
	}
	if parts == nil {
		return "no change"
	}
	return strings.Join(parts, "; ")
}

func TestDeltaOnly(t *testing.T) {
	d := Delta{Added: []ID{id("tool:a"), id("tool:b")}, Removed: []ID{id("tool:b")}}
	got := d.Only(func(i ID) bool { return i.Name == "a" })
	if got.String() != "added tool:a" || len(d.Added) != 2 || d.Added[1].Name != "b" {
		t.Errorf("%s, and the delta became %s", got, d)
	}
}

// What is not remembered is not made up, and no more than 256 steps are.
func TestHistoryBounds(t *testing.T) {
	var h *History
	for i := range Epoch(1000) {
		h = h.With(Step{i + 1, Delta{Added: []ID{id(fmt.Sprintf("tool:t%d", i))}}})
	}
	if len(h.Steps()) != maxHistory {
		t.Errorf("%d steps are kept", len(h.Steps()))
	}
	if d, ok := h.Between(998, 1000); !ok || d.String() != "added tool:t998, tool:t999" {
		t.Errorf("between: %s, %v", d, ok)
	}
	for _, span := range [][2]Epoch{{0, 1000}, {700, 1000}, {999, 1001}, {1000, 998}} {
		if d, ok := h.Between(span[0], span[1]); ok {
			t.Errorf("between %d and %d: %s", span[0], span[1], d)
		}
	}
	if d, ok := h.Between(3, 3); !ok || !d.Empty() {
		t.Errorf("between an epoch and itself: %s, %v", d, ok)
	}
	gap := h.With(Step{Epoch: 1005})
	if len(gap.Steps()) != 1 || len(h.Steps()) != maxHistory {
		t.Errorf("after a gap %d steps are kept, before it %d", len(gap.Steps()), len(h.Steps()))
	}
}

func TestObservationTool(t *testing.T) {
	o := &Observation{Catalog: []ObservedTool{{Name: "a"}, {Name: "b"}}}
	if o.Tool("b") != &o.Catalog[1] || o.Tool("c") != nil || (*Observation)(nil).Tool("a") != nil {
		t.Error("Tool finds the wrong tool")
	}
}

func BenchmarkNewSet(b *testing.B) {
	declared := make([]Declaration, 1000)
	for i := range declared {
		declared[i] = declare(fmt.Sprintf("tool:t%d", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewSet(declared, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	declared := make([]Declaration, 1000)
	for i := range declared {
		declared[i] = declare(fmt.Sprintf("tool:t%d", i))
	}
	from := newSet(b, nil, declared...)
	to := newSet(b, Revocations{id("tool:t500"): "r"}, declared[1:]...)
	b.ReportAllocs()
	for b.Loop() {
		if d := Diff(from, to); len(d.Updated) != 1 {
			b.Fatal(d)
		}
	}
}

// A history fits a value of the store however much comes and goes at once: what it names is bounded, not only its steps.
func TestHistoryIsBoundedByWhatItNames(t *testing.T) {
	many := func(n int) (d Delta) {
		for i := range n {
			d.Added = append(d.Added, id(fmt.Sprintf("tool:t%d", i)))
		}
		return d
	}
	var h *History
	for e := range Epoch(20) {
		h = h.With(Step{e + 1, many(1000)})
	}
	if n := len(h.Steps()); n != maxHistoryIDs/1000 || h.Steps()[n-1].Epoch != 20 {
		t.Errorf("%d steps are kept, up to %d", n, h.Steps()[n-1].Epoch)
	}
	if h = h.With(Step{21, many(maxHistoryIDs + 1)}); len(h.Steps()) != 0 {
		t.Errorf("%d steps are kept beside one too large", len(h.Steps()))
	}
	if _, known := h.Between(20, 21); known {
		t.Error("a step that was dropped is known")
	}
	if h = h.With(Step{22, many(1)}); len(h.Steps()) != 1 {
		t.Errorf("%d steps are kept after it", len(h.Steps()))
	}
}
