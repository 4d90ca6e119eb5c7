package turn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
)

func TestExposedName(t *testing.T) {
	for _, tc := range []struct{ server, tool, want string }{
		{"git", "commit", "git__commit"},
		{"git", "_commit", "git___commit"},
		{"my-server", "do-it_now", "my-server__do-it_now"},
	} {
		if got := ExposedName(tc.server, tc.tool); got != tc.want {
			t.Errorf("ExposedName(%q, %q) = %q, want %q", tc.server, tc.tool, got, tc.want)
		}
	}
	for _, pair := range [][2]string{{"plugin.x.y", "t"}, {"s", "a/b"}, {"a__b", "c"}, {"a_", "b"}, {strings.Repeat("s", 40), "tool_name"}, {"ü", "t"}, {"", "t"}} {
		got := ExposedName(pair[0], pair[1])
		if len(got) > maxExposedName || notExposable.MatchString(got) || got == pair[0]+"__"+pair[1] {
			t.Errorf("ExposedName(%q, %q) = %q", pair[0], pair[1], got)
		}
	}
}

// Two pairs never share an unhashed name, every name is short and clean, and a pair has one name.
func TestExposedNameProperties(t *testing.T) {
	part := rapid.StringMatching(`[a_./é-]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		s1, t1, s2, t2 := part.Draw(t, "s1"), part.Draw(t, "t1"), part.Draw(t, "s2"), part.Draw(t, "t2")
		n1, n2 := ExposedName(s1, t1), ExposedName(s2, t2)
		if (s1 != s2 || t1 != t2) && n1 == n2 {
			t.Fatalf("%q/%q and %q/%q are both %q", s1, t1, s2, t2, n1)
		}
		if len(n1) > maxExposedName || notExposable.MatchString(n1) || n1 != ExposedName(s1, t1) {
			t.Fatalf("%q/%q is %q", s1, t1, n1)
		}
	})
}

// A name that a tool of the host has, or that two servers' tools would have, is nobody's.
func TestExposedCollisions(t *testing.T) {
	natural := strings.TrimPrefix(ExposedName("s", "a.b"), "s__") // a clean tool name that equals the hashed name of another
	a := newWorkshop(t).core().tool("git__status", capability.Tool{}).
		server("git", capability.Server{}, "commit", "status").server("s", capability.Server{}, "a.b", natural, "fine").admit()
	var listed, refused []string
	for _, x := range a.Exposed() {
		listed = append(listed, x.Name)
		if got, ok := a.ByExposedName(x.Name); !ok || got != x {
			t.Errorf("ByExposedName(%q) = %v, %v", x.Name, got, ok)
		}
	}
	for _, x := range a.ExposedCollisions() {
		refused = append(refused, x.Server+"/"+x.Tool.Name)
		if _, ok := a.ByExposedName(x.Name); ok {
			t.Errorf("the refused name %q leads somewhere", x.Name)
		}
	}
	if diff := cmp.Diff([]string{"git__commit", "s__fine"}, listed); diff != "" {
		t.Errorf("exposed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"git/status", "s/a.b", "s/" + natural}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
