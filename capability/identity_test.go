package capability

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// V5, V13, V15: five kinds; printed prefixes, and the JSON name of the one that differs.
func TestKinds(t *testing.T) {
	want := map[Kind][2]string{
		KindTool: {"tool", `"tool"`}, KindSkill: {"skill", `"skill"`}, KindMCP: {"mcp", `"mcp-server"`},
		KindHook: {"hook", `"hook"`}, KindCommand: {"command", `"command"`},
	}
	if len(Kinds()) != len(want) {
		t.Fatalf("kinds: %v", Kinds())
	}
	for _, k := range Kinds() {
		raw, err := json.Marshal(k)
		if err != nil || k.String() != want[k][0] || string(raw) != want[k][1] {
			t.Errorf("%d is %s, in JSON %s (%v)", k, k, raw, err)
		}
		var back Kind
		if err := json.Unmarshal(raw, &back); err != nil || back != k {
			t.Errorf("%s came back as %s (%v)", raw, back, err)
		}
	}
	if _, err := ParseKind("plugin"); err == nil {
		t.Error("a sixth kind was read")
	}
	if _, err := ParseKind(""); err == nil {
		t.Error("no kind was read")
	}
}

// V13: an id is kind:name and survives a round trip, colons and all; order is by kind, then by name.
func TestIDs(t *testing.T) {
	for _, bad := range []string{"", "tool", "tool:", "plugin:x", ":x"} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) = %v", bad, id)
		}
	}
	kind, name := rapid.SampledFrom(Kinds()), rapid.StringN(1, 20, -1)
	rapid.Check(t, func(t *rapid.T) {
		a := ID{kind.Draw(t, "kind"), name.Draw(t, "name")}
		b := ID{kind.Draw(t, "kind"), name.Draw(t, "name")}
		if back, err := ParseID(a.String()); err != nil || back != a {
			t.Fatalf("%q came back as %q (%v)", a, back, err)
		}
		if (a.Compare(b) == 0) != (a == b) || a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%q and %q compare %d and %d", a, b, a.Compare(b), b.Compare(a))
		}
		if a.Kind < b.Kind && a.Compare(b) >= 0 {
			t.Fatalf("%q does not stand before %q", a, b)
		}
	})
}

// V16: labels of origins.
func TestOrigins(t *testing.T) {
	for want, o := range map[string]Origin{
		"builtin": {Kind: OriginBuiltin}, "workspace": {Kind: OriginWorkspace}, "shared": {Kind: OriginShared}, "runtime": {Kind: OriginRuntime},
		"plugin:user:tools@market": {Kind: OriginPlugin, Plugin: "tools@market", Scope: "user"}, "unspecified": {Kind: 99},
	} {
		if got := o.Label(); got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

// V24, V25, V26: the vocabulary, its aliases, and words this build does not know.
func TestDomains(t *testing.T) {
	for word, want := range map[string]Domain{
		" Live_Data ": LiveData, "livedata": LiveData, "WEB": Web, "fs": Filesystem, "exec": CodeExec, "code-exec": CodeExec,
		"memory": Memory, "messaging": Messaging, "docs": Documents, "orchestration": Orchestration, "git": VCS,
		"observability": Observability, "Smart_Home": "smart-home", "": "", "  ": "",
	} {
		if got := ParseDomain(word); got != want {
			t.Errorf("ParseDomain(%q) = %q, want %q", word, got, want)
		}
	}
	if len(Vocabulary()) != 10 {
		t.Error("the vocabulary differs")
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.String()).Draw(t, "words")
		set := ParseDomains(words...)
		if !slices.IsSorted(set) || len(slices.Compact(slices.Clone(set))) != len(set) || slices.Contains(set, "") {
			t.Fatalf("%q is no set: %q", words, set)
		}
		for _, d := range set {
			if again := ParseDomain(string(d)); again != d {
				t.Fatalf("V25: %q became %q", d, again)
			}
		}
	})
}

// V28, V31: what declares nothing matches everything; what declares matches where the sets meet.
func TestDomainMatch(t *testing.T) {
	for _, tc := range []struct {
		serves, required []string
		want             bool
	}{
		{nil, nil, true},
		{nil, []string{"web"}, true},
		{[]string{"web"}, nil, false},
		{[]string{"web"}, []string{"vcs"}, false},
		{[]string{"web", "vcs"}, []string{"memory", "git"}, true},
		{[]string{"our-own"}, []string{"our_own"}, true},
	} {
		if got := ParseDomains(tc.serves...).Match(ParseDomains(tc.required...)); got != tc.want {
			t.Errorf("%v matches %v: %v", tc.serves, tc.required, got)
		}
	}
}

func TestCanonicalJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.50,"a":[ 1, {"d":"<","c":null} ]}`: `{"a":[1,{"c":null,"d":"<"}],"b":1.50}`,
		`1e400`:  `1e400`,
		` "x" `:  `"x"`,
		`{`:      "",
		`{} {}`:  "",
		`{}}`:    "",
		`[1]]`:   "",
		`{}\n//`: "",
		``:       "",
	} {
		got, err := CanonicalJSON([]byte(in))
		if (err != nil) != (want == "") || string(got) != want {
			t.Errorf("CanonicalJSON(%s) = %s, %v", in, got, err)
		}
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	f.Add([]byte(`{"b":1,"a":[1.0,"<é",null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := CanonicalJSON(raw)
		if err != nil {
			return
		}
		twice, err := CanonicalJSON(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q became %q, then %q (%v)", raw, once, twice, err)
		}
	})
}
