package session

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/hookrun"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/store"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// disk is a real committer over the reference store.
type disk struct {
	*ledgertest.Memory
	commit *store.Committer
}

func (d disk) Submit(w ledger.Write, urgent bool, done func(ledger.Outcome)) {
	urgency := store.Soon
	if urgent {
		urgency = store.Now
	}
	d.commit.Submit(w, urgency, done)
}

func (d disk) Behind() bool { return d.commit.Behind() }

// tenant is one directory with a few tools, in a bubble.
type tenant struct {
	*testing.T
	disk      disk
	gate      *turn.Gate
	system    *actorkit.System
	directory actorkit.Ref
	ops       *op.Table
	declared  []capability.Declaration // nil: those of ops
	extra     []capability.Declaration
	revoked   capability.Revocations

	freshened atomic.Int32 // passes that were asked for
	lost      atomic.Bool  // what goes from one session to another

	let chan struct{} // one token lets one call of "slow" go on
}

// inBubble runs f over a tenant, and stops it afterwards.
func inBubble(t *testing.T, f func(w *tenant)) {
	synctest.Test(t, func(t *testing.T) {
		w := &tenant{T: t, let: make(chan struct{}), disk: disk{Memory: &ledgertest.Memory{}}}
		w.disk.commit = store.NewCommitter(context.WithoutCancel(t.Context()), store.CommitterConfig{Store: w.disk.Memory})
		w.start()
		f(w)
		if err := w.system.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		w.disk.commit.Close()
	})
}

func (w *tenant) start() {
	text := func(_ context.Context, c op.Call) (op.Result, error) { return op.Text("done"), c.Commit() }
	var err error
	w.ops, err = op.NewTable(
		w.tool("look", true, text), w.tool("do", false, text),
		w.tool("promote", true, func(context.Context, op.Call) (op.Result, error) {
			r := op.Text("found")
			r.Promote = []string{"found"}
			return r, nil
		}),
		w.tool("panic", true, func(context.Context, op.Call) (op.Result, error) { panic("by the test") }),
		w.tool("slow", true, func(ctx context.Context, _ op.Call) (op.Result, error) {
			select {
			case <-w.let:
				return op.Text("at last"), nil
			case <-ctx.Done():
				return op.Result{}, ctx.Err()
			}
		}),
	)
	if err != nil {
		w.Fatal(err)
	}
	w.gate = turn.NewGate(turn.View{})
	w.publish()
	w.system = actorkit.NewSystem(actorkit.Options{})
	var reconciler protocol.Address
	ref, err := w.system.Spawn("reconciler", actorkit.Props{New: func() actorkit.Actor { return passes{&w.freshened} }})
	if err != nil {
		w.Fatal(err)
	}
	reconciler.Set(ref)
	w.directory, err = w.system.Spawn("sessions", DirectoryProps(Config{
		Tenant: "default", Owner: "test", Ledger: w.disk, Admissions: &dispatch.Admissions{}, Reconciler: &reconciler,
		Residents: &sync.Map{}, Gate: w.gate, Route: w.route, Slice: true,
		Pipeline: &dispatch.Pipeline{
			Reader:    "read",
			Bundled:   func(context.Context, string) ([]string, bool) { return nil, false },
			Workspace: "/", Gate: w.gate, Ops: w.ops, Schemas: schema.NewCache(8), Hooks: hookrun.New("/", "/", nil), Spill: whole{},
		},
	}))
	if err != nil {
		w.Fatal(err)
	}
}

func (w *tenant) route(string) actorkit.Ref {
	if w.lost.Load() {
		return actorkit.Ref{}
	}
	return w.directory
}

// passes stands for a reconciler that finds nothing new.
type passes struct{ asked *atomic.Int32 }

func (p passes) Receive(c *actorkit.Context, msg any) {
	if _, ok := msg.(protocol.Freshen); ok {
		p.asked.Add(1)
		c.Replier().Reply(&registryv1.ReloadResult{})
	}
}

// whole shows every result as it is.
type whole struct{}

func (whole) Shorten(r op.Result) (op.Result, error) { return r, nil }

func (w *tenant) tool(name string, readOnly bool, run op.Func) op.Op {
	return op.Op{Run: run, Declaration: capability.Declaration{
		ID: capability.ID{Kind: capability.KindTool, Name: name}, Origin: capability.Origin{Kind: capability.OriginBuiltin},
		Config: &capability.Tool{ReadOnly: readOnly, InputSchema: json.RawMessage(`{"type":"object"}`)},
	}}
}

// publish makes what is declared and revoked now the next epoch.
func (w *tenant) publish() {
	w.Helper()
	declared := w.declared
	if declared == nil {
		declared = w.ops.Declarations()
	}
	set, err := capability.NewSet(slices.Concat(declared, w.extra), w.revoked)
	if err != nil {
		w.Fatal(err)
	}
	engine, _ := policy.CompileEngine(policy.Host{}, policy.PermissionRules{Mode: "full-access"})
	before := w.gate.View()
	epoch := before.Snapshot.Epoch + 1
	w.gate.Publish(turn.View{
		Snapshot: capability.Snapshot{Epoch: epoch, Set: set}, Revoked: w.revoked, Policy: &policy.Current{Engine: engine},
		History: before.History.With(capability.Step{Epoch: epoch, Delta: capability.Diff(before.Snapshot.Set, set)}),
	})
}

// answer is what became of a command.
type answer struct {
	result proto.Message
	err    error
}

// send sends a command and returns where its answer will be, when everything that can happen now has happened.
func (w *tenant) send(ctx context.Context, m proto.Message) <-chan answer {
	a := w.post(ctx, m)
	synctest.Wait()
	return a
}

// post sends a command, whatever else happens at the moment.
func (w *tenant) post(ctx context.Context, m proto.Message) <-chan answer {
	a := make(chan answer, 1)
	go func() {
		result, err := actorkit.Ask[proto.Message](ctx, w.directory, Command{Message: m, Asker: ctx})
		a <- answer{result, err}
	}()
	return a
}

// ask waits for the answer, in virtual time.
func (w *tenant) ask(m proto.Message) (proto.Message, error) {
	a := <-w.post(w.Context(), m)
	return a.result, a.err
}

func must[R proto.Message](w *tenant, m proto.Message) R {
	w.Helper()
	result, err := w.ask(m)
	if err != nil {
		w.Fatalf("%T: %v", m, err)
	}
	r, ok := result.(R)
	if !ok {
		w.Fatalf("%T was answered with %T", m, result)
	}
	return r
}

func (w *tenant) open() {
	must[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: "s"})
}

func (w *tenant) begin() *sessionv1.BeginTurnResult {
	w.Helper()
	return must[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: "s"})
}

func call(turn, tool string) *sessionv1.Dispatch {
	return &sessionv1.Dispatch{SessionId: "s", TurnId: turn, Name: tool}
}

// pass lets virtual time pass.
func (w *tenant) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// record is the session's record so far, with its chain checked.
func (w *tenant) record() []ledger.Body {
	w.Helper()
	return w.recordOf("s")
}

func (w *tenant) recordOf(session ledger.SessionID) []ledger.Body {
	w.Helper()
	time.Sleep(time.Second) // what may wait for company is on the disk then
	synctest.Wait()
	entries, err := w.disk.Read(w.Context(), "default", session, 1, ledger.MaxRead)
	if err != nil {
		w.Fatal(err)
	}
	if err := ledger.Verify("default", session, entries); err != nil {
		w.Error(err)
	}
	bodies := make([]ledger.Body, len(entries))
	for i, e := range entries {
		if bodies[i], err = ledger.DecodeBody(e); err != nil {
			w.Fatal(err)
		}
	}
	return bodies
}

// of picks the bodies of one type.
func of[B ledger.Body](bodies []ledger.Body) []B {
	var all []B
	for _, b := range bodies {
		if b, ok := b.(B); ok {
			all = append(all, b)
		}
	}
	return all
}

func kinds(bodies []ledger.Body) []ledger.Kind {
	all := make([]ledger.Kind, len(bodies))
	for i, b := range bodies {
		all[i] = b.Kind()
	}
	return all
}
