package lifecycle

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
)

// read begins a turn with a reading.
func (a *agent) read(reading *sessionv1.Reading) *aTurn {
	a.Helper()
	return &aTurn{a, ask[*sessionv1.BeginTurnResult](a.world, &sessionv1.BeginTurn{SessionId: a.id, Reading: reading})}
}

func domains(all ...string) *sessionv1.Reading { return &sessionv1.Reading{Domains: all} }

// V129, V139, V140, V171, V172, V176, V204, V205, V207, V215: over a real host, whatever is read of a request, the same is
// admitted and callable, and the standing part of the prompt is the same bytes; only what is loaded differs.
func TestAReadingOnlyLoads(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "hello", skillFile("tidy"): skill("tidy", "Do it.")})
	whole := w.open().begin() // without a kernel
	if whole.GetDeferred() != nil || strings.Contains(whole.GetPromptSection(), "More tools") {
		t.Errorf("V207: without a reading %v are deferred", whole.GetDeferred())
	}
	var section string
	for name, tc := range map[string]struct {
		reading *sessionv1.Reading
		writes  bool // write is loaded
	}{
		"nothing":             {domains(), false},
		"web":                 {domains("web"), false},
		"files":               {domains("fs"), true},
		"uncertain":           {&sessionv1.Reading{Uncertain: true}, true},
		"axes":                {&sessionv1.Reading{Axes: &sessionv1.Axes{Act: "change"}}, true},
		"other axes":          {&sessionv1.Reading{Axes: &sessionv1.Axes{Act: "communicate"}}, false},
		"axes nobody knows":   {&sessionv1.Reading{Axes: &sessionv1.Axes{Evidence: "stars"}}, true},
		"a domain of nothing": {domains("our-own"), false},
	} {
		u := w.open().read(tc.reading)
		for _, always := range []string{"read", "glob", "grep", "find_tools", "skill", "mcp", "session_search"} {
			if !slices.Contains(u.GetLoaded(), always) {
				t.Errorf("%s: V172: %s is not loaded", name, always)
			}
		}
		if slices.Contains(u.GetLoaded(), "write") != tc.writes {
			t.Errorf("%s: loaded %v", name, u.GetLoaded())
		}
		all := slices.Sorted(slices.Values(slices.Concat(u.GetLoaded(), u.GetDeferred())))
		if diff := cmp.Diff(slices.Sorted(slices.Values(whole.GetLoaded())), all); diff != "" {
			t.Errorf("%s: V139: another set is admitted (-without a reading +with):\n%s", name, diff)
		}
		if section == "" {
			section = u.GetPromptSection()
		}
		if u.GetPromptSection() != section {
			t.Errorf("%s: V176: the standing part of the prompt is another:\n%s", name, u.GetPromptSection())
		}
		u.want(u.call("write", object{"path": "b.txt", "content": "x"}))
	}
}

// V177, V181, V182: one search loads what it finds, in the form of the turn, for this turn and the later ones, in the same
// order after sleep and restart, and in no other session; to find it again is no news.
func TestSearchLoads(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	a, other := w.open(), w.open()
	u := a.begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one") // so that its catalog is known
	u.end()
	a.learned("echo").end()
	u = a.read(domains("messaging"))
	search := func(u *aTurn, query string) *sessionv1.DispatchResult {
		t.Helper()
		return ask[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{
			SessionId: u.id, TurnId: u.GetTurnId(), Name: "find_tools", ArgumentsJson: []byte(`{"query":"` + query + `","limit":2}`),
		})
	}
	first := search(u, "write a file")
	if len(first.GetPromoted()) == 0 || !bytes.Contains(first.GetPromotedJson(), []byte(`"name":"`+first.GetPromoted()[0]+`"`)) {
		t.Fatalf("V177: promoted %v as %s", first.GetPromoted(), first.GetPromotedJson())
	}
	again := search(u, "file write a")
	if text := string(again.GetResultJson()); len(again.GetPromoted()) > 0 || !strings.Contains(text, "none is new") || !strings.Contains(text, "this search before") {
		t.Errorf("V182: the same search again: %s", text)
	}
	echo := search(u, "echo")
	want := slices.Concat(u.GetLoaded(), first.GetPromoted(), echo.GetPromoted())
	u.want(u.call("s__echo", object{"text": "two"}), "two")
	u.end()
	for _, interruption := range []func(){func() {}, w.restart} {
		interruption()
		u = a.read(domains())
		if diff := cmp.Diff(want, u.GetLoaded()); diff != "" {
			t.Errorf("V181: loaded (-want +got):\n%s", diff)
		}
		u.end()
	}
	if got := other.read(domains()).GetLoaded(); slices.Contains(got, "s__echo") {
		t.Errorf("another session has loaded %v", got)
	}
}

// V181, V182: the same where the host reads nothing, and where it begins no turns: what was found stays loaded behind all else,
// and to find it again, by the same words, is no news until the set changes.
func TestSearchLoadsWithoutReadings(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	u.end()
	u = a.learned("echo")
	u.want(u.call("find_tools", object{"query": "echo", "limit": 1}), "1 new, loaded now")
	before := u.GetLoaded()
	u.end()
	for _, interruption := range []func(){func() {}, w.restart} {
		interruption()
		u = a.begin()
		if diff := cmp.Diff(append(slices.Clone(before), "s__echo"), u.GetLoaded()); diff != "" {
			t.Errorf("V181: loaded (-want +got):\n%s", diff)
		}
		if !bytes.Contains(u.GetToolsJson(), []byte(`"name":"s__echo"`)) {
			t.Errorf("V177: the definitions lack it: %s", u.GetToolsJson())
		}
		u.end()
	}
	loose := a.loose()
	loose.want(loose.call("find_tools", object{"query": "echo", "limit": 1}), "none is new")
	loose.want(loose.call("find_tools", object{"query": "echo", "limit": 1}), "none is new", "this search before")
	for range 20 { // what is found again and again does not grow
		loose.want(loose.call("find_tools", object{"query": "sleep slow", "limit": 3}))
	}
	if loaded := recorded[ledger.ToolsLoaded](a); len(loaded) != 2 {
		t.Errorf("the record says %v", loaded)
	}
	w.write(skillFile("new"), skill("new", "x"))
	w.reload()
	if got := loose.call("find_tools", object{"query": "echo", "limit": 1}); strings.Contains(got.text, "before") {
		t.Errorf("in another set it is another search: %s", got)
	}
}

// V180: what was used although no reading asked for it is counted, for its turn and for the session, over a restart too.
func TestMisreadsAreCounted(t *testing.T) {
	w := newWorld(t, nil)
	a := w.open()
	for i := range 2 {
		u := a.read(domains("web"))
		u.want(u.call("write", object{"path": "b.txt", "content": "x"}))
		u.want(u.call("read", object{"path": "b.txt"}))
		end := ask[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: a.id, TurnId: u.GetTurnId()})
		if diff := cmp.Diff([]string{"write"}, end.GetMisread()); diff != "" {
			t.Errorf("misread in the turn (-want +got):\n%s", diff)
		}
		if got := a.session().GetMisreads(); got != uint64(i)+1 {
			t.Errorf("misreads of the session after %d: %d", i+1, got)
		}
		w.restart()
	}
	u := a.read(domains("fs"))
	u.want(u.call("write", object{"path": "b.txt", "content": "x"}))
	if got := a.session().GetMisreads(); got != 2 {
		t.Errorf("misreads of the session: %d", got)
	}
}
