package mcpserver

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/lifecycle"
	"github.com/vak-actors/vak-actors/internal/mcpio"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func serverProps(c Config, k key, s *capability.Server, b *board, pool actorkit.Ref) actorkit.Props {
	return actorkit.Props{Kind: "mcpserver", Mailbox: 1 << 12, New: func() actorkit.Actor {
		return &server{
			Config: c, key: k, server: s, board: b, pool: pool, demands: make(map[lifecycle.DemandID]actorkit.Replier),
			wanted: &subscriptions{clients: c.Connector.Clients},
		}
	}}
}

// server owns one connection. Its machine decides; this performs.
type server struct {
	Config
	key    key
	server *capability.Server // the definition; its observation is that of the first demand
	board  *board
	pool   actorkit.Ref

	machine  lifecycle.Server
	demands  map[lifecycle.DemandID]actorkit.Replier
	last     lifecycle.DemandID
	conn     *connection
	starting actorkit.Effect
	watching actorkit.Effect
	timer    actorkit.Timer
	due      time.Time
	starts   uint32
	retiring bool
	wanted   *subscriptions
	held     []demand // came after the connection died and before everything of it was gone
}

type (
	// demand is an Acquire with its answer.
	demand struct {
		*protocol.Acquire
		reply actorkit.Replier
		pool  actorkit.Ref
	}
	// retire ends the actor when nothing runs any more.
	retire struct{}
	// halt closes the connection; the next demand starts the server again.
	halt struct {
		reason string
		drain  bool
	}
	connected struct {
		generation uint64
		conn       *connection
		catalog    seen
		err        error
	}
	ended struct {
		generation uint64
		closed     bool // it was told to
		err        error
	}
	listed struct {
		generation uint64
		catalog    seen
		err        error
	}
	changed struct{ generation uint64 }
	ticked  struct{}
)

// Undelivered implements actorkit.Undelivered: the actor that ended has not seen the demand, so another one gets it.
func (d demand) Undelivered(why error) {
	if d.pool.Tell(d) != nil {
		d.reply.Reply(why)
	}
}

// released says that a lease ended. There are no more of them than leases, so it never waits for room.
type released struct {
	generation uint64
	answered   bool
}

// ControlMessage implements actorkit.Control.
func (released) ControlMessage() {}

// Receive implements actorkit.Actor.
func (s *server) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case actorkit.Started:
		s.machine = lifecycle.NewServer(lifecycle.ServerConfig{
			Name: s.key.server, IdleTTL: s.server.IdleTTL, MaxInFlight: s.server.MaxInFlight, Backoff: s.Backoff,
		}, s.server.Observation)
	case demand:
		c.Adopt(m.reply)
		s.demand(c, m)
	case connected:
		s.onConnected(c, m)
	case ended:
		s.onEnded(c, m)
	case listed:
		s.step(c, lifecycle.Listed{
			Generation: m.generation, Catalog: m.catalog.tools, Features: m.catalog.features, Notes: m.catalog.lacks, Failure: reason(m.err),
		})
	case changed:
		s.step(c, lifecycle.ListChanged{Generation: m.generation})
	case released:
		s.step(c, lifecycle.Released{Generation: m.generation, Answered: m.answered})
	case ticked:
		s.timer, s.due = actorkit.Timer{}, time.Time{}
		s.step(c, lifecycle.Tick{})
	case halt:
		s.step(c, lifecycle.Stop{Reason: m.reason, Drain: m.drain})
	case retire:
		s.retiring = true
		s.step(c, lifecycle.Stop{Reason: "it is not declared any more", Drain: true})
	case actorkit.EffectPanicked:
		panic(m.Reason) // the actor cannot know what is left: end it, and with it the connection
	}
}

func (s *server) demand(c *actorkit.Context, m demand) {
	if s.conn != nil && s.conn.Err() != nil {
		s.held = append(s.held, m)
		return
	}
	s.retiring = false // a turn that is bound to the older epoch still needs it
	s.last++
	s.demands[s.last] = m.reply
	s.step(c, lifecycle.Demand{ID: s.last, Deadline: m.Until, List: m.List, Again: m.Again})
}

// step lets the machine decide and performs what it asks for.
func (s *server) step(c *actorkit.Context, event lifecycle.ServerEvent) {
	machine, effects := s.machine.Step(event, c.Now())
	s.machine = machine
	for _, e := range effects {
		s.perform(c, e)
	}
	s.schedule(c)
	s.show()
	if len(s.held) == 0 && (s.retiring && s.idle() || s.key.session != "" && s.machine.Phase() == lifecycle.Idle) {
		c.StopSelf() // of the many that sessions have for themselves, only those in use stay
	}
}

// idle reports whether nothing of a connection is left.
func (s *server) idle() bool {
	switch s.machine.Phase() {
	case lifecycle.Cold, lifecycle.Idle, lifecycle.BackingOff:
		return s.machine.Waiting() == 0
	case lifecycle.Starting, lifecycle.Ready, lifecycle.Draining, lifecycle.Stopping:
	}
	return false
}

func (s *server) perform(c *actorkit.Context, effect lifecycle.ServerEffect) {
	switch e := effect.(type) {
	case lifecycle.Start:
		s.start(c, e.Generation)
	case lifecycle.Close:
		s.starting.Cancel(errClosing)
		s.watching.Cancel(errClosing)
	case lifecycle.List:
		conn := s.conn
		c.Go(func(ctx context.Context) any {
			catalog, err := conn.ListTools(ctx)
			if err != nil {
				return listed{generation: e.Generation, err: err}
			}
			return listed{e.Generation, observed(catalog, conn.ListFeatures(ctx)), nil}
		})
	case lifecycle.Grant:
		s.grant(c, e)
	case lifecycle.Refuse:
		for _, id := range e.IDs {
			s.answer(id, e.Err)
		}
	case lifecycle.Observe:
		_ = s.Registry.Ref().Tell(&protocol.Observed{
			Server: s.key.server, Definition: s.key.definition, Observation: e.Observation,
		})
	}
}

var errClosing = vakerr.New(vakerr.ServerStopped, "the connection is being closed")

func (s *server) start(c *actorkit.Context, generation uint64) {
	s.starts++
	self, name, config, connector, wanted := c.Self(), s.key.server, s.server, s.Connector, s.wanted
	s.starting = c.Go(func(ctx context.Context) any {
		conn, catalog, err := connector.connect(ctx, name, config, wanted, mcpio.Handlers{
			Notification: wanted.updated,
			ListChanged:  func() { _ = self.Tell(changed{generation}) },
		})
		return connected{generation, conn, catalog, err}
	})
}

func (s *server) onConnected(c *actorkit.Context, m connected) {
	if m.err != nil {
		s.step(c, lifecycle.StartFailed{
			Generation: m.generation, Code: vakerr.CodeOf(m.err), Reason: reason(m.err), Random: rand.Float64(),
		})
		return
	}
	s.conn = m.conn
	s.watching = c.Go(func(ctx context.Context) any { return watch(ctx, m.generation, m.conn) })
	if s.machine.Phase() == lifecycle.Stopping {
		s.watching.Cancel(errClosing)
	}
	s.step(c, lifecycle.Started{
		Generation: m.generation, Catalog: m.catalog.tools, Features: m.catalog.features, Notes: m.catalog.lacks,
	})
}

// closeTime bounds the stop sequence of a child: end of input, SIGTERM, SIGKILL.
const closeTime = 15 * time.Second

// watch waits for the end of a connection, or closes it when it is told to, also when the actor stops. Nothing of the
// server lives when it returns.
func watch(ctx context.Context, generation uint64, conn *connection) any {
	closing := false
	select {
	case <-conn.Done():
	case <-ctx.Done():
		closing = true
	}
	why := conn.Err()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	_ = conn.Close(limited) // its error says what the child left behind, which is logged where it happens
	return ended{generation, closing, why}
}

func (s *server) onEnded(c *actorkit.Context, m ended) {
	s.conn = nil
	if m.closed {
		s.step(c, lifecycle.Closed{Generation: m.generation})
	} else {
		s.step(c, lifecycle.Died{Generation: m.generation, Reason: reason(m.err), Random: rand.Float64()})
	}
	held := s.held
	s.held = nil
	for _, d := range held {
		s.demand(c, d)
	}
}

func (s *server) grant(c *actorkit.Context, g lifecycle.Grant) {
	self := c.Self()
	for _, id := range g.IDs {
		var once sync.Once
		release := func(answered bool) {
			once.Do(func() { _ = self.Tell(released{g.Generation, answered}) })
		}
		lease := &protocol.Lease{Connection: s.conn, Observation: s.machine.Observed(), Release: release}
		if !s.answer(id, lease) {
			release(false) // nobody waits any more
		}
	}
}

func (s *server) answer(id lifecycle.DemandID, v any) bool {
	reply := s.demands[id]
	delete(s.demands, id)
	return reply.Reply(v)
}

// schedule sets the one timer to when the machine wants to be woken. One that will be due too early stays, as every call
// puts the time off: the tick finds nothing to do, and sets the next.
func (s *server) schedule(c *actorkit.Context) {
	at, wanted := s.machine.Wake()
	if !wanted || !s.due.IsZero() && !at.Before(s.due) {
		return
	}
	s.timer.Stop()
	s.due = at
	s.timer = c.After(at.Sub(c.Now()), ticked{})
}

// reason is the public text of a failure; empty for none.
func reason(err error) string {
	if err == nil {
		return ""
	}
	return vakerr.From(err).Reason
}

// board shows the state of a connection to whoever asks the pool.
type board struct{ current atomic.Pointer[status] }

type status struct {
	state       string
	pid         int
	started     time.Time
	inFlight    int
	starts      uint32
	nextAttempt time.Time
	stderr      func() (string, []string)
}

func (b *board) load() *status {
	s := b.current.Load()
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

func (s *server) show() {
	_, next := s.machine.Failures()
	st := &status{state: s.machine.Phase().String(), inFlight: s.machine.InFlight(), starts: s.starts, nextAttempt: next}
	if before := s.board.current.Load(); before != nil {
		st.stderr = before.stderr
	}
	if s.conn != nil {
		st.pid, st.started, st.stderr = s.conn.pid, s.conn.started, s.conn.lastWords
	}
	s.board.current.Store(st)
}
