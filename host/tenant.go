package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/actors/approval"
	"github.com/vak-actors/vak-actors/actors/mcpserver"
	"github.com/vak-actors/vak-actors/actors/reconciler"
	"github.com/vak-actors/vak-actors/actors/registry"
	"github.com/vak-actors/vak-actors/actors/session"
	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/artifact"
	"github.com/vak-actors/vak-actors/internal/backoff"
	"github.com/vak-actors/vak-actors/internal/builtin"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/hookrun"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/skillfiles"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/supervision"
)

// Bounds of what a tenant's parts share.
const (
	sessionShards = 16
	schemaCache   = 4096
	maxResult     = 1 << 20 // bytes of a result that is shown; a larger one is put into a file
)

// tenant is one isolated owner with its actors.
type tenant struct {
	id         string
	gate       *turn.Gate
	registry   protocol.Address
	reconciler protocol.Address
	pool       protocol.Address
	approver   protocol.Address
	sessions   [sessionShards]protocol.Address
	changes    *changes
	health     health
	asking     atomic.Int64 // calls that wait for an approval
}

func (h *Host) newTenant(ctx context.Context, id, workspace, owner, groups string) (*tenant, error) {
	t := &tenant{id: id, gate: turn.NewGate(turn.View{}), changes: newChanges()}
	secrets := placeholderScopes(workspace, secretScopes(h.data))
	key, err := h.secretKey(ctx, id)
	if err != nil {
		return nil, err
	}
	ops, err := op.NewTable(builtin.Ops(builtin.Config{
		Workspace: workspace, Servers: mcpserver.Caller{Pool: &t.pool, Clients: &h.clients}, History: history{h.store},
	})...)
	if err != nil {
		return nil, fmt.Errorf("the built-in tools are not consistent: %w", err)
	}
	learned := &learnedFile{path: LearnedPath(h.data, id), workspace: workspace, passes: &t.reconciler}
	run := strings.ToLower(rand.Text()[:8])
	reading := declare.Options{LookupSecret: secrets, SecretKey: key}
	installed := &plugins{store: pluginstore.Open(PluginFolder(h.data, id)), workspace: workspace, home: homeFolder()}
	pointers, err := installed.store.Watch()
	if err != nil {
		return nil, err
	}
	hooks := hookrun.New(workspace, homeFolder(), secretScopes(h.data))
	hooks.Withdrawn = func(c *capability.Capability) bool { return t.gate.View().Withdrawn(c) }
	core := []supervision.Part{
		{Name: "registry", Props: registry.Props(registry.Config{
			Tenant: id, Gate: t.gate, Memory: registry.NewMemory(id, values{h.store, h.commit}),
			Builtin: ops.Declarations(), Health: h.health(t), Announce: t.announce,
			Asking: func() int { return int(t.asking.Load()) }, Hooks: hooks.Counts,
		})},
		{Name: "reconciler", Props: reconciler.Props(reconciler.Config{
			Tenant: id, Registry: &t.registry, Scanner: &scanner{
				reading: reading, workspace: openedAt(workspace, reading), shared: h.userRoots(workspace, reading),
				home: homeFolder(), trustFile: h.options.TrustFile, misplaced: h.misplaced(id, workspace), learned: learned,
				plugins: installed.sources, pointers: pointers,
			},
			Tick: h.config.Reconcile.Tick, Debounce: h.config.Reconcile.Debounce, Watch: h.options.Watch,
		})},
		{Name: "approver", Props: approval.Props(approval.Config{Run: run, Learner: learned, Waiting: &t.asking})},
	}
	pool := []supervision.Part{{Name: "pool", Props: mcpserver.Props(mcpserver.Config{
		Tenant: id, Gate: t.gate, Registry: &t.registry, Connector: mcpserver.Connector{
			Workspace: workspace, GroupDir: groups, Version: h.options.Version, Secrets: secrets, Clients: &h.clients,
		},
		Backoff: backoff.Policy{Initial: h.options.RetryServers, Max: 60 * h.options.RetryServers},
	})}}
	sessions := h.sessionParts(t, workspace, owner, ops, hooks, approval.NewCaller(&t.approver, run))
	// Roots are stopped in reverse: sessions give up their calls before servers are closed, and the registry ends last.
	for _, root := range []struct {
		name  string
		parts []supervision.Part
	}{{"core", core}, {"servers", pool}, {"sessions", sessions}} {
		guardian := supervision.Guardian(supervision.Options{Changed: t.changed}, root.parts...)
		if _, err := h.system.Spawn("tenant/"+id+"/"+root.name, guardian); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (h *Host) sessionParts(t *tenant, workspace, owner string, ops *op.Table, hooks *hookrun.Runner, approver dispatch.Approver) []supervision.Part {
	c := session.Config{
		Tenant: t.id, Owner: owner, Gate: t.gate, Admissions: &dispatch.Admissions{}, Reconciler: &t.reconciler,
		Ledger: sessionLedger{h.store, h.commit}, IdleTTL: h.config.Sessions.IdleTTL, Slice: h.config.Intent.SliceCapabilities,
		Pipeline: &dispatch.Pipeline{
			Workspace: workspace, Gate: t.gate, Ops: ops, Schemas: schema.NewCache(schemaCache),
			Hooks: hooks, Reader: builtin.Reader,
			Bundled: builtin.Bundled(workspace), Spill: spill{artifact.New(artifact.Config{Workspace: workspace})},
			Approver:   approver,
			Everything: h.config.Ledger.Durability == config.DurabilityAll,
		},
		Skills:  &skillfiles.Store{Workspace: workspace},
		MaxLive: max(1, h.config.Sessions.MaxResident/sessionShards), Residents: &sync.Map{}, Route: t.session,
	}
	parts := make([]supervision.Part, sessionShards)
	for i := range parts {
		parts[i] = supervision.Part{Name: fmt.Sprintf("sessions-%02d", i), Props: session.DirectoryProps(c)}
	}
	return parts
}

// spill puts large results aside.
type spill struct{ *artifact.Store }

// Shorten implements dispatch.Spill.
func (s spill) Shorten(r op.Result) (op.Result, error) { return s.Spill(r, maxResult, time.Now()) }

// changed keeps addresses and health current. A registry that was started again knows no declarations until the next
// pass, so it asks for one.
func (t *tenant) changed(c *actorkit.Context, h supervision.Health, ref actorkit.Ref) {
	t.health.note(h)
	switch name, shard := h.Name, 0; {
	case name == "registry":
		t.registry.Set(ref)
		_ = t.reconciler.Ref().Tell(protocol.Hint{Reason: "the registry was started again"})
	case name == "reconciler":
		t.reconciler.Set(ref)
	case name == "approver":
		t.approver.Set(ref)
	case name == "pool":
		t.pool.Set(ref)
	case strings.HasPrefix(name, "sessions-"):
		if _, err := fmt.Sscanf(name, "sessions-%d", &shard); err == nil {
			t.sessions[shard].Set(ref)
		}
	}
}

// announce passes on what the registry tells.
func (t *tenant) announce(msg any) {
	switch m := msg.(type) {
	case *registryv1.EpochPublished:
		_ = t.pool.Ref().Tell(m)
		t.changes.signal()
	case *protocol.PolicyChanged:
		t.tell(m)
		t.changes.signal() // what clients may see has changed, and no epoch says so
	case *protocol.Revoked:
		_ = t.pool.Ref().Tell(m)
		t.tell(m)
		t.changes.signal()
	}
}

// tell tells the approver and every directory of sessions.
func (t *tenant) tell(m any) {
	_ = t.approver.Ref().Tell(m)
	for i := range t.sessions {
		_ = t.sessions[i].Ref().Tell(m)
	}
}

// releaseWatchers answers the requests of all tenants that only wait for news.
func (h *Host) releaseWatchers() {
	for _, t := range h.tenants {
		_ = t.approver.Ref().Tell(protocol.ReleaseWatchers{})
	}
}

// ready returns when every part runs and the workspace was read once.
func (t *tenant) ready(ctx context.Context) error {
	for !t.spawned() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	_, err := actorkit.Ask[any](ctx, t.reconciler.Ref(), protocol.Freshen{})
	return err
}

// spawned reports whether every part was started once.
func (t *tenant) spawned() bool {
	if t.registry.Ref().IsZero() || t.reconciler.Ref().IsZero() || t.pool.Ref().IsZero() || t.approver.Ref().IsZero() {
		return false
	}
	for i := range t.sessions {
		if t.sessions[i].Ref().IsZero() {
			return false
		}
	}
	return true
}

func (t *tenant) session(id string) actorkit.Ref {
	return t.sessions[session.Shard(id, sessionShards)].Ref()
}

// newSessionID makes an id nobody can guess.
func newSessionID() string { return "s-" + strings.ToLower(rand.Text()) }

// health is what supervisors last said of their parts.
type health struct {
	mu         sync.Mutex // guards rowsByName: supervisors of several roots report
	rowsByName map[string]supervision.Health
}

func (h *health) note(row supervision.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rowsByName == nil {
		h.rowsByName = make(map[string]supervision.Health)
	}
	h.rowsByName[row.Name] = row
}

// health lists what does not work of a tenant: parts that do not run, and the ledger while it takes nothing.
func (h *Host) health(t *tenant) func() []capability.Health {
	return func() []capability.Health {
		rows := t.health.rows()
		if f, failing := h.commit.Failing(); failing {
			rows = append(rows, capability.Health{
				Name: "ledger", State: "failing since " + f.Since.UTC().Format(time.RFC3339), LastError: f.Reason,
			})
		}
		return rows
	}
}

// rows lists the parts that do not run.
func (h *health) rows() []capability.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []capability.Health
	for _, r := range h.rowsByName {
		if r.State != supervision.Running {
			all = append(all, capability.Health{
				Name: r.Name, State: r.State.String(), Restarts: r.Restarts, LastError: r.LastError, NextAttempt: r.NextAttempt,
			})
		}
	}
	slices.SortFunc(all, func(a, b capability.Health) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
