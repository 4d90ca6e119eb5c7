package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

func declare(kind capability.Kind, name string, config capability.Config) capability.Declaration {
	return capability.Declaration{ID: capability.ID{Kind: kind, Name: name}, Config: config}
}

func properties(names ...string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"` + strings.Join(names, `":{},"`) + `":{}}}`)
}

func reachSet(t testing.TB) *capability.Set {
	set, err := capability.NewSet([]capability.Declaration{
		declare(capability.KindTool, "read", &capability.Tool{ReadOnly: true, InputSchema: properties("path")}),
		declare(capability.KindTool, "write", &capability.Tool{InputSchema: properties("path", "content")}),
		declare(capability.KindTool, "fetch", &capability.Tool{InputSchema: properties("url")}),
		declare(capability.KindTool, "save", &capability.Tool{InputSchema: properties("url", "path")}),
		declare(capability.KindTool, "mcp", &capability.Tool{}),
		declare(capability.KindSkill, "pdf", &capability.Skill{}),
		declare(capability.KindMCP, "cold", &capability.Server{}),
		declare(capability.KindMCP, "git", &capability.Server{Observation: &capability.Observation{Catalog: []capability.ObservedTool{
			{Name: "commit"}, {Name: "status", ReadOnly: true},
		}}}),
		declare(capability.KindMCP, "mail", &capability.Server{Observation: &capability.Observation{Catalog: []capability.ObservedTool{
			{Name: "send"}, {Name: "drop", Destructive: true},
		}}}),
		declare(capability.KindMCP, "shredder", &capability.Server{Observation: &capability.Observation{Catalog: []capability.ObservedTool{
			{Name: "shred", Destructive: true},
		}}}),
		declare(capability.KindHook, "stop/x", &capability.Hook{}),
		declare(capability.KindCommand, "ship", &capability.Command{}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// V150-V154: standings that are not open, under rules, modes and with or without an approver.
func TestReach(t *testing.T) {
	for name, tc := range map[string]struct {
		rules    PermissionRules
		attended bool
		want     map[string]State
	}{
		"V152 nobody answers": {
			PermissionRules{},
			false,
			map[string]State{"tool:fetch": Blocked, "mcp:shredder": Blocked},
		},
		"V152 somebody answers": {
			PermissionRules{},
			true,
			map[string]State{"tool:fetch": Gated, "mcp:shredder": Gated},
		},
		"V152 a patterned allow": {
			PermissionRules{Allow: []string{"fetch(https://example.org/*)", "mcp(shredder/sh*)"}},
			false,
			map[string]State{"tool:fetch": Gated},
		},
		"V152 a pattern of another server": {
			PermissionRules{Allow: []string{"mcp(mailer/*)"}},
			false,
			map[string]State{"tool:fetch": Blocked, "mcp:shredder": Blocked},
		},
		"V152 an ask rule, nobody answers": {
			PermissionRules{Mode: "full-access", Ask: []string{"cold/*", "write"}},
			false,
			map[string]State{"tool:write": Blocked, "mcp:cold": Blocked},
		},
		"V152 an ask rule and a patterned allow": {
			PermissionRules{Mode: "full-access", Ask: []string{"mcp(cold/*)"}, Allow: []string{"mcp(cold/a)"}},
			false,
			map[string]State{"mcp:cold": Gated},
		},
		"V153 dropped only when every probe is": {
			PermissionRules{Mode: "full-access", Deny: []string{"mcp(git/commit)", "save(https://*)", "fetch"}},
			false,
			map[string]State{"tool:fetch": Blocked},
		},
		"a whole server denied": {
			PermissionRules{Mode: "full-access", Deny: []string{"git/*", "mcp__cold__*"}},
			false,
			map[string]State{"mcp:git": Blocked, "mcp:cold": Blocked},
		},
		"a server denied by its name": {
			PermissionRules{Mode: "full-access", Deny: []string{"mcp__cold"}},
			false,
			map[string]State{"mcp:cold": Blocked},
		},
		"every server denied": {
			PermissionRules{Mode: "full-access", Deny: []string{"mcp"}},
			false,
			map[string]State{"tool:mcp": Blocked, "mcp:cold": Blocked, "mcp:git": Blocked, "mcp:mail": Blocked, "mcp:shredder": Blocked},
		},
		"V156 the strictest rule decides": {
			PermissionRules{Mode: "full-access", Deny: []string{"fetch"}, Ask: []string{"fetch"}, Allow: []string{"fetch"}},
			true,
			map[string]State{"tool:fetch": Blocked},
		},
		"V155 no rule loosens read-only": {
			PermissionRules{Mode: "read-only", Allow: []string{"fetch", "write", "save", "mcp(cold/*)", "mail/*"}},
			true,
			map[string]State{"tool:write": Blocked, "tool:fetch": Blocked, "tool:save": Blocked, "mcp:cold": Blocked, "mcp:mail": Blocked, "mcp:shredder": Blocked},
		},
		"V151 a skill": {
			PermissionRules{Mode: "full-access", Deny: []string{"skill(p*)"}},
			true,
			map[string]State{"skill:pdf": Blocked},
		},
		"V155 read-only": {
			PermissionRules{Mode: "read-only", Allow: []string{"fetch(https://*)"}},
			true,
			map[string]State{"tool:write": Blocked, "tool:fetch": Blocked, "tool:save": Blocked, "mcp:cold": Blocked, "mcp:mail": Blocked, "mcp:shredder": Blocked},
		},
		"full access": {PermissionRules{Mode: "full-access"}, false, map[string]State{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]State{}
			for _, s := range reach(engine(t, tc.rules), reachSet(t), nil, tc.attended) {
				if s.State == Open {
					continue
				}
				got[s.ID.String()] = s.State
				if s.Reason == "" || s.State == Blocked && s.Remedy == "" {
					t.Errorf("V150: %+v does not say why or what to do", s)
				}
				if s.State == Blocked && !tc.attended && len(tc.rules.Deny) == 0 && !strings.Contains(s.Reason, "no approver can answer") {
					t.Errorf("V152: %s: %s", s.ID, s.Reason)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("standings (-want +got):\n%s", diff)
			}
		})
	}
}

// V152: the remedy of what nobody can approve is a rule; with it, it is reachable.
func TestReachRemedy(t *testing.T) {
	rules := PermissionRules{Mode: "full-access", Ask: []string{"cold/*", "mail/*", "fetch"}}
	for _, s := range reach(engine(t, rules), reachSet(t), nil, false) {
		if s.State != Blocked {
			continue
		}
		_, quoted, _ := strings.Cut(s.Remedy, `"`)
		rule, _, found := strings.Cut(quoted, `"`)
		if !found {
			t.Errorf("%s: remedy %q", s.ID, s.Remedy)
			continue
		}
		c, _ := reachSet(t).Get(s.ID)
		if got := StandingOf(engine(t, PermissionRules{Allow: []string{rule}}), c, nil, false); got.State != Open {
			t.Errorf("%s with the rule %s: %+v", s.ID, rule, got)
		}
	}
}

// Revocations count, published or not, and the newer reason is told.
func TestReachRevoked(t *testing.T) {
	id := capability.ID{Kind: capability.KindTool, Name: "read"}
	set, err := capability.NewSet([]capability.Declaration{declare(capability.KindTool, "read", &capability.Tool{ReadOnly: true})},
		capability.Revocations{id: "published"})
	if err != nil {
		t.Fatal(err)
	}
	for want, revoked := range map[string]capability.Revocations{"published": nil, "newer": {id: "newer"}} {
		s := reach(engine(t, PermissionRules{}), set, revoked, true)[0]
		if s.State != Revoked || s.Reason != want || !strings.Contains(s.Remedy, "restore tool:read") {
			t.Errorf("%+v", s)
		}
	}
}

// V150: what is held is blocked whatever the rules allow, in the words of whoever holds it; revoked counts before that.
func TestReachHeld(t *testing.T) {
	id := capability.ID{Kind: capability.KindMCP, Name: "git"}
	c := &capability.Capability{Declaration: capability.Declaration{
		ID: id, Config: &capability.Server{}, Hold: &capability.Hold{Reason: "changed", Remedy: "pins approve"},
	}}
	e := engine(t, PermissionRules{Mode: "full-access", Allow: []string{"mcp"}})
	if got := StandingOf(e, c, nil, true); got != (Standing{ID: id, State: Blocked, Reason: "changed", Remedy: "pins approve"}) {
		t.Errorf("%+v", got)
	}
	if got := StandingOf(e, c, capability.Revocations{id: "bad"}, true); got.State != Revoked {
		t.Errorf("%+v", got)
	}
}

// V161: a mode is stricter than another one, never than none.
func TestStricterThen(t *testing.T) {
	at := func(mode string) *Current { return &Current{Engine: engine(t, PermissionRules{Mode: mode})} }
	for _, tc := range []struct {
		before, next *Current
		want         bool
	}{
		{at("full-access"), at("read-only"), true},
		{at("full-access"), at(""), true},
		{at(""), at(""), false},
		{at("read-only"), at("full-access"), false},
		{nil, at("read-only"), false},
		{at("full-access"), nil, false},
	} {
		if got := tc.before.StricterThen(tc.next); got != tc.want {
			t.Errorf("%+v then %+v: %v", tc.before, tc.next, got)
		}
	}
}

// A shut engine blocks everything that is called under a permission.
func TestReachShut(t *testing.T) {
	e, _ := CompileEngine(Host{}, PermissionRules{Deny: []string{"("}})
	for _, s := range reach(e, reachSet(t), nil, true) {
		callable := s.ID.Kind != capability.KindHook && s.ID.Kind != capability.KindCommand
		if (s.State == Blocked) != callable {
			t.Errorf("%+v", s)
		}
	}
}

// V151: reach is not another opinion than the engine's. What it calls blocked, no call of it is allowed.
func TestReachAgreesWithDecide(t *testing.T) {
	for _, rules := range []PermissionRules{{}, {Mode: "read-only"}, {Allow: []string{"mcp(mail/send)"}}, {Mode: "full-access", Deny: []string{"git/*", "fetch"}}} {
		e := engine(t, rules)
		for _, s := range reach(e, reachSet(t), nil, false) {
			if s.State != Blocked {
				continue
			}
			for _, subject := range []string{"https://example.org/", "x"} {
				for _, req := range []Request{
					{Tool: s.ID.Name, Kind: SubjectURL, Subject: subject},
					{Tool: "mcp", Server: s.ID.Name, ServerTool: "send", Destructive: s.ID.Name == "shredder"},
					{Tool: "mcp", Server: s.ID.Name, ServerTool: "commit", Destructive: s.ID.Name == "shredder"},
				} {
					if (s.ID.Kind == capability.KindMCP) == (req.Server != "") && e.Decide(req).Effect == Allow {
						t.Errorf("%+v: %s is blocked and %s is allowed", rules, s.ID, req.Rule())
					}
				}
			}
		}
	}
}

func TestSubjects(t *testing.T) {
	for arguments, want := range map[string][]Subject{
		`{"path":"a"}`:                    {{SubjectPath, "a"}},
		`{"file_path":"b","path":"a"}`:    {{SubjectPath, "a"}, {SubjectPath, "b"}},
		`{"command":"c","url":"u","x":1}`: {{SubjectURL, "u"}, {SubjectCommand, "c"}},
		`{"path":5,"url":""}`:             nil,
		`{}`:                              nil,
		`[`:                               nil,
	} {
		if diff := cmp.Diff(want, Subjects(json.RawMessage(arguments))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arguments, diff)
		}
	}
}

// reach is the standing of every capability of set, in order.
func reach(e *Engine, set *capability.Set, revoked capability.Revocations, attended bool) []Standing {
	all := make([]Standing, 0, set.Len())
	for c := range set.All() {
		all = append(all, StandingOf(e, c, revoked, attended))
	}
	return all
}
