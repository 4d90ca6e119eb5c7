package reconciler

import (
	"context"
	"log/slog"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// World is what a pass found.
type World struct {
	Declarations []capability.Declaration
	Pins         pins.Settings
	Problems     []capability.Problem
	Shadowed     []capability.Shadow
	Policy       *policy.Current // the same pointer while the rules are the same
	Watch        []string        // absolute folders where a change would be seen
}

// Scanner reads the workspace. Scan blocks on the file system only, and is called by one pass at a time.
type Scanner interface {
	Scan(ctx context.Context) (World, error)
}

// Config is what a reconciler is made of.
type Config struct {
	Tenant   string
	Registry *protocol.Address
	Scanner  Scanner
	Tick     time.Duration // between passes of a quiet world; 0: DefaultTick
	Debounce time.Duration // from the first hint to the pass; 0: DefaultDebounce
	Watch    bool          // false: ticks and hints only
}

// Defaults of Config, and the tick of a world that cannot be watched.
const (
	DefaultTick     = 10 * time.Second
	DefaultDebounce = 250 * time.Millisecond
	PollingTick     = 2 * time.Second
)

// askRegistry bounds the wait for a publication.
const askRegistry = 30 * time.Second

// Props describes the reconciler actor.
func Props(c Config) actorkit.Props {
	if c.Tick <= 0 {
		c.Tick = DefaultTick
	}
	if c.Debounce <= 0 {
		c.Debounce = DefaultDebounce
	}
	return actorkit.Props{Kind: "reconciler", New: func() actorkit.Actor { return &reconciler{Config: c} }}
}

type reconciler struct {
	Config

	passes  uint64
	running bool
	scan    actorkit.Effect // the running pass
	hinted  actorkit.Timer  // runs while a hint waits for its debounce
	tick    actorkit.Timer
	waiting []actorkit.Replier // want a pass that begins after they asked
	current []actorkit.Replier // are answered by the running pass
	watcher *watcher
}

type (
	ticked    struct{}
	debounced struct{}
)

// passed is the outcome of a pass.
type passed struct {
	world  World
	result *protocol.DeclareResult
	err    error
}

// Receive implements actorkit.Actor.
func (r *reconciler) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case actorkit.Started:
		if r.Watch {
			r.watcher = startWatcher(c)
		}
		r.pass(c)
	case ticked:
		r.tick = actorkit.Timer{}
		r.pass(c)
	case debounced:
		r.hinted = actorkit.Timer{}
		r.pass(c)
	case protocol.Hint:
		c.Log().Debug("a pass is asked for", slog.String("reason", m.Reason))
		r.hint(c)
	case protocol.Freshen, *registryv1.Reload:
		r.waiting = append(r.waiting, c.Replier())
		if !r.running {
			r.pass(c)
		}
	case passed:
		r.onPassed(c, m)
	case actorkit.EffectPanicked:
		if m.Effect == r.scan {
			r.onPanicked(c, m)
		} else {
			r.watcher = nil // what was thrown is in the log
		}
	case watchFailed:
		r.watcher = nil
		c.Log().Warn("cannot watch the workspace; polling instead", slog.String("reason", m.reason))
	}
}

func (r *reconciler) hint(c *actorkit.Context) {
	if r.hinted == (actorkit.Timer{}) {
		r.hinted = c.After(r.Debounce, debounced{})
	}
}

// pass begins a pass, or makes sure that one follows the running one.
func (r *reconciler) pass(c *actorkit.Context) {
	if r.running {
		r.hint(c)
		return
	}
	r.hinted.Stop()
	r.tick.Stop()
	r.hinted, r.tick = actorkit.Timer{}, actorkit.Timer{}
	r.running = true
	r.passes++
	r.current, r.waiting = r.waiting, nil
	passes, watching, registry, scanner := r.passes, r.watching(), r.Registry.Ref(), r.Scanner
	r.scan = c.Go(func(ctx context.Context) any {
		world, err := scanner.Scan(ctx)
		loop := protocol.LoopFacts{At: time.Now(), Passes: passes, Watching: watching}
		if err != nil {
			_ = registry.Tell(&protocol.PassFailed{Reason: vakerr.From(err).Reason, Loop: loop})
			return passed{err: err}
		}
		ctx, cancel := context.WithTimeout(ctx, askRegistry)
		defer cancel()
		result, err := actorkit.Ask[*protocol.DeclareResult](ctx, registry, &protocol.Declare{
			Declarations: world.Declarations, Pins: world.Pins, Problems: world.Problems, Shadowed: world.Shadowed, Policy: world.Policy, Loop: loop,
		})
		return passed{world, result, err}
	})
}

func (r *reconciler) onPassed(c *actorkit.Context, m passed) {
	r.running = false
	if m.err != nil {
		c.Log().Error("a pass failed", slog.Any("error", m.err))
	} else if m.result.Changed {
		c.Log().Info("epoch published", slog.Uint64("epoch", uint64(m.result.Epoch)), slog.Int("capabilities", len(m.world.Declarations)))
	}
	for _, w := range r.current {
		w.Reply(r.answer(m))
	}
	r.current = nil
	if r.watcher != nil && m.err == nil {
		r.watcher.watch(m.world.Watch)
	}
	r.next(c)
}

// answer is a value that satisfies both Freshen and Reload.
func (r *reconciler) answer(m passed) any {
	if m.err != nil {
		return m.err
	}
	return &registryv1.ReloadResult{
		Epoch: uint64(m.result.Epoch), Changed: m.result.Changed, Problems: wire.Problems(m.world.Problems),
	}
}

func (r *reconciler) onPanicked(c *actorkit.Context, m actorkit.EffectPanicked) {
	r.running = false
	_ = r.Registry.Ref().Tell(&protocol.PassFailed{
		Reason: "the pass broke off: " + m.Reason.Error(),
		Loop:   protocol.LoopFacts{At: c.Now(), Passes: r.passes, Watching: r.watching()},
	})
	for _, w := range r.current {
		w.Reply(m.Reason)
	}
	r.current = nil
	r.next(c)
}

// next begins the pass somebody waits for, or sets the ticker anew. Ticks missed meanwhile are not made up for.
func (r *reconciler) next(c *actorkit.Context) {
	if len(r.waiting) > 0 {
		r.pass(c)
		return
	}
	every := r.Tick
	if r.Watch && r.watcher == nil {
		every = min(every, PollingTick)
	}
	r.tick = c.After(every, ticked{})
}

func (r *reconciler) watching() string {
	if r.watcher != nil {
		return "notify"
	}
	return "polling"
}
