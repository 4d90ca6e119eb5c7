package registry

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/supervision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// values is the reference store as a registry uses it. before runs ahead of every write and may fail or block it.
type values struct {
	ledgertest.Memory
	mu     sync.Mutex
	before func(key string) error
	loads  func() error
}

func (v *values) set(before func(key string) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.before = before
}

func (v *values) Put(ctx context.Context, tenant, key string, value []byte) error {
	v.mu.Lock()
	before := v.before
	v.mu.Unlock()
	if before != nil {
		if err := before(key); err != nil {
			return err
		}
	}
	return v.Commit(ctx, []ledger.Write{ledger.Put{Tenant: tenant, Key: key, Value: value}})[0].Err
}

func (v *values) StateKeys(ctx context.Context, tenant, prefix string) ([]string, error) {
	if v.loads != nil {
		if err := v.loads(); err != nil {
			return nil, err
		}
	}
	return v.Memory.StateKeys(ctx, tenant, prefix)
}

var errDisk = vakerr.New(vakerr.LedgerUnavailable, "the disk is full")

// node is one process: a system, a gate and a supervised registry over a store that outlives it.
type node struct {
	t      *testing.T
	values *values
	system *actorkit.System
	gate   *turn.Gate
	at     protocol.Address
	health func() []capability.Health

	mu        sync.Mutex
	announced []any
	started   int
}

func newNode(t *testing.T, v *values, builtin ...capability.Declaration) *node {
	t.Helper()
	n := &node{t: t, values: v, system: actortest.NewSystem(t, actorkit.Options{}), gate: turn.NewGate(turn.View{})}
	props := Props(Config{
		Tenant: "default", Gate: n.gate, Memory: NewMemory("default", v), Builtin: builtin,
		Health: func() []capability.Health {
			if n.health != nil {
				return n.health()
			}
			return nil
		},
		Announce: func(msg any) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.announced = append(n.announced, msg)
		},
	})
	_, err := n.system.Spawn("guardian", supervision.Guardian(supervision.Options{
		Changed: func(_ *actorkit.Context, h supervision.Health, ref actorkit.Ref) {
			n.at.Set(ref)
			if h.State == supervision.Running {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.started++
			}
		},
	}, supervision.Part{Name: "registry", Props: props}))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return n
}

// stop ends the process.
func (n *node) stop() {
	n.t.Helper()
	if err := n.system.Shutdown(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// starts is how often the registry was started.
func (n *node) starts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.started
}

// epochs are the publications announced so far.
func (n *node) epochs() []uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []uint64
	for _, m := range n.announced {
		if p, ok := m.(*registryv1.EpochPublished); ok {
			all = append(all, p.GetEpoch())
		}
	}
	return all
}

func ask[R any](n *node, msg any) (R, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.t.Context()), time.Minute)
	defer cancel()
	return actorkit.Ask[R](ctx, n.at.Ref(), msg)
}

func must[R any](n *node, msg any) R {
	n.t.Helper()
	r, err := ask[R](n, msg)
	if err != nil {
		n.t.Fatalf("%T: %v", msg, err)
	}
	return r
}

// later asks in the background; the answer comes through the channel.
func later[R any](n *node, msg any) <-chan answer[R] {
	out := make(chan answer[R], 1)
	go func() {
		r, err := ask[R](n, msg)
		out <- answer[R]{r, err}
	}()
	synctest.Wait()
	return out
}

type answer[R any] struct {
	result R
	err    error
}

var open = &policy.Current{Engine: engine(policy.PermissionRules{})}

func engine(rules policy.PermissionRules) *policy.Engine {
	e, problems := policy.CompileEngine(policy.Host{}, rules)
	if len(problems) > 0 {
		panic(problems)
	}
	return e
}

func (n *node) declare(all ...capability.Declaration) *protocol.DeclareResult {
	n.t.Helper()
	return must[*protocol.DeclareResult](n, pass(all...))
}

func pass(all ...capability.Declaration) *protocol.Declare {
	return &protocol.Declare{Declarations: all, Policy: open, Loop: protocol.LoopFacts{At: time.Now(), Passes: 1, Watching: "polling"}}
}

func (n *node) report() capability.Report {
	n.t.Helper()
	var r capability.Report
	if err := json.Unmarshal(must[*registryv1.GetReportResult](n, &registryv1.GetReport{}).GetReportJson(), &r); err != nil {
		n.t.Fatal(err)
	}
	return r
}

func id(text string) capability.ID {
	parsed, err := capability.ParseID(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func tool(name, about string) capability.Declaration {
	return capability.Declaration{
		ID: id("tool:" + name), Origin: capability.Origin{Kind: capability.OriginWorkspace}, Summary: about,
		Config: &capability.Tool{InputSchema: json.RawMessage(`{"type":"object"}`), Description: about},
	}
}

func server(name, command string) capability.Declaration {
	return capability.Declaration{
		ID: id("mcp:" + name), Origin: capability.Origin{Kind: capability.OriginWorkspace}, Summary: name,
		Config: &capability.Server{Transport: capability.TransportStdio, Command: command, Isolation: capability.IsolationShared},
	}
}

func definition(d capability.Declaration) string {
	return protocol.ServerDefinition(d.Config.(*capability.Server))
}

func catalog(names ...string) *capability.Observation {
	o := &capability.Observation{Catalog: []capability.ObservedTool{}}
	for _, name := range names {
		o.Catalog = append(o.Catalog, capability.ObservedTool{
			Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Definition: json.RawMessage(`{"name":"` + name + `"}`),
		})
	}
	return o
}

func (n *node) observe(m *protocol.Observed) {
	n.t.Helper()
	if err := n.at.Ref().Tell(m); err != nil {
		n.t.Fatal(err)
	}
	synctest.Wait()
}

// blocked makes writes of a key wait until release is called; further ones go through.
func (v *values) blocked(key string) (release func(error)) {
	outcome := make(chan error)
	first := true
	v.set(func(k string) error {
		if k == key && first {
			first = false
			return <-outcome
		}
		return nil
	})
	return func(err error) {
		outcome <- err
		synctest.Wait()
	}
}

// failing makes writes of keys fail; none makes all work again.
func (v *values) failing(keys ...string) {
	v.set(func(k string) error {
		if slices.Contains(keys, k) {
			return errDisk
		}
		return nil
	})
}

func (v *values) remembered(t *testing.T) Remembered {
	t.Helper()
	r, err := NewMemory("default", v).Load(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
