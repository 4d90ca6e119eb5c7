package registry

import (
	"context"
	"log/slog"
	"maps"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Memory keeps what the registry must not forget. Its methods block and are called from effects.
type Memory interface {
	Load(ctx context.Context) (Remembered, error)
	SaveEpoch(ctx context.Context, e RememberedEpoch) error
	SaveRevocations(ctx context.Context, r capability.Revocations) error
	SaveObservation(ctx context.Context, server string, o *RememberedObservation) error // nil forgets
	SavePins(ctx context.Context, id capability.ID, e *pins.Entry) error                // nil forgets
	SaveSeen(ctx context.Context, seen bool) error                                      // the workspace, since it was trusted
}

// Config is what a registry is made of.
type Config struct {
	Tenant  string
	Gate    *turn.Gate // this registry is its only publisher
	Memory  Memory
	Builtin []capability.Declaration // compiled in; they win over files of the same id
	Health  func() []capability.Health
	Asking  func() int // calls that wait for an approval; nil: not known

	// Hooks counts the deliveries of hooks, by name; nil: not known.
	Hooks func() map[string]capability.Deliveries

	// Announce tells EpochPublished and *protocol.Revoked to everybody who acts on them. It must not block.
	Announce func(msg any)
}

// Props describes the registry actor.
func Props(c Config) actorkit.Props {
	return actorkit.Props{Kind: "registry", New: func() actorkit.Actor { return &registry{Config: c} }}
}

type registry struct {
	Config

	loaded  bool
	waiting []pending // arrived before the memory was loaded; at most maxWaiting

	saves  []save          // to be made durable, one after the other; the first one runs
	effect actorkit.Effect // that loads or saves; the actor cannot go on without its outcome

	snapshot     capability.Snapshot
	history      *capability.History
	marks        capability.Marks // of the last published set; used for the first publication after a restart
	revoked      capability.Revocations
	observations map[string]*RememberedObservation
	declared     []capability.Declaration // of the last pass
	problems     []capability.Problem
	shadowed     []capability.Shadow
	broken       map[capability.ID]capability.Problem // of problems
	catalogs     catalogs
	indexes      turn.Indexes // of what find has searched
	policy       *policy.Current
	pins         pins.Settings
	book         pins.Book      // what is approved
	seen         bool           // the workspace was seen since it was trusted
	pending      []pins.Pending // what waits for a person
	unkept       string         // why approvals could not be made durable last time; empty: they were
	loop         capability.LoopHealth

	publishing bool                                      // an epoch number is being made durable
	dirty      bool                                      // the world moved while publishing
	settled    []func(epoch capability.Epoch, err error) // answered when the current publication has ended
	queued     []func(epoch capability.Epoch, err error) // answered when the one after it has
}

type pending struct {
	msg   any
	reply actorkit.Replier
}

// Receive implements actorkit.Actor.
func (r *registry) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case actorkit.Started:
		r.start(c)
	case loaded:
		r.onLoaded(c, m)
	case loadAgain:
		r.load(c)
	case saved:
		r.onSaved(c, m)
	case actorkit.EffectPanicked:
		if m.Effect == r.effect {
			panic(m.Reason) // nobody knows what is durable: load it again
		}
	case actorkit.Stopping, actorkit.Stopped, actorkit.ChildStopped:
	default:
		r.receive(c, msg, c.Replier())
	}
}

// receive keeps what comes before the memory is loaded.
func (r *registry) receive(c *actorkit.Context, msg any, reply actorkit.Replier) {
	switch {
	case r.loaded:
		r.handle(c, msg, reply)
	case len(r.waiting) >= maxWaiting:
		reply.Reply(vakerr.New(vakerr.QueueFull, "%d messages wait for the registry to read its memory", maxWaiting).
			WithRemedy("look for the cause in the daemon's log").WithRetryAfter(retryLoad))
	default:
		r.waiting = append(r.waiting, pending{msg, reply})
	}
}

const maxWaiting = 1024

func (r *registry) handle(c *actorkit.Context, msg any, reply actorkit.Replier) {
	switch m := msg.(type) {
	case *protocol.Declare:
		r.declare(c, m, reply)
	case *protocol.PassFailed:
		r.passFailed(m)
	case *protocol.Observed:
		r.observe(c, m)
	case protocol.Settle:
		r.publishThen(c, func(epoch capability.Epoch, err error) {
			if err != nil {
				reply.Reply(err)
				return
			}
			reply.Reply(protocol.Settled{Epoch: epoch})
		})
	case *registryv1.Revoke:
		r.revoke(c, m, reply)
	case *registryv1.Restore:
		r.restore(c, m, reply)
	case *registryv1.GetSurface:
		r.surface(c, m, reply)
	case *registryv1.ListPins:
		reply.Reply(r.listPins(m))
	case *registryv1.DecidePin:
		r.decidePin(c, m, reply)
	case *registryv1.GetReport:
		r.report(c, reply)
	case *registryv1.Find:
		r.find(c, m, reply)
	default:
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "the registry does not handle %T", msg))
	}
}

func (r *registry) start(c *actorkit.Context) {
	r.observations = make(map[string]*RememberedObservation)
	r.load(c)
}

func (r *registry) load(c *actorkit.Context) {
	r.effect = c.Go(func(ctx context.Context) any {
		m, err := r.Memory.Load(ctx)
		return loaded{m, err}
	})
}

type loadAgain struct{}

type loaded struct {
	memory Remembered
	err    error
}

// retryLoad is how long a registry that cannot read its memory waits. It serves nothing before: without the revocations
// it would fail open.
const retryLoad = 2 * time.Second

func (r *registry) onLoaded(c *actorkit.Context, m loaded) {
	if m.err != nil {
		c.Log().Error("cannot load the registry's memory; nothing is served before", slog.Any("error", m.err))
		c.After(retryLoad, loadAgain{})
		return
	}
	r.loaded = true
	r.snapshot = capability.Snapshot{Epoch: m.memory.Epoch.Epoch}
	r.marks = m.memory.Epoch.Marks
	r.history = capability.NewHistory(m.memory.Epoch.History)
	r.revoked = m.memory.Revocations
	maps.Copy(r.observations, m.memory.Observations)
	r.book, r.seen = m.memory.Pins, m.memory.Seen
	r.resume(r.Gate.View())
	r.publishView()
	for _, p := range r.waiting {
		if p.reply.Wanted() || !isAsk(p.msg) {
			r.handle(c, p.msg, p.reply)
		}
	}
	r.waiting = nil
}

// resume goes on with what an earlier incarnation showed, which failed and was started again. That is in force, whatever
// of it became durable: a revocation must not be lost, and the set must not vanish under running turns. An epoch that was
// made durable and never shown counts as not published; its number is free.
func (r *registry) resume(shown *turn.View) {
	if shown.History == nil {
		return // nobody published before
	}
	r.revoked, r.policy = shown.Revoked, shown.Policy
	if shown.Snapshot.Set != nil {
		r.snapshot, r.history = shown.Snapshot, shown.History
	}
}

// isAsk reports whether a message is of use only to somebody who waits for its answer.
func isAsk(msg any) bool {
	switch msg.(type) {
	case *registryv1.GetReport, *registryv1.Find:
		return true
	}
	return false
}

func (r *registry) declare(c *actorkit.Context, m *protocol.Declare, reply actorkit.Replier) {
	before := r.snapshot.Epoch
	r.declared, r.problems, r.shadowed = m.Declarations, m.Problems, m.Shadowed
	r.pin(c, m.Pins)
	r.forgetObservations(c)
	r.forgetPins(c)
	broken := capability.Broken(m.Problems, m.Declarations)
	brokenMoved := !maps.Equal(broken, r.broken)
	r.broken = broken
	ruled, policyMoved := r.policy, r.policy != m.Policy
	r.policy = m.Policy
	r.noteLoop(m.Loop)
	if policyMoved {
		r.publishView() // policy narrows at once; it is no part of the epoch
		r.Announce(&protocol.PolicyChanged{Stricter: ruled.StricterThen(m.Policy)})
	} else if brokenMoved {
		r.publishView()
	}
	r.publishThen(c, func(epoch capability.Epoch, err error) {
		if err != nil {
			r.noteFailure(m.Loop.At, vakerr.From(err).Reason)
			reply.Reply(err)
			return
		}
		r.loop.Epoch = epoch
		r.loop.Failing, r.loop.LastError, r.loop.FailedSince = false, "", time.Time{}
		if epoch != before {
			r.loop.LastChange = m.Loop.At
		}
		reply.Reply(&protocol.DeclareResult{Epoch: epoch, Changed: epoch != before})
	})
}

func (r *registry) passFailed(m *protocol.PassFailed) {
	r.noteLoop(m.Loop)
	r.noteFailure(m.Loop.At, m.Reason)
}

// noteFailure notes that what is on the disk did not become the current epoch.
func (r *registry) noteFailure(at time.Time, reason string) {
	if !r.loop.Failing {
		r.loop.FailedSince = at
	}
	r.loop.Failing, r.loop.LastError = true, reason
}

func (r *registry) noteLoop(f protocol.LoopFacts) {
	r.loop.LastRun, r.loop.Passes, r.loop.Watching = f.At, f.Passes, f.Watching
}

// publishView shows the current state at the gate. It returns when no dispatch can still act on an older view. Before
// the first set is published no policy is shown either: nobody can begin a turn with a set that does not stand yet.
func (r *registry) publishView() {
	v := turn.View{Snapshot: r.snapshot, Revoked: r.revoked, Policy: r.policy, History: r.history, Broken: r.broken, Pins: &pins.Guard{Book: r.book, Settings: r.pins}}
	if r.snapshot.Set == nil {
		v.Policy = nil
	}
	r.Gate.Publish(v)
}
