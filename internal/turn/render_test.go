package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func small(t testing.TB) (*Admitted, Surface) {
	w := newWorkshop(t).
		tool("read", capability.Tool{ReadOnly: true, AlwaysLoaded: true, Description: "Reads <a> file.", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}, "fs").
		tool("fetch", capability.Tool{Description: "Fetches."}, "web").
		server("git", capability.Server{}, "commit")
	w.declared[len(w.declared)-1].Config.(*capability.Server).Observation.Catalog[0].Definition = json.RawMessage(`{"name":"commit","title":"Commit","_meta":{"x":1.50}}`)
	a := w.admit()
	s, _ := NewSurface(a, SurfaceInput{Slice: true, Reading: &Reading{}}).Promote(a, "git__commit")
	return a, s
}

// V121, V177, V178: a surface in each provider's form. A found tool is a full definition in all of them.
func TestRender(t *testing.T) {
	a, s := small(t)
	for format, want := range map[Format]string{
		FormatAnthropic: `[{"name":"read","description":"Reads <a> file.","input_schema":{"type":"object","properties":{}}},` +
			`{"name":"git__commit","description":"Does commit. More.","input_schema":{"properties":{},"type":"object"}},` +
			`{"name":"fetch","description":"Fetches.","input_schema":{"type":"object"},"defer_loading":true}]`,
		FormatOpenAI: `[{"type":"function","function":{"name":"read","description":"Reads <a> file.","parameters":{"type":"object","properties":{}}}},` +
			`{"type":"function","function":{"name":"git__commit","description":"Does commit. More.","parameters":{"properties":{},"type":"object"}}}]`,
		FormatMCP: `[{"name":"read","description":"Reads <a> file.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false}},` +
			`{"_meta":{"x":1.50},"inputSchema":{"properties":{},"type":"object"},"name":"git__commit","title":"Commit"}]`,
	} {
		got, err := Render(format, a, s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	if _, err := Render("toml", a, s); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("an unknown format: %v", err)
	}
	if got, err := Render(FormatMCP, a, Surface{}); err != nil || string(got) != "[]" {
		t.Errorf("an empty surface: %s, %v", got, err)
	}
}

// V178: a provider that defers refuses a request without a loaded tool.
func TestRenderLoadsOne(t *testing.T) {
	a := newWorkshop(t).tool("a", capability.Tool{}, "web").tool("b", capability.Tool{}, "web").admit()
	got, err := Render(FormatAnthropic, a, NewSurface(a, SurfaceInput{Slice: true, Reading: &Reading{}}))
	if err != nil || strings.Count(string(got), "defer_loading") != 1 {
		t.Errorf("%s, %v", got, err)
	}
}

// V11, V12, V122: what is rendered are tools of the set only: no skill, hook, command, or anything not admitted.
func TestRenderOnlyAdmittedTools(t *testing.T) {
	a := world(t).admit(revoke("tool:read"))
	got, err := Render(FormatOpenAI, a, Surface{Loaded: []string{"write", "read", "pdf", "notes", "ship", "pre-tool-use/./guard.sh", "unheard-of"}})
	if err != nil {
		t.Fatal(err)
	}
	var functions []struct{ Function struct{ Name string } }
	if err := json.Unmarshal(got, &functions); err != nil {
		t.Fatal(err)
	}
	if len(functions) != 1 || functions[0].Function.Name != "write" {
		t.Errorf("rendered %s", got)
	}
}

// V185: the skill tool names exactly the admitted skills a model may load and takes nothing else.
func TestSkillTool(t *testing.T) {
	w := world(t)
	got := string(w.admit().Definition("skill").InputSchema)
	want := `{"additionalProperties":false,"properties":{"name":{"description":"The skill to load.","enum":["notes","pdf"],"type":"string"}},"required":["name"],"type":"object"}`
	if got != want {
		t.Errorf("schema: %s", got)
	}
	if got := string(w.admit(revoke("skill:notes")).Definition("skill").InputSchema); strings.Contains(got, "notes") {
		t.Errorf("a revoked skill is offered: %s", got)
	}
	none := newWorkshop(t).core().admit()
	if s := NewSurface(none, SurfaceInput{}); none.Definition("skill") != nil || strings.Contains(strings.Join(s.Loaded, " "), "skill") {
		t.Error("a skill tool without skills is offered")
	}
}

// V70, V184: sections of the prompt. No body of a skill is in them.
func TestSections(t *testing.T) {
	w := world(t)
	for _, d := range w.declared {
		if s, ok := d.Config.(*capability.Skill); ok && d.ID.Name == "notes" {
			s.Description = "Takes\n notes."
		}
	}
	a := w.admit()
	wantServers := "MCP servers. Call their tools with mcp; one without tools has not been used yet, list it first:\n- git: commit, status\n- pdf"
	if diff := cmp.Diff(wantServers, ServerSection(a)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	wantSkills := "Skills. Load one with skill before you do what it describes:\n- notes: Takes notes.\n- pdf: Fills forms."
	if diff := cmp.Diff(wantSkills, SkillSection(a)); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	empty := newWorkshop(t).admit()
	if ServerSection(empty)+SkillSection(empty) != "" {
		t.Error("empty sections say something")
	}
}

// V49: what a server failed with is no name in a prompt or an index.
func TestFailureIsNoName(t *testing.T) {
	w := newWorkshop(t).core().server("down", capability.Server{})
	w.declared[len(w.declared)-1].Config.(*capability.Server).Observation = &capability.Observation{Failure: "error: cannot start"}
	a := w.admit()
	if len(a.Exposed())+len(a.ToolIndex)+len(a.ServerTools("down")) != 0 || strings.Contains(ServerSection(a), "error") {
		t.Errorf("a failure became a name: %v %v %s", a.Exposed(), a.ToolIndex, ServerSection(a))
	}
	if _, err := Resolve(a, "mcp", json.RawMessage(`{"action":"call","server":"down","tool":"x"}`), nil); err != nil {
		t.Errorf("a server that failed cannot be called again: %v", err)
	}
}

// V87, V96: what changed, in words; hooks are not a model's business.
func TestDeltaText(t *testing.T) {
	id := func(k capability.Kind, n string) capability.ID { return capability.ID{Kind: k, Name: n} }
	d := capability.Delta{
		Added:   []capability.ID{id(capability.KindTool, "a"), id(capability.KindHook, "stop/x")},
		Updated: []capability.ID{id(capability.KindMCP, "git")},
		Removed: []capability.ID{id(capability.KindSkill, "s")},
	}
	want := "Since the last turn your capabilities have changed:\n- new: tool:a\n- changed: mcp:git\n- no longer there: skill:s"
	if got := DeltaText(d); got != want {
		t.Errorf("text:\n%s", got)
	}
	if DeltaText(capability.Delta{Removed: d.Added[1:]}) != "" {
		t.Error("a change of hooks is told to the model")
	}
	var many capability.Delta
	for range 60 {
		many.Added = append(many.Added, id(capability.KindTool, "t"))
	}
	if got := DeltaText(many); !strings.HasSuffix(got, "tool:t and 10 more") {
		t.Errorf("text: %s", got)
	}
}

// V91, V92: the record of what a turn saw, whose digest does not know the epoch.
func TestInterface(t *testing.T) {
	w := newWorkshop(t).tool("read", capability.Tool{ReadOnly: true}, "fs").tool("write", capability.Tool{}, "fs").skill("pdf", "x")
	a := w.admit(permissions(t, policy.PermissionRules{Mode: "full-access", Deny: []string{"write"}}))
	s := NewSurface(a, SurfaceInput{Slice: true, Reading: &Reading{}})
	i := NewInterface(a, s, "p", json.RawMessage(`[{"b":1,"a":2}]`))
	encoded, digest, err := i.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"blocked":[{"id":"tool:write","reason":"the rule write says deny","remedy":"if it should be allowed, change the rule write where it stands",` +
		`"state":"blocked"}],"capabilities":["tool:read","skill:pdf"],"deferred":["read"],"excluded":["tool:write"],"loaded":[],` +
		`"schemas":[{"a":2,"b":1}],"system_prompt":"p","tool_domains":{"read":["filesystem"]},"tool_index":{}}`
	if diff := cmp.Diff(want, string(encoded)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}

	later := w.admit(permissions(t, policy.PermissionRules{Mode: "full-access", Deny: []string{"write"}}),
		func(in *AdmitInput) {
			in.View = &View{Snapshot: capability.Snapshot{Epoch: 99, Set: in.View.Snapshot.Set}}
		})
	if _, again, _ := NewInterface(later, s, "p", i.Schemas).Encode(); again != digest {
		t.Error("V92: the same interface in another epoch has another digest")
	}
	i.SystemPrompt = "q"
	if _, other, _ := i.Encode(); other == digest {
		t.Error("another prompt has the same digest")
	}
}

// V154: each capability that permissions block has one entry in the record of a turn, with its reason; what a channel hides
// has none, and what is allowed has none.
func TestBlockedAreRecorded(t *testing.T) {
	a := world(t).admit(
		permissions(t, policy.PermissionRules{Mode: "full-access", Deny: []string{"write", "mcp(git/*)", "skill(pdf)", "mcp__pdf"}}),
		channel(t, policy.ChannelRules{Skills: policy.Filter{Deny: []string{"pdf"}}}),
		revoke("skill:notes"))
	got := map[string]int{}
	for _, s := range NewInterface(a, NewSurface(a, SurfaceInput{}), "", json.RawMessage(`[]`)).Blocked {
		got[s.ID.String()]++
		if s.Reason == "" || s.Remedy == "" {
			t.Errorf("%+v does not say why", s)
		}
	}
	if diff := cmp.Diff(map[string]int{"tool:write": 1, "mcp:git": 1, "mcp:pdf": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// V184: a list says when to use a skill, too, within the bound that its authors write for.
func TestSkillsAreListedShort(t *testing.T) {
	s := &capability.Skill{Description: "Does\n it.", WhenToUse: "When asked."}
	if got := listed(s); got != "Does it. When asked." {
		t.Errorf("listed as %q", got)
	}
	s.WhenToUse = strings.Repeat("ä ", 2000)
	if got := []rune(listed(s)); len(got) != maxSkillText || got[maxSkillText-1] != '…' {
		t.Errorf("%d characters are listed", len(got))
	}
}
