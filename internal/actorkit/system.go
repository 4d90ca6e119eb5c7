package actorkit

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Options configures a System. The zero value works.
type Options struct {
	Logger *slog.Logger // nil: logs nothing
}

// System runs actors. It owns every goroutine of theirs; Shutdown waits for all of them.
type System struct {
	logger  *slog.Logger
	proto   *actor.ActorSystem
	top     actor.SpawnerContext // the guardian all root actors report to
	workers workers
	moulds  sync.Pool

	incarnations atomic.Uint64
	live         atomic.Int64
	deadLetters  atomic.Uint64
	rejected     atomic.Uint64
	panics       atomic.Uint64

	mu      sync.Mutex // guards the next three
	roots   map[*cell]*root
	spawned uint64 // root actors so far
	closing bool

	shutdown     sync.Once
	shutdownDone error
}

// root is an actor without parent.
type root struct {
	cell  *cell
	order uint64        // of spawning; stopped in reverse
	ended chan struct{} // closed by forget
}

// NewSystem makes a System with no actors. It costs about 3 MB (protoactor's registry), so there is one per process.
func NewSystem(o Options) *System {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &System{logger: o.Logger, roots: make(map[*cell]*root), moulds: sync.Pool{New: newMould}}
	s.proto = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(textOnly{o.Logger.Handler()})
	}))
	// Protoactor's own subscribers print whole messages, start a goroutine per dead letter burst, and run in the sender
	// (H19, H20). A fresh stream has none; dead letters are disposed of in cell.deadLetter.
	s.proto.EventStream = eventstream.NewEventStream()
	s.top = s.proto.Root.Copy().WithGuardian(guardian{})
	return s
}

// Spawn starts an actor without parent. When it fails it is resumed, with its children as they are (H13); when it fails
// in Started it is stopped. A daemon needs one: the top supervisor. Errors as of Context.Spawn, and shutting_down.
func (s *System) Spawn(name string, p Props) (Ref, error) {
	c, err := s.newCell("", name, p)
	if err != nil {
		return Ref{}, err
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		c.self.cell.Store(nil)
		return Ref{}, vakerr.New(vakerr.ShuttingDown, "actor %q cannot start: the actor system is shutting down", name)
	}
	s.spawned++
	s.roots[c] = &root{cell: c, order: s.spawned, ended: make(chan struct{})}
	s.mu.Unlock()
	if _, err := s.spawn(c, s.top); err != nil {
		s.forgetRoot(c)
		return Ref{}, err
	}
	return c.ref(), nil
}

// Shutdown stops the root actors one after the other, the last spawned first, and each with all its descendants; then it
// ends all goroutines of the System. It is done once: further calls wait for the first and return its error. When ctx
// ends first it tells every actor to stop, returns deadline_exceeded with the names of the roots that have not, and leaves
// the goroutines running: the process should end. An actor must not call it.
func (s *System) Shutdown(ctx context.Context) error {
	s.shutdown.Do(func() { s.shutdownDone = s.stopAll(ctx) })
	return s.shutdownDone
}

func (s *System) stopAll(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	order := make([]*root, 0, len(s.roots))
	for _, r := range s.roots {
		order = append(order, r)
	}
	s.mu.Unlock()
	slices.SortFunc(order, func(a, b *root) int { return int(int64(b.order) - int64(a.order)) })

	var late []string
	for _, r := range order {
		r.cell.box.PostSystemMessage(stopMessage)
		select {
		case <-r.ended:
		case <-ctx.Done(): // the rest is told as well, but not waited for
			if late = append(late, r.cell.self.path); len(late) > 5 {
				late = append(late[:5], "...")
			}
		}
	}
	if len(late) > 0 {
		return vakerr.New(vakerr.DeadlineExceeded, "actors did not stop in time: %s", strings.Join(late, ", ")).
			WithRemedy("end the process; the log names effects and children that ignore their cancellation").WithCause(context.Cause(ctx))
	}
	s.workers.close()
	s.proto.Shutdown()
	return nil
}

// forget is the end of an actor's life.
func (s *System) forget(c *cell) {
	s.live.Add(-1)
	if c.parent == nil {
		s.forgetRoot(c)
	}
}

func (s *System) forgetRoot(c *cell) {
	s.mu.Lock()
	r := s.roots[c]
	delete(s.roots, c)
	expected := s.closing
	s.mu.Unlock()
	if !expected {
		s.logger.Warn("root actor ended", slog.String("actor", c.self.path), slog.String("kind", c.kind))
	}
	close(r.ended)
}

// Stats are counters since the start; Live is the number of actors now.
type Stats struct {
	Live        int64
	DeadLetters uint64 // messages that were queued or sent by Context.Tell and never handled
	Rejected    uint64 // messages refused for a full queue
	Panics      uint64 // of actors and effects
}

// Stats may be called at any time, from any goroutine.
func (s *System) Stats() Stats {
	return Stats{s.live.Load(), s.deadLetters.Load(), s.rejected.Load(), s.panics.Load()}
}

// decide asks a Strategy; one that panics has decided for Stop.
func (s *System) decide(strategy Strategy, f *failure) (d Directive) {
	if strategy == nil {
		return Stop
	}
	defer func() {
		if v := recover(); v != nil {
			f.cell.report(newPanicError(v), "strategy failed")
			d = Stop
		}
	}()
	a := f.cell.self
	return strategy(Failure{Child: Ref{a}, Name: a.name(), Kind: f.cell.kind, Reason: f.reason})
}

// guardian decides about root actors, in the goroutine of the one that failed. It knows Resume and Stop only: anything
// else ends the process in protoactor (H11).
type guardian struct{}

// HandleFailure implements actor.SupervisorStrategy.
func (guardian) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	if f, ours := reason.(*failure); ours && f.starting {
		f.cell.box.PostSystemMessage(stopMessage)
		return
	}
	sup.ResumeChildren(who)
}
