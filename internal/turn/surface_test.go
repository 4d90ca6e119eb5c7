package turn

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func tools(t testing.TB) *workshop {
	return newWorkshop(t).core().skill("pdf", "Fills forms.").
		tool("read", capability.Tool{ReadOnly: true, AlwaysLoaded: true}, "filesystem").
		tool("write", capability.Tool{}, "filesystem").
		tool("recall", capability.Tool{}, "memory").
		tool("fetch", capability.Tool{Description: "Fetches a page. Slowly."}, "web").
		tool("send", capability.Tool{}, "messaging", "web").
		tool("anything", capability.Tool{}).
		tool("chart", capability.Tool{PresentsCards: true}).
		tool("odd", capability.Tool{}, "our-own")
}

// V28, V31, V129, V215: an undeclared tool (anything) is in every surface.
// V139, V140: what is admitted is no function of a reading, and there is nothing else that filters it.
//
// V28, V31, V129, V171-V175, V179, V180, V183: what a reading loads and what it leaves to find_tools.
func TestSurface(t *testing.T) {
	always := []string{"anything", "find_tools", "mcp", "read", "skill"} // by their own flags, or undeclared
	with := func(more ...string) []string {
		all := append(slices.Clone(always), more...)
		slices.Sort(all)
		return all
	}
	everything := with("chart", "fetch", "odd", "recall", "send", "write")
	for name, tc := range map[string]struct {
		in     SurfaceInput
		loaded []string
	}{
		"V172 V173 the reading needs nothing": {SurfaceInput{Slice: true, Reading: &Reading{}}, always},
		"V173 web":                            {SurfaceInput{Slice: true, Reading: &Reading{Required: capability.ParseDomains("web")}}, with("fetch", "send")},
		"V31 a custom domain":                 {SurfaceInput{Slice: true, Reading: &Reading{Required: capability.ParseDomains("our_own")}}, with("odd")},
		"V174 the card it reads as":           {SurfaceInput{Slice: true, Reading: &Reading{Cards: []string{"chart"}}}, with("chart")},
		"V183 uncertain: the floor":           {SurfaceInput{Slice: true, Reading: &Reading{Uncertain: true, Required: capability.ParseDomains("web")}}, with("fetch", "recall", "send", "write")},
		"V179 slicing is off":                 {SurfaceInput{Reading: &Reading{}}, everything},
		"V179 V207 kernel off":                {SurfaceInput{Slice: true}, everything},
	} {
		t.Run(name, func(t *testing.T) {
			a := tools(t).admit()
			s := NewSurface(a, tc.in)
			if diff := cmp.Diff(tc.loaded, s.Loaded); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(a.ToolNames(), with(append(slices.Clone(s.Deferred), without(s.Loaded, always)...)...)); diff != "" {
				t.Errorf("V171: loaded and deferred are not what was admitted:\n%s", diff)
			}
			slicing := tc.in.Slice && tc.in.Reading != nil
			if slicing == (s.Catalogue == "") {
				t.Errorf("V179: catalogue %q", s.Catalogue)
			}
			for _, name := range s.Deferred {
				if want := name != "chart"; s.Misread(name) != want {
					t.Errorf("V180: Misread(%s) = %v", name, !want)
				}
				if _, err := Resolve(a, name, nil, nil); err != nil {
					t.Errorf("V171: the deferred %s cannot be called: %v", name, err)
				}
			}
			for _, name := range s.Loaded {
				if s.Misread(name) {
					t.Errorf("V180: the predicted %s is a misread", name)
				}
			}
		})
	}
}

func without(all, those []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(those, n) })
}

// V175, V176: the catalogue names what some reading defers, with its first sentence, and depends on nothing else.
func TestCatalogue(t *testing.T) {
	a := tools(t).admit()
	want := `More tools. Each can be called; find_tools loads its definition:
- chart: Does chart.
- fetch: Fetches a page.
- odd: Does odd.
- recall: Does recall.
- send: Does send.
- write: Does write.`
	for _, in := range []SurfaceInput{
		{Slice: true, Reading: &Reading{}},
		{Slice: true, Reading: &Reading{Uncertain: true, Cards: []string{"chart"}}, Loaded: []string{"odd", "fetch"}},
	} {
		if got := NewSurface(a, in).Catalogue; got != want {
			t.Errorf("catalogue:\n%s", got)
		}
	}
}

// V177, V181, V182: what find_tools finds is loaded behind what was loaded before, in the order found, and stays; the
// names that are new are told apart from those that are not.
func TestPromote(t *testing.T) {
	a := tools(t).server("git", capability.Server{}, "commit").admit()
	first := NewSurface(a, SurfaceInput{Slice: true, Reading: &Reading{}, Loaded: []string{"read", "mcp", "read"}})
	if diff := cmp.Diff([]string{"read", "mcp", "anything", "find_tools", "skill"}, first.Loaded); diff != "" {
		t.Errorf("what was loaded before comes first, and once (-want +got):\n%s", diff)
	}
	s, added := first.Promote(a, "send", "read", "git__commit", "no_such_tool", "fetch", "send")
	if diff := cmp.Diff([]string{"send", "git__commit", "fetch"}, added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(slices.Clone(first.Loaded), "send", "git__commit", "fetch"), s.Loaded); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if slices.Contains(s.Deferred, "send") || !slices.Contains(first.Deferred, "send") {
		t.Error("Promote did not move a name, or changed its receiver")
	}
	if !s.Misread("send") {
		t.Error("V180: a tool that had to be found is a misread when it is used")
	}
	later := NewSurface(a, SurfaceInput{Slice: true, Reading: &Reading{Required: capability.ParseDomains("memory")}, Loaded: s.Loaded})
	if diff := cmp.Diff(append(slices.Clone(s.Loaded), "recall"), later.Loaded); diff != "" {
		t.Errorf("the next turn (-want +got):\n%s", diff)
	}
}

// V181: over any readings and promotions of a session, what was loaded keeps its place while it is admitted.
func TestLoadedOnlyGrows(t *testing.T) {
	a := tools(t).admit()
	name := rapid.SampledFrom(append(a.ToolNames(), "gone"))
	domain := rapid.SampledFrom(capability.Vocabulary())
	rapid.Check(t, func(t *rapid.T) {
		var loaded []string
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			in := SurfaceInput{Slice: true, Loaded: loaded, Reading: &Reading{
				Required: rapid.SliceOf(domain).Draw(t, "required"), Uncertain: rapid.Bool().Draw(t, "uncertain"),
			}}
			s, _ := NewSurface(a, in).Promote(a, rapid.SliceOfN(name, 0, 3).Draw(t, "found")...)
			if len(s.Loaded) < len(loaded) || !slices.Equal(s.Loaded[:len(loaded)], loaded) {
				t.Fatalf("%v became %v", loaded, s.Loaded)
			}
			loaded = s.Loaded
		}
	})
}

// A tool that was taken away leaves the surface although the session had loaded it.
func TestLoadedLeavesWithAdmission(t *testing.T) {
	w := tools(t)
	loaded := NewSurface(w.admit(), SurfaceInput{}).Loaded
	a := w.admit(permissions(t, policy.PermissionRules{Mode: "full-access", Deny: []string{"fetch"}}))
	if s := NewSurface(a, SurfaceInput{Loaded: loaded}); slices.Contains(s.Loaded, "fetch") || len(s.Loaded) != len(loaded)-1 {
		t.Errorf("loaded: %v", s.Loaded)
	}
}

// V182: a repeated search is noticed, in whatever order its words come, and memory of searches is bounded.
func TestSearches(t *testing.T) {
	var s Searches
	for i, tc := range []struct {
		query    string
		repeated bool
	}{{"create issue", false}, {"Issues create", true}, {"create", false}, {"create issue", true}} {
		if got := s.Repeated(tc.query); got != tc.repeated {
			t.Errorf("search %d, %q: repeated %v", i, tc.query, got)
		}
	}
	for i := range 10 * maxSearches {
		s.Repeated(strings.Repeat("x ", i) + string(rune('a'+i%26)) + string(rune('a'+i/26)))
	}
	if len(s.seen) > maxSearches {
		t.Errorf("%d searches remembered", len(s.seen))
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"One. Two.":                         "One.",
		"  Reads\n a file\n\nMore text":     "Reads a file",
		"Reads v1.2 files. Then":            "Reads v1.2 files.",
		"Packs (e.g. zip) files. Then":      "Packs (e.g. zip) files.",
		"Really? Yes":                       "Really?",
		strings.Repeat("word ", 100):        strings.TrimSpace(strings.Repeat("word ", 32)) + " …",
		strings.Repeat("w", maxSentence+50): strings.Repeat("w", maxSentence) + "…",
		"Ünïcode sätze. Und mehr":           "Ünïcode sätze.",
	} {
		if got := FirstSentence(text); got != want {
			t.Errorf("FirstSentence(%.40q) = %q, want %q", text, got, want)
		}
	}
}
