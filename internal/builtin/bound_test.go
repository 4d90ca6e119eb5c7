package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func skillOf(name, body string) capability.Declaration {
	return capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: name}, Digest: capability.ContentDigest([]byte(body)),
		Source: "skills/" + name + "/SKILL.md", Origin: capability.Origin{Kind: capability.OriginWorkspace},
		Config: &capability.Skill{Body: []byte(body), BaseDir: "skills/" + name},
	}
}

// V186, V187, V191: loaded on demand from the set, its digest checked, wrapped; the errors are told apart.
func TestSkill(t *testing.T) {
	byHand, stale := skillOf("by-hand", "x"), skillOf("stale", "x")
	byHand.Config.(*capability.Skill).DisableModelInvocation = true
	stale.Config.(*capability.Skill).Body = []byte("changed")
	w := newWorld(t, skillOf("pdf", "Use care.\n"), byHand, stale)
	w.put("skills/pdf/SKILL.md", "another text on disk by now")
	w.put("skills/pdf/scripts/run.sh", "")
	w.put("skills/pdf/ref.md", "")
	want := `<skill name="pdf" location="skills/pdf/SKILL.md" provenance="workspace" base_directory="skills/pdf">
Use care.

Files of this skill, to be read when they are needed:
- skills/pdf/ref.md
- skills/pdf/scripts/run.sh
</skill>`
	if diff := cmp.Diff(want, w.text("skill", `{"name":"pdf"}`)); diff != "" {
		t.Error(diff)
	}
	w.refused("skill", `{"name":"stale"}`, vakerr.CapabilityStale)
	// V123: only what is admitted is resolved.
	if e := w.refused("skill", `{"name":"none"}`, vakerr.CapabilityNotAdmitted); !strings.Contains(e.Remedy, "pdf") {
		t.Errorf("remedy %q", e.Remedy)
	}
	if e := w.refused("skill", `{"name":"by-hand"}`, vakerr.CapabilityNotAdmitted); strings.Contains(e.Remedy, "by-hand") {
		t.Errorf("remedy %q", e.Remedy)
	}
	// V185: other fields are refused, by the tool itself too.
	for _, args := range []string{`{"name":"pdf","path":"x"}`, `{}`, `{"name":7}`, `[]`} {
		w.refused("skill", args, vakerr.InvalidArguments)
		o, _ := w.table.Lookup("skill")
		if _, err := o.Run(t.Context(), op.Call{Arguments: json.RawMessage(args), Bound: w.bound}); vakerr.CodeOf(err) != vakerr.InvalidArguments {
			t.Errorf("%s: %v", args, err)
		}
	}
	for i := range skillFiles + 1 {
		w.put("skills/pdf/many/"+strings.Repeat("f", i+1), "")
	}
	if got := w.text("skill", `{"name":"pdf"}`); strings.Count(got, "\n- skills/") != skillFiles || !strings.Contains(got, "\n- …\n") {
		t.Errorf("got %s", got)
	}
}

// V177: a search loads what it found. V182: it says how many names are new and flags a search that was made before.
func TestFindTools(t *testing.T) {
	w := newWorld(t)
	w.bound.Hits = []op.Found{
		{Name: "weather", Summary: "Tells the weather."},
		{Name: "clock", Summary: "Tells the time.", Known: true},
		{Name: "gh_issue", Server: "gh", Tool: "issue", Summary: "Opens an issue.", Schema: json.RawMessage(`{"type":"object"}`)},
	}
	r, err := w.call(t.Context(), "find_tools", `{"query":"Weather now"}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"weather", "gh_issue"}, r.Promote); diff != "" {
		t.Error(diff)
	}
	want := `3 tools match; 2 new, loaded now.

weather (new): Tells the weather.
Call it by its name.

clock: Tells the time.
Call it by its name.

gh_issue (new): Opens an issue.
Call mcp with {"action":"call","server":"gh","tool":"issue","arguments":{}}
Schema of arguments: {"type":"object"}`
	if diff := cmp.Diff(want, textOf(t, r)); diff != "" {
		t.Error(diff)
	}
	for i := range w.bound.Hits {
		w.bound.Hits[i].Known = true
	}
	r, err = w.call(t.Context(), "find_tools", `{"query":"Weather now","limit":2}`)
	if err != nil || len(r.Promote) != 0 {
		t.Fatalf("%v, %v", r.Promote, err)
	}
	if got := textOf(t, r); !strings.HasPrefix(got, "2 tools match; none is new.") || !strings.Contains(got, "made this search before") {
		t.Errorf("got %s", got)
	}
	w.bound.Hits = nil
	if got := w.text("find_tools", `{"query":"other"}`); !strings.HasPrefix(got, "No tool matches.") || strings.Contains(got, "before") {
		t.Errorf("got %s", got)
	}
	w.refused("find_tools", `{"query":"  "}`, vakerr.InvalidArguments)
}

// fakeServers is a pool that counts what starts servers.
type fakeServers struct {
	catalog []capability.ObservedTool
	answer  string
	err     error

	lists int
	calls []string
}

func (s *fakeServers) List(context.Context, op.Call, string) ([]capability.ObservedTool, error) {
	s.lists++
	return s.catalog, s.err
}

func (s *fakeServers) Call(_ context.Context, _ op.Call, server, tool string, arguments json.RawMessage) (json.RawMessage, error) {
	s.calls = append(s.calls, server+"/"+tool+" "+string(arguments))
	return json.RawMessage(s.answer), s.err
}

func (s *fakeServers) Request(_ context.Context, _ op.Call, server, method string, params json.RawMessage) (json.RawMessage, error) {
	s.calls = append(s.calls, server+" "+method+" "+string(params))
	return json.RawMessage(s.answer), s.err
}

func serverOf(name string, serves capability.Domains, tools ...capability.ObservedTool) capability.Declaration {
	s := &capability.Server{Transport: capability.TransportStdio, Command: "x"}
	if tools != nil {
		s.Observation = &capability.Observation{Catalog: tools}
	}
	return capability.Declaration{ID: capability.ID{Kind: capability.KindMCP, Name: name}, Serves: serves, Config: s}
}

func toolOf(name string) capability.ObservedTool {
	return capability.ObservedTool{
		Name: name, Description: strings.Repeat("word ", 40),
		InputSchema: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`),
	}
}

// A list of any size is bounded: the schemas go first, then the descriptions, then the tools at the end; what is left out can
// be asked for.
func TestBrokerListsAreBounded(t *testing.T) {
	for _, n := range []int{3, 150, 900, 5000} {
		w := newWorld(t, serverOf("gh", nil))
		for i := range n {
			w.servers.catalog = append(w.servers.catalog, toolOf(fmt.Sprintf("tool_%04d", i)))
		}
		w.servers.catalog[1].InputSchema = json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", 40<<10) + `"}`)
		ask := func(tool string) (l list, size int) {
			t.Helper()
			text := w.text("mcp", `{"action":"list","server":"gh","tool":"`+tool+`"}`)
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			return l, len(text)
		}
		all, size := ask("")
		if described := all.Tools[0].Description != ""; described != (n <= 150) {
			t.Errorf("%d tools: described %v", n, described)
		}
		if size > maxList+1000 || size < maxList/2 && len(all.Tools) < n {
			t.Errorf("%d tools: %d bytes, %d tools", n, size, len(all.Tools))
		}
		if cut := len(all.Tools) < n; cut != (n == 5000) || cut && !strings.Contains(all.Note, "of 5000 tools") || all.Note == "" {
			t.Errorf("%d tools: %d are shown: %s", n, len(all.Tools), all.Note)
		}
		if one, size := ask("tool_0001"); len(one.Tools) != 1 || size < 40<<10 || one.Note != "" {
			t.Errorf("a tool by its name: %d bytes, %d tools, %s", size, len(one.Tools), one.Note)
		}
		if some, _ := ask("*_000[02]"); len(some.Tools) != 2 || len(some.Tools[1].InputSchema) == 0 {
			t.Errorf("tools by a glob: %+v", some)
		}
		if none, _ := ask("nothing*"); len(none.Tools) != 0 || none.Note == "" {
			t.Errorf("no tool: %+v", none)
		}
		w.refused("mcp", `{"action":"list","server":"gh","tool":"[a"}`, vakerr.InvalidArguments)
	}
}

// An answer of find_tools is bounded, too.
func TestFindToolsIsBounded(t *testing.T) {
	w := newWorld(t)
	for i := range findMost {
		w.bound.Hits = append(w.bound.Hits, op.Found{
			Name: fmt.Sprint("gh__", i), Server: "gh", Tool: fmt.Sprint(i), Schema: json.RawMessage(`{"d":"` + strings.Repeat("x", 3<<10) + `"}`),
		})
	}
	got := w.text("find_tools", `{"query":"all of them","limit":20}`)
	if len(got) > findSchemas+8<<10 || strings.Count(got, "xxx\"}") != 5 || strings.Count(got, "left out") != findMost-5 {
		t.Errorf("%d bytes, %d schemas", len(got), strings.Count(got, "xxx\"}"))
	}
}

// V61: list without a server names them and starts nothing.
func TestBrokerLists(t *testing.T) {
	w := newWorld(t, serverOf("gh", nil), serverOf("db", nil, toolOf("query")))
	w.servers.catalog = []capability.ObservedTool{toolOf("close"), toolOf("open"), toolOf("secret")}
	w.bound.Denied = map[string]bool{"gh/secret": true}
	if got := w.text("mcp", `{"action":"list"}`); got != "db\ngh" || w.servers.lists != 0 {
		t.Errorf("%q after %d lists", got, w.servers.lists)
	}
	var answer struct {
		Server string
		Tools  []listed
	}
	if err := json.Unmarshal([]byte(w.text("mcp", `{"action":"list","server":"gh"}`)), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Tools) != 2 || answer.Tools[1].Name != "open" || w.servers.lists != 1 {
		t.Fatalf("got %+v", answer)
	}
	if !json.Valid(answer.Tools[0].InputSchema) || !strings.Contains(string(answer.Tools[0].InputSchema), `"required":["n"]`) {
		t.Errorf("schema %s", answer.Tools[0].InputSchema)
	}
	// V66
	if n := len([]rune(answer.Tools[0].Description)); n > 90 || n < 80 || !strings.HasSuffix(answer.Tools[0].Description, "…") {
		t.Errorf("%d characters: %q", n, answer.Tools[0].Description)
	}
	w.servers.err = vakerr.New(vakerr.ServerBackingOff, "waits")
	w.refused("mcp", `{"action":"list","server":"gh"}`, vakerr.ServerBackingOff)
}

// V62: unknown actions, servers and tools are error values, and the latter two name what exists.
func TestBrokerUnknowns(t *testing.T) {
	w := newWorld(t, serverOf("gh", nil), serverOf("db", nil, toolOf("query")))
	w.servers.catalog = []capability.ObservedTool{toolOf("open"), toolOf("close")}
	w.bound.Denied = map[string]bool{"gh/close": true}
	w.refused("mcp", `{"action":"restart"}`, vakerr.UnknownAction)
	for _, args := range []string{`{"action":"call","server":"hub","tool":"x"}`, `{"action":"list","server":"hub"}`} {
		if e := w.refused("mcp", args, vakerr.UnknownServer); !strings.Contains(e.Remedy, "db, gh") {
			t.Errorf("remedy %q", e.Remedy)
		}
	}
	if w.servers.lists != 0 {
		t.Error("an unknown server was asked")
	}
	for _, tool := range []string{"none", "close"} {
		e := w.refused("mcp", `{"action":"call","server":"gh","tool":"`+tool+`"}`, vakerr.UnknownTool)
		if !strings.Contains(e.Remedy, "open") || strings.Contains(e.Remedy, "close") {
			t.Errorf("remedy %q", e.Remedy)
		}
	}
	w.refused("mcp", `{"action":"call","tool":"x"}`, vakerr.InvalidArguments)
	w.refused("mcp", `{"action":"call","server":"gh"}`, vakerr.InvalidArguments)
	if len(w.servers.calls) != 0 {
		t.Errorf("calls went out: %v", w.servers.calls)
	}
}

// V63: the arguments for a tool that nobody knew before are checked before the call is sent; those for a known one the
// dispatcher has checked.
func TestBrokerCalls(t *testing.T) {
	w := newWorld(t, serverOf("db", nil, toolOf("query")), serverOf("gh", nil))
	w.servers.answer = `{"content":[],"isError":true,"_meta":{"x":1.50}}`
	w.servers.catalog = []capability.ObservedTool{toolOf("open")}
	e := w.refused("mcp", `{"action":"call","server":"gh","tool":"open","arguments":{"n":"one"}}`, vakerr.InvalidArguments)
	if !strings.Contains(e.Reason, "gh/open") || !strings.Contains(e.Reason, "n: must be of type integer") {
		t.Errorf("reason %q", e.Reason)
	}
	w.refused("mcp", `{"action":"call","server":"gh","tool":"open"}`, vakerr.InvalidArguments)
	if len(w.servers.calls) != 0 {
		t.Fatalf("calls went out: %v", w.servers.calls)
	}
	w.servers.lists = 0
	r, err := w.call(t.Context(), "mcp", `{"action":"call","server":"db","tool":"query","arguments":{"n": 1.0}}`)
	if err != nil || string(r.Content) != w.servers.answer || !r.IsError {
		t.Fatalf("%s, %v", r.Content, err)
	}
	if diff := cmp.Diff([]string{`db/query {"n": 1.0}`}, w.servers.calls); diff != "" {
		t.Error(diff)
	}
	if w.servers.lists != 0 {
		t.Error("a tool of the bound catalog was looked up again")
	}
	// A server that was never asked has no catalog to look in; the call is the demand that asks it.
	w.servers.catalog = []capability.ObservedTool{toolOf("open")}
	if _, err := w.call(t.Context(), "mcp", `{"action":"call","server":"gh","tool":"open","arguments":{"n":1}}`); err != nil || w.servers.lists != 1 {
		t.Errorf("%v after %d lists", err, w.servers.lists)
	}
	// What the tool declares of itself is only known now, so it is judged before anything is sent.
	w.forbidden, w.servers.calls = vakerr.New(vakerr.ApprovalRequired, "it destroys"), nil
	w.refused("mcp", `{"action":"call","server":"gh","tool":"open","arguments":{"n":1}}`, vakerr.ApprovalRequired)
	if w.forbidden = nil; len(w.servers.calls) > 0 {
		t.Errorf("calls went out: %v", w.servers.calls)
	}
	w.servers.answer = `"text"`
	w.refused("mcp", `{"action":"call","server":"db","tool":"query","arguments":{"n":1}}`, vakerr.OutputInvalid)
	w.servers.answer, w.servers.err = "", vakerr.New(vakerr.ServerDied, "died")
	w.refused("mcp", `{"action":"call","server":"db","tool":"query","arguments":{"n":1}}`, vakerr.ServerDied)
}

// V32: retrieval is classified by the server's declared domains, else by the broker's own; listing is none.
func TestBrokerClassifiesRetrieval(t *testing.T) {
	w := newWorld(t,
		serverOf("silent", nil, toolOf("t")), serverOf("news", capability.ParseDomains("web", "documents"), toolOf("t")),
		serverOf("db", capability.ParseDomains("memory"), toolOf("t")))
	w.servers.answer, w.servers.catalog = `{"content":[]}`, []capability.ObservedTool{toolOf("t")}
	for server, want := range map[string]capability.Domains{
		"silent": {capability.LiveData, capability.Web}, "news": {capability.Documents, capability.Web}, "db": nil,
	} {
		r, err := w.call(t.Context(), "mcp", `{"action":"call","server":"`+server+`","tool":"t","arguments":{"n":1}}`)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Retrieved); diff != "" {
			t.Errorf("%s: %s", server, diff)
		}
		if r, err = w.call(t.Context(), "mcp", `{"action":"list","server":"`+server+`"}`); err != nil || r.Retrieved != nil {
			t.Errorf("listing %s retrieved %v, %v", server, r.Retrieved, err)
		}
	}
}

func TestSessionSearch(t *testing.T) {
	w := newWorld(t)
	if got := w.text("session_search", `{"query":"x"}`); got != "[nothing matches]" || w.history.limit != historyDefault {
		t.Errorf("%q, limit %d", got, w.history.limit)
	}
	w.history.hits = []Recollection{{"s1", 7, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "call", "a\nb " + strings.Repeat("c", 1000)}}
	got := w.text("session_search", `{"query":"x","limit":50}`)
	if !strings.HasPrefix(got, "s1 #7 2026-01-02T03:04:05Z call: a b ccc") || len(got) > 600 || w.history.limit != 50 {
		t.Errorf("%q, limit %d", got, w.history.limit)
	}
	w.refused("session_search", `{"query":" "}`, vakerr.InvalidArguments)
	w.refused("session_search", `{"query":"x","limit":51}`, vakerr.InvalidArguments)
}
