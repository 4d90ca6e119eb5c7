package turn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// world has one of everything.
func world(t testing.TB) *workshop {
	return newWorkshop(t).core().
		tool("read", capability.Tool{ReadOnly: true, AlwaysLoaded: true}, "fs").
		tool("write", capability.Tool{}, "fs").
		tool("plan", capability.Tool{ReadOnly: true, HostOnly: true}).
		skill("pdf", "Fills forms.").skill("notes", "Takes notes.").
		server("git", capability.Server{}, "commit", "status").
		server("pdf", capability.Server{}).
		hook("pre-tool-use", "./guard.sh", "").
		command("ship")
}

func allIDs(a *Admitted) []string {
	var all []string
	for _, list := range [][]*capability.Capability{a.Tools, a.Skills, a.Servers, a.Hooks, a.Commands} {
		for _, c := range list {
			all = append(all, c.ID.String())
		}
	}
	return all
}

func excludedIDs(a *Admitted) map[string]policy.State {
	all := map[string]policy.State{}
	for _, s := range a.Excluded {
		all[s.ID.String()] = s.State
	}
	return all
}

// V14, V132, V137, V138, V141: everything is admitted by one function; each stage takes exactly what it names.
func TestAdmitStages(t *testing.T) {
	everything := []string{
		"tool:find_tools", "tool:mcp", "tool:plan", "tool:read", "tool:skill", "tool:write",
		"skill:notes", "skill:pdf", "mcp:git", "mcp:pdf", "hook:pre-tool-use/./guard.sh", "command:ship",
	}
	full := policy.PermissionRules{Mode: "full-access"}
	deny := func(rule string) func(*AdmitInput) {
		rules := full
		rules.Deny = []string{rule}
		return permissions(t, rules)
	}
	for name, tc := range map[string]struct {
		edits    []func(*AdmitInput)
		excluded map[string]policy.State
	}{
		"nothing narrows": {nil, map[string]policy.State{}},
		"V133 channel, tools": {
			[]func(*AdmitInput){channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"w*"}}})},
			map[string]policy.State{"tool:write": policy.Hidden},
		},
		"V133 channel, skills": {
			[]func(*AdmitInput){channel(t, policy.ChannelRules{Skills: policy.Filter{Allow: []string{"notes"}}})},
			map[string]policy.State{"skill:pdf": policy.Hidden},
		},
		"V133 channel, MCP": {
			[]func(*AdmitInput){channel(t, policy.ChannelRules{MCP: policy.Filter{Deny: []string{"pdf/*"}}})},
			map[string]policy.State{"mcp:pdf": policy.Hidden},
		},
		"V133 channel, hooks": {
			[]func(*AdmitInput){channel(t, policy.ChannelRules{Hooks: policy.Filter{Deny: []string{"pre-tool-use/*"}}})},
			map[string]policy.State{"hook:pre-tool-use/./guard.sh": policy.Hidden},
		},
		"V136 tool globs govern commands": {
			[]func(*AdmitInput){channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"ship"}}})},
			map[string]policy.State{"command:ship": policy.Hidden},
		},
		"V137 V144 reach blocks the tool and only it":  {[]func(*AdmitInput){deny("write")}, map[string]policy.State{"tool:write": policy.Blocked}},
		"V137 V144 by id: the skill, not the server":   {[]func(*AdmitInput){deny("skill(pdf)")}, map[string]policy.State{"skill:pdf": policy.Blocked}},
		"V137 V144 by id: the server, not the skill":   {[]func(*AdmitInput){deny("mcp(pdf/*)")}, map[string]policy.State{"mcp:pdf": policy.Blocked}},
		"V138 revoked since the epoch was published":   {[]func(*AdmitInput){revoke("mcp:pdf", "skill:notes")}, map[string]policy.State{"mcp:pdf": policy.Revoked, "skill:notes": policy.Revoked}},
		"host-only tools stay off the MCP front":       {[]func(*AdmitInput){func(in *AdmitInput) { in.MCPFront = true }}, map[string]policy.State{"tool:plan": policy.Hidden}},
		"V124 a worker keeps what it was given, hooks": {[]func(*AdmitInput){func(in *AdmitInput) { in.Narrow = &Narrowing{Channel: keepOnly(t, []string{"read"}, []string{"pdf"})} }}, hiddenBut(everything, "tool:read", "skill:pdf", "hook:pre-tool-use/./guard.sh")},
	} {
		t.Run(name, func(t *testing.T) {
			a := world(t).admit(tc.edits...)
			if diff := cmp.Diff(tc.excluded, excludedIDs(a)); diff != "" {
				t.Errorf("excluded (-want +got):\n%s", diff)
			}
			var want []string
			for _, id := range everything {
				if _, gone := tc.excluded[id]; !gone {
					want = append(want, id)
				}
			}
			if diff := cmp.Diff(want, allIDs(a)); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
			if a.Epoch != 7 || a.Digest != a.Set.Digest() {
				t.Errorf("epoch %d, digest %s", a.Epoch, a.Digest)
			}
		})
	}
}

// keepOnly shows these tools, skills and, as server/tool, tools of servers. Its hooks are those of no caller.
func keepOnly(t testing.TB, tools, skills []string, mcp ...string) *policy.Channel {
	t.Helper()
	list := func(names []string) policy.Filter { return policy.Filter{Allow: append([]string{}, names...)} }
	c, problems := policy.CompileChannel("worker", policy.ChannelRules{
		Tools: list(tools), Skills: list(skills), MCP: list(mcp), Hooks: list(nil),
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

func hiddenBut(all []string, kept ...string) map[string]policy.State {
	hidden := map[string]policy.State{}
	for _, id := range all {
		hidden[id] = policy.Hidden
	}
	for _, id := range kept {
		delete(hidden, id)
	}
	return hidden
}

// V33, V138: what the set itself has retired is not admitted, with the reason kept.
func TestRetiredIsNotAdmitted(t *testing.T) {
	w := world(t)
	set := w.set(capability.Revocations{toolRead: "audit"})
	a := w.admit(func(in *AdmitInput) { in.View = &View{Snapshot: capability.Snapshot{Epoch: 8, Set: set}} })
	s, ok := a.excluded(toolRead)
	if !ok || s.State != policy.Revoked || s.Reason != "audit" || s.Remedy == "" {
		t.Errorf("standing of a retired tool: %+v", s)
	}
	if _, ok := a.Tool("read"); ok {
		t.Error("a retired tool was admitted")
	}
}

// V124: a worker inherits the bound epoch although the world moved on, and narrows; nothing it does widens.
func TestWorkerInherits(t *testing.T) {
	parent := world(t).admit(channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"plan"}}}))
	worker := parent.Worker(Narrowing{Channel: keepOnly(t, []string{"plan", "read", "write", "mcp"}, nil, "git/*"), ReadOnly: true})
	if got := cmp.Diff([]string{"mcp", "read"}, worker.ToolNames()); got != "" {
		t.Errorf("tools (-want +got):\n%s", got)
	}
	if worker.Epoch != parent.Epoch || worker.Digest != parent.Digest {
		t.Error("the worker left the epoch of its parent")
	}
	current := engine(t, policy.PermissionRules{Mode: "full-access", Allow: []string{"write"}})
	if d := worker.Confine(current).Decide(policy.Request{Tool: "write"}); d.Effect != policy.Deny {
		t.Errorf("a read-only worker may write: %+v", d)
	}
	if parent.Confine(current) != current {
		t.Error("a turn that is not narrowed confines the engine")
	}
	inner := worker.Worker(Narrowing{})
	if diff := cmp.Diff(allIDs(worker), allIDs(inner)); diff != "" {
		t.Errorf("an empty narrowing changed something (-worker +inner):\n%s", diff)
	}
}

// V124: of a server a worker keeps the tools it was given, and what asks its parent's user is out of its reach.
func TestWorkerOfAServer(t *testing.T) {
	parent := world(t).admit(permissions(t, policy.PermissionRules{Mode: "workspace-write", Ask: []string{"write"}}),
		func(in *AdmitInput) { in.Attended = true })
	worker := parent.Worker(Narrowing{Channel: keepOnly(t, []string{"mcp", "write"}, nil, "git/status")})
	if !worker.AllowsServerTool("git", "status") || worker.AllowsServerTool("git", "commit") || worker.ServerTool("git", "commit") != nil {
		t.Error("the worker calls what it was not given, or not what it was")
	}
	if _, ok := parent.Tool("write"); !ok {
		t.Fatal("the parent may not write")
	}
	if s, _ := worker.excluded(capability.ID{Kind: capability.KindTool, Name: "write"}); s.State != policy.Blocked {
		t.Errorf("a tool that needs an approval: %+v", s)
	}
}

// V124, V206: limits only narrow, and there is no join of two: whatever narrows a turn, and a worker's worker, nothing is admitted, called or judged more mildly than before.
func TestWorkersOnlyNarrow(t *testing.T) {
	w := world(t).server("wiki", capability.Server{}, "get", "put")
	pattern := rapid.SampledFrom([]string{"*", "read", "w*", "plan", "mcp", "skill", "git/*", "wiki/get", "*/put", "pdf", "notes"})
	filter := func(t *rapid.T, name string, addresses bool) policy.Filter {
		list := func(name string) []string {
			if !rapid.Bool().Draw(t, name+" is there") {
				return nil
			}
			return slices.DeleteFunc(rapid.SliceOfN(pattern, 0, 3).Draw(t, name), func(p string) bool {
				return strings.Contains(p, "/") != addresses && p != "*"
			})
		}
		f := policy.Filter{Allow: list(name + " allow"), Deny: list(name + " deny")}
		if addresses {
			for _, l := range [][]string{f.Allow, f.Deny} {
				for i, p := range l {
					if p == "*" {
						l[i] = "*/*"
					}
				}
			}
		}
		return f
	}
	rapid.Check(t, func(r *rapid.T) {
		rules := func(name string) policy.ChannelRules {
			return policy.ChannelRules{
				Tools: filter(r, name+" tools", false), Skills: filter(r, name+" skills", false),
				MCP: filter(r, name+" mcp", true), Hooks: filter(r, name+" hooks", false),
			}
		}
		mode := rapid.SampledFrom([]string{"read-only", "workspace-write", "full-access"}).Draw(r, "mode")
		narrowing := func(name string) Narrowing {
			c, problems := policy.CompileChannel(name, rules(name))
			if len(problems) > 0 {
				r.Fatal(problems)
			}
			return Narrowing{Channel: c, ReadOnly: rapid.Bool().Draw(r, name+" read-only")}
		}
		parent := w.admit(channel(t, rules("parent")), permissions(t, policy.PermissionRules{Mode: mode, Ask: []string{"write"}}),
			func(in *AdmitInput) { in.Attended = rapid.Bool().Draw(r, "attended") })
		before := parent
		for _, name := range []string{"worker", "worker's worker"} {
			worker := before.Worker(narrowing(name))
			for _, id := range allIDs(worker) {
				if !slices.Contains(allIDs(before), id) {
					r.Fatalf("the %s admits %s", name, id)
				}
			}
			if len(worker.Hooks) != len(before.Hooks) {
				r.Fatalf("the %s lost a hook", name)
			}
			for _, x := range worker.Exposed() {
				if before.ServerTool(x.Server, x.Tool.Name) == nil || !before.AllowsServerTool(x.Server, x.Tool.Name) {
					r.Fatalf("the %s may call %s", name, x.Name)
				}
			}
			loose := engine(t, policy.PermissionRules{Mode: "full-access"})
			ask := policy.Request{Tool: "write"}
			if worker.Confine(loose).Decide(ask).Effect > before.Confine(loose).Decide(ask).Effect {
				r.Fatalf("the %s is judged more mildly", name)
			}
			before = worker
		}
	})
}

// V147, V148: a fail-closed hook that could not be read is kept as a refusal; workers cannot get rid of it.
func TestRefusals(t *testing.T) {
	a := world(t).hook("pre-tool-use", "broken", "its timeout cannot be read").admit()
	if len(a.Refusals) != 1 || a.Refusals[0].Config.(*capability.Hook).Refusal != "its timeout cannot be read" {
		t.Fatalf("refusals: %v", a.Refusals)
	}
	worker := a.Worker(Narrowing{Channel: keepOnly(t, []string{"read"}, nil)})
	err := worker.RefusedByHook()
	if !errors.Is(err, vakerr.New(vakerr.HookBlocked, "")) {
		t.Errorf("a worker's calls are not refused: %v", err)
	}
	if world(t).admit().RefusedByHook() != nil {
		t.Error("a hook that can be read refuses calls")
	}
}

// V142: bare names lead to their server unless two servers have them or a tool of the host has them, hidden or not.
func TestToolIndex(t *testing.T) {
	w := world(t).server("a", capability.Server{}, "both", "only-a", "write").server("b", capability.Server{}, "both", "only-b")
	want := map[string]string{"commit": "git", "status": "git", "only-a": "a", "only-b": "b"}
	if diff := cmp.Diff(want, w.admit().ToolIndex); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	hidden := w.admit(channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"write"}}}))
	if diff := cmp.Diff(want, hidden.ToolIndex); diff != "" {
		t.Errorf("index with a hidden tool (-want +got):\n%s", diff)
	}
	three := w.server("c", capability.Server{}, "both").admit().ToolIndex
	if _, ok := three["both"]; ok {
		t.Error("a name of three servers is not ambiguous")
	}
}

// V135: a server's tools are filtered one by one; the server stays.
func TestServerTools(t *testing.T) {
	full := policy.PermissionRules{Mode: "full-access", Deny: []string{"mcp(s/drop)"}}
	tools := []string{"drop", "get_a", "get_b", "set"}
	for name, tc := range map[string]struct {
		server capability.Server
		edit   func(*AdmitInput)
		want   []string
	}{
		"rule":           {capability.Server{}, permissions(t, full), []string{"get_a", "get_b", "set"}},
		"enabled":        {capability.Server{EnabledTools: []string{"get_*"}}, nil, []string{"get_a", "get_b"}},
		"disabled wins":  {capability.Server{EnabledTools: []string{"get_*"}, DisabledTools: []string{"*_b"}}, nil, []string{"get_a"}},
		"channel denies": {capability.Server{}, channel(t, policy.ChannelRules{MCP: policy.Filter{Deny: []string{"s/get_*"}}}), []string{"drop", "set"}},
		"channel allows": {capability.Server{}, channel(t, policy.ChannelRules{MCP: policy.Filter{Allow: []string{"*/set"}}}), []string{"set"}},
	} {
		t.Run(name, func(t *testing.T) {
			edit := tc.edit
			if edit == nil {
				edit = func(*AdmitInput) {}
			}
			a := newWorkshop(t).core().server("s", tc.server, tools...).admit(edit)
			var got []string
			for _, st := range a.ServerTools("s") {
				got = append(got, st.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if len(a.Servers) != 1 {
				t.Error("the server is gone")
			}
		})
	}
}

// V152: what asks first is admitted and said to be gated, where somebody can answer; it is not where nobody can.
func TestGated(t *testing.T) {
	w := newWorkshop(t).tool("send", capability.Tool{})
	attended := w.admit(permissions(t, policy.PermissionRules{}), func(in *AdmitInput) { in.Attended = true })
	if len(attended.Tools) != 1 || len(attended.Gated) != 1 || attended.Gated[0].State != policy.Gated {
		t.Errorf("attended: tools %v, gated %v", attended.ToolNames(), attended.Gated)
	}
	alone := w.admit(permissions(t, policy.PermissionRules{}))
	if len(alone.Tools)+len(alone.Gated) != 0 || excludedIDs(alone)["tool:send"] != policy.Blocked {
		t.Errorf("unattended: tools %v, excluded %v", alone.ToolNames(), alone.Excluded)
	}
}

// C10: what is hidden is not shown in a delta either, what is revoked is.
func TestShows(t *testing.T) {
	a := world(t).admit(channel(t, policy.ChannelRules{Tools: policy.Filter{Deny: []string{"secret*"}}}), revoke("tool:write"))
	d := capability.Delta{Removed: []capability.ID{{Kind: capability.KindTool, Name: "secret-tool"}, {Kind: capability.KindTool, Name: "write"}}}
	if got := d.Only(a.Shows).String(); got != "removed tool:write" {
		t.Errorf("delta = %q", got)
	}
}

func BenchmarkAdmit(b *testing.B) {
	w := world(b)
	tools := make([]string, 0, 40)
	for i := range 40 {
		tools = append(tools, "tool_"+string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	for i := range 25 {
		w.server("server"+string(rune('a'+i)), capability.Server{}, tools...)
	}
	in := AdmitInput{View: &View{Snapshot: capability.Snapshot{Set: w.set(nil)}}, Engine: engine(b, policy.PermissionRules{})}
	b.ReportAllocs()
	for b.Loop() {
		Admit(in)
	}
}
