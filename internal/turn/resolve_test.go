package turn

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func ids(t Target) string {
	var all []string
	for _, id := range t.IDs {
		all = append(all, id.String())
	}
	return strings.Join(all, " ")
}

// V99, V121, V143: every way to address an admitted thing, what the gate has to check for it, and what was repaired.
func TestResolve(t *testing.T) {
	a := world(t).server("my__odd", capability.Server{}, "do").server("my", capability.Server{}, "odd__do2").admit()
	for _, tc := range []struct{ name, arguments, ids, result, repaired string }{
		{"read", `{"path":"a"}`, "tool:read", `{"path":"a"}`, ""},
		{"read", ``, "tool:read", `{}`, ""},
		{"read", `null`, "tool:read", `{}`, ""},
		{"mcp", `{"action":"list"}`, "tool:mcp", `{"action":"list"}`, ""},
		{"mcp", `{"action":"list","server":"git"}`, "tool:mcp mcp:git", `{"action":"list","server":"git"}`, ""},
		{"mcp", `{"action":"call","server":"git","tool":"commit"}`, "tool:mcp mcp:git", `{"action":"call","server":"git","tool":"commit"}`, ""},
		{"mcp", `{"action":"call","server":"pdf","tool":"never-listed"}`, "tool:mcp mcp:pdf", `{"action":"call","server":"pdf","tool":"never-listed"}`, ""},
		{"commit", `{"m":1}`, "tool:mcp mcp:git", `{"action":"call","arguments":{"m":1},"server":"git","tool":"commit"}`, "commit"},
		{"git__commit", ``, "tool:mcp mcp:git", `{"action":"call","arguments":{},"server":"git","tool":"commit"}`, "git__commit"},
		{"mcp__git__commit", ``, "tool:mcp mcp:git", `{"action":"call","arguments":{},"server":"git","tool":"commit"}`, "mcp__git__commit"},
		{"git/commit", `{"a":1,"A":"<"}`, "tool:mcp mcp:git", `{"action":"call","arguments":{"a":1,"A":"<"},"server":"git","tool":"commit"}`, "git/commit"},
		{"git/commit", ``, "tool:mcp mcp:git", `{"action":"call","arguments":{},"server":"git","tool":"commit"}`, "git/commit"},
		{"pdf/fill", ``, "tool:mcp mcp:pdf", `{"action":"call","arguments":{},"server":"pdf","tool":"fill"}`, "pdf/fill"},
		{"my__odd__do", ``, "tool:mcp mcp:my__odd", `{"action":"call","arguments":{},"server":"my__odd","tool":"do"}`, "my__odd__do"},
		{ExposedName("my", "odd__do2"), ``, "tool:mcp mcp:my", `{"action":"call","arguments":{},"server":"my","tool":"odd__do2"}`, ExposedName("my", "odd__do2")},
		{"skill", `{"name":"pdf"}`, "tool:skill skill:pdf", `{"name":"pdf"}`, ""},
	} {
		target, err := Resolve(a, tc.name, json.RawMessage(tc.arguments), nil)
		if err != nil {
			t.Errorf("Resolve(%s, %s): %v", tc.name, tc.arguments, err)
			continue
		}
		if ids(target) != tc.ids || string(target.Arguments) != tc.result || target.Repaired != tc.repaired {
			t.Errorf("Resolve(%s, %s) = %s %s repaired %q, want %s %s repaired %q", tc.name, tc.arguments,
				ids(target), target.Arguments, target.Repaired, tc.ids, tc.result, tc.repaired)
		}
	}
}

// V11, V12, V62, V123, V125, V143, V187: what cannot be resolved is an error value with a code and a remedy, and hidden
// names are not told (C10).
func TestResolveRefusals(t *testing.T) {
	w := world(t).skill("by-hand", "Only for the user.").
		server("hidden", capability.Server{}, "hidden_tool").server("off", capability.Server{}, "off_tool").
		server("part", capability.Server{DisabledTools: []string{"drop"}}, "drop", "keep").
		tool("secret", capability.Tool{ReadOnly: true}).tool("blocked", capability.Tool{ReadOnly: true})
	for _, d := range w.declared {
		if s, ok := d.Config.(*capability.Skill); ok && d.ID.Name == "by-hand" {
			s.DisableModelInvocation = true
		}
	}
	a := w.admit(
		channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"secret"}}, MCP: policy.Filter{Deny: []string{"hidden/*"}}}),
		permissions(t, policy.PermissionRules{Mode: "full-access", Deny: []string{"blocked"}}),
		revoke("tool:write", "mcp:off", "skill:notes"))
	removed := func(id capability.ID) (capability.Epoch, bool) {
		return 5, id.Name == "old" || id.Name == "secret" && id.Kind == capability.KindTool
	}
	for _, tc := range []struct {
		name, arguments string
		code            vakerr.Code
		says            string
	}{
		{"raed", ``, vakerr.UnknownTool, "read"},
		{"RAED", ``, vakerr.UnknownTool, "read"},
		{"zzzzzzzz", ``, vakerr.UnknownTool, "search for one"},
		{"secret", ``, vakerr.UnknownTool, ""},
		{"write", ``, vakerr.CapabilityRevoked, "withdrawn"},
		{"blocked", ``, vakerr.PermissionDenied, "rule blocked"},
		{"old", ``, vakerr.CapabilityRemoved, "epoch 5"},
		{"pdf", ``, vakerr.WrongKind, `skill({"name":"pdf"})`},
		{"git", ``, vakerr.WrongKind, `"server":"git"`},
		{"ship", ``, vakerr.WrongKind, "/ship"},
		{"pre-tool-use/./guard.sh", ``, vakerr.WrongKind, "hook"},
		{"notes", ``, vakerr.CapabilityRevoked, "skill:notes"},
		{"hidden", ``, vakerr.UnknownTool, ""},
		{"hidden_tool", ``, vakerr.UnknownTool, ""},
		{"hidden__hidden_tool", ``, vakerr.UnknownTool, ""},
		{"hidden/hidden_tool", ``, vakerr.UnknownTool, ""},
		{"off__off_tool", ``, vakerr.CapabilityRevoked, "mcp:off"},
		{"mcp", `{"action":"call","server":"hidden","tool":"hidden_tool"}`, vakerr.UnknownServer, "git, part, pdf"},
		{"mcp", `{"action":"call","server":"off","tool":"off_tool"}`, vakerr.CapabilityRevoked, "mcp:off"},
		{"mcp", `{"action":"call","server":"old","tool":"x"}`, vakerr.CapabilityRemoved, "epoch 5"},
		{"mcp", `{"action":"list","server":"none"}`, vakerr.UnknownServer, "git, part, pdf"},
		{"mcp", `{"action":"call","server":"git","tool":"comit"}`, vakerr.UnknownTool, "commit"},
		{"mcp", `{"action":"call","server":"part","tool":"drop"}`, vakerr.UnknownTool, "its tools are: keep"},
		{"part__drop", ``, vakerr.UnknownTool, "its tools are: keep"},
		{"mcp", `{"action":"call","server":"git"}`, vakerr.InvalidArguments, "action"},
		{"mcp", `{"action":"dance"}`, vakerr.UnknownAction, "list"},
		{"mcp", `{}`, vakerr.UnknownAction, "list"},
		{"mcp", `{"action":5}`, vakerr.InvalidArguments, "action"},
		{"mcp", `{"action":"call","server":"git","tool":"commit","arguments":[1]}`, vakerr.InvalidArguments, ""},
		{"skill", `{}`, vakerr.InvalidArguments, "pdf"},
		{"skill", `{"name":"none"}`, vakerr.CapabilityNotAdmitted, "pdf"},
		{"skill", `{"name":"notes"}`, vakerr.CapabilityRevoked, "withdrawn"},
		{"skill", `{"name":"by-hand"}`, vakerr.CapabilityNotAdmitted, "/skill:by-hand"},
		{"read", `[1]`, vakerr.InvalidArguments, ""},
		{"read", `{"a":`, vakerr.InvalidArguments, ""},
		{"read", `{"path":"a","Path":"b"}`, vakerr.InvalidArguments, "twice"},
		{"mcp", `{"action":"call","server":"git","server":"part","tool":"x"}`, vakerr.InvalidArguments, "twice"},
		{"", ``, vakerr.UnknownTool, ""},
	} {
		_, err := Resolve(a, tc.name, json.RawMessage(tc.arguments), removed)
		if err == nil {
			t.Errorf("Resolve(%s, %s) resolved", tc.name, tc.arguments)
			continue
		}
		e := vakerr.From(err)
		text := e.Reason + " | " + e.Remedy
		if e.Code != tc.code || e.Remedy == "" || !strings.Contains(text, tc.says) {
			t.Errorf("Resolve(%s, %s) = %s: %s; want %s saying %q", tc.name, tc.arguments, e.Code, text, tc.code, tc.says)
		}
		for _, hidden := range []string{"secret", "hidden"} {
			if !strings.Contains(tc.name+tc.arguments, hidden) && strings.Contains(text, hidden) {
				t.Errorf("Resolve(%s, %s) tells of a hidden name: %s", tc.name, tc.arguments, text)
			}
		}
	}
}

// The broker runs for an MCP client that does not see it, and not where policy took it away.
func TestRepairNeedsTheBroker(t *testing.T) {
	w := newWorkshop(t).tool("mcp", capability.Tool{HostOnly: true}).server("git", capability.Server{}, "commit")
	front := func(in *AdmitInput) { in.MCPFront = true }
	if _, err := Resolve(w.admit(front), "git__commit", nil, nil); err != nil {
		t.Errorf("on the MCP front: %v", err)
	}
	for name, edit := range map[string]func(*AdmitInput){
		"channel": channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"mcp"}}}),
		"revoked": revoke("tool:mcp"),
	} {
		if _, err := Resolve(w.admit(front, edit), "git__commit", nil, nil); vakerr.CodeOf(err) != vakerr.UnknownTool {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// V125: no name and no arguments make Resolve panic, and what resolves names admitted ids only.
func TestResolveNeverPanics(t *testing.T) {
	a := world(t).admit(revoke("mcp:git"))
	piece := rapid.SampledFrom([]string{"git", "pdf", "__", "/", "mcp", "commit", "skill", "", "\x00", "é", "read"})
	argument := rapid.SampledFrom([]string{
		"", "null", "{}", "[", `{"action":"call","server":"git","tool":"commit"}`,
		`{"action":"call","server":"pdf","tool":"__"}`, `{"name":"pdf"}`, `{"name":null}`, `"x"`,
	})
	rapid.Check(t, func(t *rapid.T) {
		name := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "name"), "")
		target, err := Resolve(a, name, json.RawMessage(argument.Draw(t, "arguments")), nil)
		if err != nil {
			return
		}
		for _, id := range target.IDs {
			if _, ok := a.Get(id); !ok {
				t.Fatalf("%q resolved to %s, which is not admitted", name, id)
			}
		}
		if !json.Valid(target.Arguments) {
			t.Fatalf("%q resolved with arguments %q", name, target.Arguments)
		}
	})
}

func TestTargetRequests(t *testing.T) {
	a := newWorkshop(t).core().tool("write", capability.Tool{Destructive: true}).skill("pdf", "x").
		server("git", capability.Server{}, "status").server("cold", capability.Server{}).admit()
	for _, tc := range []struct {
		name, arguments string
		want            []policy.Request // their Arguments are those of the last column
		judged          string
	}{
		{"write", `{"path":"a/b","url":"u"}`, []policy.Request{
			{Tool: "write", Subject: "a/b", Kind: policy.SubjectPath, Destructive: true},
			{Tool: "write", Subject: "u", Kind: policy.SubjectURL, Destructive: true},
		}, `{"path":"a/b","url":"u"}`},
		{"skill", `{"name":"pdf"}`, []policy.Request{{Tool: "skill", Subject: "pdf", Kind: policy.SubjectName, ReadOnly: true}}, `{"name":"pdf"}`},
		{"git__status", `{"a":1}`, []policy.Request{{Tool: "mcp", Server: "git", ServerTool: "status", ReadOnly: true}}, `{"a":1}`},
		{"cold__x", ``, []policy.Request{{Tool: "mcp", Server: "cold", ServerTool: "x"}}, `{}`},
		{"mcp", `{"action":"list"}`, []policy.Request{{Tool: "mcp", ReadOnly: true}}, `{"action":"list"}`},
	} {
		target, err := Resolve(a, tc.name, json.RawMessage(tc.arguments), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range tc.want {
			tc.want[i].Arguments = tc.judged
		}
		if diff := cmp.Diff(tc.want, target.Requests()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzResolve(f *testing.F) {
	a := world(f).admit()
	f.Add("mcp", []byte(`{"action":"call","server":"git","tool":"commit","arguments":{}}`))
	f.Add("git__commit", []byte(`{}`))
	f.Fuzz(func(t *testing.T, name string, arguments []byte) {
		if target, err := Resolve(a, name, arguments, nil); err == nil && target.Tool == nil {
			t.Fatal("resolved to nothing")
		}
	})
}
