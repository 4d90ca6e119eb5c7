package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func idOf(text string) capability.ID {
	id, err := capability.ParseID(text)
	if err != nil {
		panic(err)
	}
	return id
}

// V99, V100, V125, V162: each stage refuses with its own error, and what it refuses has no effect and is on the ledger as
// refused, not as started.
func TestStagesRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		set             func(s *shop) // before the turn begins
		meanwhile       func(s *shop) // after it has begun
		tool, arguments string
		paths           []string
		want            vakerr.Code
	}{
		"unknown name":             {tool: "nothing", want: vakerr.UnknownTool},
		"no object":                {tool: "do", arguments: `[1]`, want: vakerr.InvalidArguments},
		"arguments do not fit":     {tool: "do", arguments: `{"n":"x"}`, want: vakerr.InvalidArguments},
		"V100 revoked in the turn": {tool: "do", meanwhile: func(s *shop) { s.revoked = capability.Revocations{idOf("tool:do"): "incident"} }, want: vakerr.CapabilityRevoked},
		"V99 the channel narrowed": {tool: "do", meanwhile: func(s *shop) { s.channel.Tools.Deny = []string{"do"} }, want: vakerr.ChannelDenied},
		"V99 a rule was added":     {tool: "do", meanwhile: func(s *shop) { s.rules.Deny = []string{"do"} }, want: vakerr.PermissionDenied},
		"a rule asks":              {tool: "do", meanwhile: func(s *shop) { s.rules.Ask = []string{"do"} }, want: vakerr.ApprovalRequired},
		"a hook blocks":            {tool: "do", set: func(s *shop) { s.hook("pre-tool-use", "echo no >&2; exit 2") }, want: vakerr.HookBlocked},
		"a hook fails closed":      {tool: "do", set: func(s *shop) { s.hook("pre-tool-use", "exit 3") }, want: vakerr.HookFailed},
		"V147 a guard that cannot be read": {tool: "look", set: func(s *shop) {
			s.hook("pre-tool-use", "", func(h *capability.Hook) { h.Refusal = "its definition is broken" })
		}, want: vakerr.HookBlocked},
		"V127 a direct-write path": {tool: "do", arguments: `{"path":"src/a"}`, paths: []string{"docs"}, want: vakerr.PermissionDenied},
		"the ledger":               {tool: "do", meanwhile: func(s *shop) { s.refuses = vakerr.New(vakerr.LedgerUnavailable, "full") }, want: vakerr.LedgerUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			if tc.set != nil {
				tc.set(s)
			}
			c := s.begin()
			c.WritePaths = tc.paths
			if tc.meanwhile != nil {
				tc.meanwhile(s)
				s.publish()
			}
			out := s.call(t.Context(), c, tc.tool, tc.arguments)
			if out.Refusal == nil || out.Refusal.Code != tc.want {
				t.Fatalf("outcome %+v, want %s", out, tc.want)
			}
			if s.effects() != "" {
				t.Errorf("it had an effect: %s", s.effects())
			}
			for _, n := range s.notes {
				if _, started := n.body.(ledger.CallStarted); started {
					t.Error("it is recorded as started")
				}
			}
			if refused, ok := out.Entry.(ledger.CallRefused); tc.want != vakerr.LedgerUnavailable && (!ok || refused.Error.Code != tc.want) {
				t.Errorf("recorded as %+v", out.Entry)
			}
		})
	}
}

// The order of the stages: what an earlier one refuses is its refusal, whatever later ones would say.
func TestStagesInOrder(t *testing.T) {
	s := newShop(t)
	s.hook("pre-tool-use", "exit 2")
	c := s.begin()
	c.WritePaths = []string{"docs"}
	s.revoked = capability.Revocations{idOf("tool:do"): "incident"}
	s.channel.Tools.Deny = []string{"do"}
	s.rules.Deny = []string{"do"}
	steps := []struct {
		want   vakerr.Code
		repair func()
	}{
		{vakerr.CapabilityRevoked, func() { s.revoked = nil }},
		{vakerr.ChannelDenied, func() { s.channel.Tools.Deny = nil }},
		{vakerr.HookBlocked, func() {
			s.declared = s.declared[:len(s.declared)-1]
			s.rules.Deny = nil
			paths := c.WritePaths
			c = s.begin()
			c.WritePaths = paths
			s.rules.Ask = []string{"do"}
		}},
		{vakerr.InvalidArguments, func() {}},
		{vakerr.PermissionDenied, func() { c.WritePaths = nil }}, // V128: ahead of rules and mode
		{vakerr.ApprovalRequired, func() { s.rules.Ask = nil }},
	}
	arguments := `{"path":"src/a","n":"x"}`
	for i, step := range steps {
		s.publish()
		if out := s.call(t.Context(), c, "do", arguments); out.Refusal == nil || out.Refusal.Code != step.want {
			t.Fatalf("stage %d: %+v, want %s", i, out, step.want)
		}
		if step.want == vakerr.InvalidArguments {
			arguments = `{"path":"src/a","n":1}`
		}
		step.repair()
	}
	s.publish()
	if out := s.call(t.Context(), c, "do", arguments); out.Refusal != nil || s.effects() != arguments {
		t.Errorf("%+v, effects %s", out, s.effects())
	}
}

// V97, V124, V135: a call is judged by the policy in force when it is made, confined as its turn is: by its mode, by every
// channel it belongs to, and for the tool of a server as well as for the server.
func TestJudgedAsTheTurnIsConfined(t *testing.T) {
	const push = `{"action":"call","server":"git","tool":"push"}`
	for name, tc := range map[string]struct {
		edit func(*shop, *Call)
		want vakerr.Code
	}{
		"free":                     {func(*shop, *Call) {}, ""},
		"a read-only worker":       {func(_ *shop, c *Call) { c.Admission = c.Admission.Worker(turn.Narrowing{ReadOnly: true}) }, vakerr.PermissionDenied},
		"the tool, on its channel": {func(s *shop, _ *Call) { s.channel.MCP.Deny = []string{"git/push"} }, vakerr.ChannelDenied},
		"another tool":             {func(s *shop, _ *Call) { s.channel.MCP.Deny = []string{"git/pull"} }, ""},
		"a worker's own channel": {func(s *shop, c *Call) {
			c.Channels = append(c.Channels, "second")
			s.second.MCP.Deny = []string{"git/*"}
		}, vakerr.ChannelDenied},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.declared = append(s.declared, capability.Declaration{
				ID: idOf("mcp:git"), Origin: capability.Origin{Kind: capability.OriginWorkspace},
				Config: &capability.Server{Transport: capability.TransportStdio, Command: "git-server"},
			})
			c := s.begin()
			tc.edit(s, &c)
			s.publish()
			out := s.call(t.Context(), c, "mcp", push)
			if wrong := (out.Refusal == nil) != (tc.want == "") || out.Refusal != nil && out.Refusal.Code != tc.want; wrong {
				t.Errorf("%+v, want %q", out.Refusal, tc.want)
			}
			if ran := s.effects() != ""; ran != (tc.want == "") {
				t.Errorf("it had an effect: %v", ran)
			}
		})
	}
}

// V97, V100: an op that waits before its effect asks the gate again: what was revoked meanwhile does not happen.
func TestRevokedWhileItWaited(t *testing.T) {
	s := newShop(t)
	c := s.begin()
	s.meddle = func() {
		s.revoked = capability.Revocations{idOf("tool:do"): "incident"}
		s.publish()
	}
	out := s.call(t.Context(), c, "do", `{}`)
	if out.Refusal == nil || out.Refusal.Code != vakerr.CapabilityRevoked || s.effects() != "" {
		t.Errorf("%+v, effects %q", out, s.effects())
	}
	if f, ok := out.Entry.(ledger.CallFinished); !ok || f.Outcome != ledger.CallFailed || f.Error.Code != vakerr.CapabilityRevoked {
		t.Errorf("recorded as %+v", out.Entry)
	}
}

// A hook may rewrite the arguments; everything after it judges what it wrote.
func TestRewrittenArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		rewritten string
		deny      []string
		want      vakerr.Code
	}{
		"runs as rewritten":         {`{"path":"docs/a"}`, nil, ""},
		"does not fit the schema":   {`{"n":"x"}`, nil, vakerr.InvalidArguments},
		"denied by a rule":          {`{"path":"secret/a"}`, []string{"do(secret/**)"}, vakerr.PermissionDenied},
		"allowed though it was not": {`{"path":"docs/b"}`, []string{"do(src/**)"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.rules.Deny = tc.deny
			s.hook("pre-tool-use", `echo '{"input":`+tc.rewritten+`}'`)
			out := s.call(t.Context(), s.begin(), "do", `{"path":"src/a"}`)
			if code := vakerr.CodeOf(asError(out.Refusal)); code != tc.want {
				t.Fatalf("%+v, want %q", out, tc.want)
			}
			if tc.want == "" && s.effects() != tc.rewritten {
				t.Errorf("it ran with %s", s.effects())
			}
		})
	}
}

func asError(e *vakerr.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// A call is on the ledger before its effect; durably, unless it declares that it only reads.
func TestRecordedBeforeTheEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		tool       string
		everything bool
		durable    bool
	}{"writing": {"do", false, true}, "reading": {"look", false, false}, "reading, durability all": {"look", true, true}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.Everything = tc.everything
			s.meddle = func() {
				if len(s.notes) != 1 || s.notes[0].durable != tc.durable {
					t.Errorf("on the ledger when the effect begins: %+v", s.notes)
				}
			}
			out := s.call(t.Context(), s.begin(), tc.tool, `{"a":1}`)
			started, ok := s.notes[0].body.(ledger.CallStarted)
			if !ok || started.Turn != "t1" || started.Call != "c1" || started.Capability != idOf("tool:"+tc.tool) ||
				string(started.Arguments) != `{"a":1}` || started.ArgumentsDigest != capability.ContentDigest([]byte(`{"a":1}`)) {
				t.Errorf("started: %+v", s.notes[0].body)
			}
			finished, ok := out.Entry.(ledger.CallFinished)
			if !ok || finished.Outcome != ledger.CallOK || string(finished.Result) != string(out.Result.Content) ||
				finished.ResultDigest != capability.ContentDigest(out.Result.Content) {
				t.Errorf("finished: %+v", out.Entry)
			}
		})
	}
}

func TestResults(t *testing.T) {
	answer := func(text string) func(op.Call) (op.Result, error) {
		return func(op.Call) (op.Result, error) { return op.Passed(json.RawMessage(text)) }
	}
	for name, tc := range map[string]struct {
		answer func(op.Call) (op.Result, error)
		hook   string
		code   vakerr.Code
		text   string
	}{
		"fits its output schema":    {answer: answer(`{"content":[],"structuredContent":{"ok":1}}`), text: `"ok":1`},
		"withheld when it does not": {answer: answer(`{"content":[],"structuredContent":{"no":"private"}}`), code: vakerr.OutputInvalid},
		"an error need not fit":     {answer: answer(`{"content":[{"type":"text","text":"bad"}],"isError":true}`), text: "bad"},
		"too large":                 {answer: answer(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 2000) + `"}],"structuredContent":{"ok":1}}`), text: "short"},
		"annotated by a hook":       {answer: answer(`{"content":[],"structuredContent":{"ok":1}}`), hook: "echo look again >&2; exit 2", text: "look again"},
		"failed":                    {answer: func(op.Call) (op.Result, error) { return op.Result{}, vakerr.New(vakerr.ServerDied, "died") }, code: vakerr.ServerDied},
		"foreign error":             {answer: func(op.Call) (op.Result, error) { return op.Result{}, errors.New("password=hunter2") }, code: vakerr.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.answer = tc.answer
			if tc.hook != "" {
				s.hook("post-tool-use", tc.hook)
			}
			out := s.call(t.Context(), s.begin(), "answer", `{}`)
			if vakerr.CodeOf(asError(out.Refusal)) != tc.code || !strings.Contains(string(out.Result.Content), tc.text) {
				t.Fatalf("%+v: %s", out.Refusal, out.Result.Content)
			}
			if told := string(out.Result.Content) + " "; strings.Contains(told, "private") || out.Refusal != nil && strings.Contains(out.Refusal.Reason, "hunter2") {
				t.Errorf("it tells what it must not: %s %v", told, out.Refusal)
			}
		})
	}
}

// Who gives a call up says why; one that is given up before its effect has none.
func TestGivenUp(t *testing.T) {
	s := newShop(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(vakerr.New(vakerr.CapabilityRevoked, "it was revoked while it ran"))
	out := s.call(ctx, s.begin(), "do", `{}`)
	if out.Refusal == nil || out.Refusal.Reason != "it was revoked while it ran" || s.effects() != "" {
		t.Errorf("%+v, effects %q", out, s.effects())
	}
	s.answer = func(op.Call) (op.Result, error) { return op.Result{}, context.DeadlineExceeded }
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	if out := s.call(late, s.begin(), "look", `{}`); out.Refusal == nil || out.Refusal.Code != vakerr.DeadlineExceeded {
		t.Errorf("%+v", out.Refusal)
	}
	// Given up in the middle of it, a call that writes may have had its effect, and both the caller and the ledger say so.
	running, giveUp := context.WithCancelCause(t.Context())
	s.answer = func(op.Call) (op.Result, error) {
		giveUp(vakerr.New(vakerr.ShuttingDown, "the daemon is stopping").WithRemedy("try again when it is back"))
		return op.Result{}, running.Err()
	}
	lost := s.call(running, s.begin(), "do", `{}`)
	if f, ok := lost.Entry.(ledger.CallFinished); !ok || f.Outcome != ledger.CallUnknown || lost.Refusal.Code != vakerr.ShuttingDown ||
		!strings.Contains(lost.Refusal.Remedy, "may have had its effect") {
		t.Errorf("%+v, recorded as %+v", lost.Refusal, lost.Entry)
	}
	if never := s.call(running, s.begin(), "do", `{}`); never.Refusal == nil || never.Refusal.Remedy != "try again when it is back" {
		t.Errorf("one that never began: %+v", never.Refusal)
	}
}

// Callers that are equal share one admission of a view; another view has its own, and the old one is let go.
func TestAdmissionsAreShared(t *testing.T) {
	s := newShop(t)
	view := s.publish()
	var shared Admissions
	one := Caller{Channel: "test"}
	if shared.Known(view, one) != nil {
		t.Error("an admission that nobody made is known")
	}
	a := shared.For(view, one)
	if shared.For(view, one) != a || shared.Known(view, one) != a {
		t.Error("equal callers do not share their admission")
	}
	if shared.For(view, Caller{Channel: "test", MCPFront: true}) == a {
		t.Error("different callers share one")
	}
	s.channel.Tools = policy.Filter{Deny: []string{"look"}}
	next := s.publish()
	b := shared.For(next, one)
	if _, ok := b.Tool("look"); ok || b == a {
		t.Error("another view has the admission of the one before")
	}
	if shared.Known(view, one) != nil {
		t.Error("the admission of an old view is kept")
	}
	if _, ok := a.Tool("look"); !ok {
		t.Error("a turn that is bound to it lost a tool")
	}
}

// An index outlives the epochs that change nothing it finds, and serves every caller that finds the same.
func TestIndexesAreShared(t *testing.T) {
	s := newShop(t)
	var shared Admissions
	one := Caller{Channel: "test"}
	first := shared.For(s.publish(), one).Index()
	s.hook("pre-tool-use", "exit 0")
	next := shared.For(s.publish(), one)
	if next.Index() != first || shared.For(next.View, Caller{Channel: "test", Attended: true}).Index() != first {
		t.Error("an index of the same tools was made again")
	}
	s.channel.Tools = policy.Filter{Deny: []string{"look"}}
	if hits := shared.For(s.publish(), one).Index().Search("look", 5); len(hits) > 0 {
		t.Errorf("what is hidden now is found: %v", hits)
	}
	at := slices.IndexFunc(s.declared, func(d capability.Declaration) bool { return d.ID.Name == "answer" })
	for i := range 10 {
		changed := *s.declared[at].Config.(*capability.Tool)
		changed.Description = strings.Repeat("x", i+2)
		s.declared[at].Config = &changed
		if hits := shared.For(s.publish(), one).Index().Search(changed.Description, 5); len(hits) != 1 {
			t.Errorf("a new description finds %v", hits)
		}
	}
}
