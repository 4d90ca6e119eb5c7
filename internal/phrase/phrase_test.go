package phrase

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCut(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abcd…", "abcäö": "abc…", "äöü": "äö…", "ab\xffde": "ab" + "d…"} {
		if got := Cut(text, 4); got != want {
			t.Errorf("Cut(%q) = %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 20).Draw(t, "most")
		got := Cut(text, most)
		if !utf8.ValidString(got) || len(got) > most+len("…") || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Fatalf("Cut(%q, %d) = %q", text, most, got)
		}
	})
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{
		"none": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b, … and 2 more": {"a", "b", "c", "d"},
	} {
		if got := List(names, 2); got != want {
			t.Errorf("List(%v) = %q, want %q", names, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"tick", "tikc", 1}, {"tick", "tck", 1}, {"read", "raed", 1}, {"create_issue", "create_isue", 1}, {"abc", "xyz", 3}} {
		if got := Distance(c.a, c.b, 10); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// A limit only cuts off: below it nothing differs.
func TestDistanceWithinLimit(t *testing.T) {
	word := rapid.StringMatching("[ab_]{0,12}")
	rapid.Check(t, func(t *rapid.T) {
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, 8).Draw(t, "limit")
		whole := Distance(a, b, len(a)+len(b))
		if got := Distance(a, b, limit); got != min(whole, limit+1) {
			t.Fatalf("Distance(%q, %q, %d) = %d, without a limit %d", a, b, limit, got, whole)
		}
		if back := Distance(b, a, len(a)+len(b)); back != whole || (whole == 0) != (a == b) {
			t.Fatalf("Distance(%q, %q) is %d and back %d", a, b, whole, back)
		}
	})
}
