package dispatch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hookrun"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a tenant with a few tools, and what they and the ledger saw.
type shop struct {
	*testing.T
	*Pipeline
	rules    policy.PermissionRules
	channel  policy.ChannelRules
	second   policy.ChannelRules // of the channel "second"
	revoked  capability.Revocations
	declared []capability.Declaration

	mu      sync.Mutex
	ran     []string // the tools that had their effect, with what they were given
	notes   []note
	refuses error                              // what the ledger says to the next record
	meddle  func()                             // happens while a tool runs, before it asks the gate again
	answer  func(c op.Call) (op.Result, error) // of the tool "answer"
}

type note struct {
	body    ledger.Body
	durable bool
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{T: t, rules: policy.PermissionRules{Mode: "full-access"}}
	ops := []op.Op{
		s.op("look", capability.Tool{ReadOnly: true}, `{"type":"object"}`),
		s.op("do", capability.Tool{}, `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}}}`),
		s.op("mcp", capability.Tool{}, `{"type":"object"}`),
		s.op("answer", capability.Tool{OutputSchema: json.RawMessage(`{"type":"object","required":["ok"]}`)}, `{"type":"object"}`),
	}
	ops[1].WriteTarget = func(arguments json.RawMessage) (string, error) {
		in := struct{ Path string }{"somewhere"}
		err := json.Unmarshal(arguments, &in)
		return in.Path, err
	}
	table, err := op.NewTable(ops...)
	if err != nil {
		t.Fatal(err)
	}
	workspace := t.TempDir()
	s.Pipeline = &Pipeline{
		Workspace: workspace, Gate: turn.NewGate(turn.View{}), Ops: table, Schemas: schema.NewCache(16),
		Hooks: hookrun.New(workspace, workspace, nil), Spill: s,
	}
	s.declared = table.Declarations()
	return s
}

func (s *shop) op(name string, tool capability.Tool, input string) op.Op {
	tool.InputSchema = json.RawMessage(input)
	return op.Op{
		Declaration: capability.Declaration{
			ID: capability.ID{Kind: capability.KindTool, Name: name}, Origin: capability.Origin{Kind: capability.OriginBuiltin}, Config: &tool,
		},
		Run: s.run,
	}
}

// run is every tool: it may be meddled with, asks the gate again, and has its effect.
func (s *shop) run(ctx context.Context, c op.Call) (op.Result, error) {
	if s.meddle != nil {
		s.meddle()
	}
	if err := c.Commit(); err != nil {
		return op.Result{}, err
	}
	if s.answer != nil {
		return s.answer(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran = append(s.ran, string(c.Arguments))
	return op.Text("done"), ctx.Err()
}

// Record implements Recorder.
func (s *shop) Record(_ context.Context, body ledger.Body, durable bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return s.refuses
	}
	s.notes = append(s.notes, note{body, durable})
	return nil
}

// Shorten implements Spill.
func (s *shop) Shorten(r op.Result) (op.Result, error) {
	if len(r.Content) > 1000 {
		return op.Text("short"), nil
	}
	return r, nil
}

// hook declares a hook that runs script, and names it.
func (s *shop) hook(event, script string, more ...func(*capability.Hook)) string {
	s.Helper()
	name := event + "-" + string(rune('a'+len(s.declared))) + ".sh"
	if err := os.WriteFile(filepath.Join(s.Workspace, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		s.Fatal(err)
	}
	h := &capability.Hook{Event: event, Command: "./" + name, Timeout: 10 * time.Second, FailureMode: capability.FailClosed}
	for _, m := range more {
		m(h)
	}
	s.declared = append(s.declared, capability.Declaration{
		ID: capability.ID{Kind: capability.KindHook, Name: event + "/" + h.Command}, Origin: capability.Origin{Kind: capability.OriginWorkspace}, Config: h,
	})
	return name
}

// publish shows what is declared, ruled and revoked now.
func (s *shop) publish() *turn.View {
	s.Helper()
	set, err := capability.NewSet(s.declared, s.revoked)
	if err != nil {
		s.Fatal(err)
	}
	engine, problems := policy.CompileEngine(policy.Host{}, s.rules)
	channel, more := policy.CompileChannel("test", s.channel)
	second, others := policy.CompileChannel("second", s.second)
	if len(problems)+len(more)+len(others) > 0 {
		s.Fatal(problems, more, others)
	}
	s.Gate.Publish(turn.View{
		Snapshot: capability.Snapshot{Epoch: s.Gate.View().Snapshot.Epoch + 1, Set: set}, Revoked: s.revoked,
		Policy: &policy.Current{Engine: engine, Channels: map[string]*policy.Channel{"test": channel, "second": second}},
	})
	return s.Gate.View()
}

// begin is a turn that is bound to what is published now.
func (s *shop) begin() Call {
	s.Helper()
	return s.beginAs(false)
}

// beginAs is begin, with or without somebody who can answer an approval.
func (s *shop) beginAs(attended bool) Call {
	s.Helper()
	a := (&Admissions{}).For(s.publish(), Caller{Channel: "test", Attended: attended})
	return Call{
		Tenant: "t", Session: "s", Turn: "t1", ID: "c1", Channels: []string{"test"}, Attended: attended, Admission: a, Discovery: NewDiscovery(nil, &Searched{}),
	}
}

// call makes one call of a turn.
func (s *shop) call(ctx context.Context, c Call, name, arguments string) Outcome {
	s.Helper()
	c.Name, c.Arguments = name, json.RawMessage(arguments)
	target, refusal := c.Resolve()
	return s.Pipeline.Run(ctx, c, target, refusal, s)
}

func (s *shop) effects() string { return strings.Join(s.ran, " ") }
