package lifecycle

import (
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/backoff"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// ServerPhase is what a server is doing.
type ServerPhase uint8

// The phases.
const (
	Cold       ServerPhase = iota // never started, or stopped by an operator or a change; demand starts it
	Idle                          // stopped because nobody used it; demand starts it
	Starting                      // connect, handshake and first list
	Ready                         // calls run
	Draining                      // calls in flight finish, then the connection is closed
	Stopping                      // the connection is being closed
	BackingOff                    // the last start failed; demand is refused until the next attempt is due
)

var serverPhases = [...]string{"cold", "idle", "starting", "ready", "draining", "stopping", "backing-off"}

// String is the word reports print.
func (p ServerPhase) String() string {
	if int(p) >= len(serverPhases) {
		return "unknown"
	}
	return serverPhases[p]
}

// ServerConfig is what a server's machine needs of its declaration.
type ServerConfig struct {
	Name        string
	IdleTTL     time.Duration // an unused connection is closed after it; zero: never
	MaxInFlight int           // calls on one connection at a time; zero: DefaultMaxInFlight
	MaxWaiting  int           // demands that wait for it at a time; zero: DefaultMaxWaiting
	Backoff     backoff.Policy
}

// Defaults of ServerConfig.
const (
	DefaultMaxInFlight = 64
	DefaultMaxWaiting  = 256
)

// DefaultBackoff is 5 s, doubled with each failure in a row, at most 5 min.
var DefaultBackoff = backoff.Policy{Initial: 5 * time.Second, Max: 5 * time.Minute, Multiplier: 2}

func (c ServerConfig) withDefaults() ServerConfig {
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	if c.Backoff == (backoff.Policy{}) {
		c.Backoff = DefaultBackoff
	}
	return c
}

// Server is the state of one server's machine. Make it with NewServer.
type Server struct {
	config     ServerConfig
	phase      ServerPhase
	generation uint64 // of the newest connection; 0: none was started

	waiting  []waiter // in order of arrival; never changed in place
	inFlight int      // demands granted on this connection and not released
	answered bool     // this connection has answered a call
	lastUse  time.Time
	idled    bool // it is being closed because nobody used it

	listed  bool // the catalog is known to be what the server offers now
	listing bool // a list runs on this connection
	relist  bool // the catalog changed while a list ran, so what it returns may be old
	again   bool // the list that runs is the second in a row

	failures     int       // starts that failed in a row
	failedBefore int       // failures before this connection was started
	failure      string    // reason of the last
	nextAttempt  time.Time // while BackingOff

	observed *capability.Observation // last published; nil: nothing
}

type waiter struct {
	Demand
	restarted bool // this demand has restarted a dead connection once
}

// NewServer returns a cold machine that knows what an earlier one observed; nil: nothing.
func NewServer(config ServerConfig, observed *capability.Observation) Server {
	return Server{config: config.withDefaults(), observed: observed}
}

// Phase is what the server is doing.
func (s Server) Phase() ServerPhase { return s.phase }

// Generation numbers the newest connection.
func (s Server) Generation() uint64 { return s.generation }

// InFlight is how many demands are granted and not released.
func (s Server) InFlight() int { return s.inFlight }

// Waiting is how many demands wait.
func (s Server) Waiting() int { return len(s.waiting) }

// Observed is what was last published; nil: nothing.
func (s Server) Observed() *capability.Observation { return s.observed }

// Failures is how many starts failed in a row, and when the next may be tried.
func (s Server) Failures() (count int, nextAttempt time.Time) { return s.failures, s.nextAttempt }

// Wake is when the machine needs a Tick; ok is false while it needs none.
func (s Server) Wake() (at time.Time, ok bool) {
	earlier := func(t time.Time) {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, w := range s.waiting {
		earlier(w.Deadline)
	}
	if s.unused() {
		earlier(s.lastUse.Add(s.config.IdleTTL))
	}
	return at, ok
}

// unused reports whether only the time to live keeps the connection.
func (s Server) unused() bool {
	return s.phase == Ready && s.inFlight == 0 && len(s.waiting) == 0 && s.config.IdleTTL > 0
}

// Step takes one event.
func (s Server) Step(event ServerEvent, now time.Time) (Server, []ServerEffect) {
	m := serverStep{Server: s, now: now}
	event.apply(&m)
	m.serve()
	return m.Server, m.effects
}

// serverStep is one step under way.
type serverStep struct {
	Server
	now     time.Time
	effects []ServerEffect
}

func (m *serverStep) do(e ServerEffect) { m.effects = append(m.effects, e) }

// serve grants what can be granted and starts what is wanted. Every event ends with it.
func (m *serverStep) serve() {
	switch m.phase {
	case Cold, Idle:
		if len(m.waiting) > 0 {
			m.start()
		}
	case Ready:
		// A demand that could be granted is a use; one that waits for capacity is not yet.
		if !m.listed && !m.listing && len(m.waiting) > 0 && m.inFlight < m.config.MaxInFlight {
			m.list()
		}
		m.grant()
	case Starting, Draining, Stopping, BackingOff:
	}
}

func (m *serverStep) start() {
	m.generation++
	m.phase, m.answered, m.listed, m.listing, m.relist, m.again = Starting, false, false, false, false, false
	m.do(Start{m.generation})
}

func (m *serverStep) list() {
	m.listing, m.relist = true, false
	m.do(List{m.generation})
}

// grant lets demands through in order of arrival. One that wants the catalog waits for it and holds up nobody.
func (m *serverStep) grant() {
	var granted []DemandID
	var waiting []waiter
	for _, w := range m.waiting {
		if m.inFlight < m.config.MaxInFlight && (!w.List || m.listed) {
			granted = append(granted, w.ID)
			m.inFlight++
			continue
		}
		waiting = append(waiting, w)
	}
	if granted != nil {
		m.waiting, m.lastUse = waiting, m.now
		m.do(Grant{m.generation, granted})
	}
}

// refuse answers the waiting demands that pick returns true for.
func (m *serverStep) refuse(err *vakerr.Error, pick func(waiter) bool) {
	var refused []DemandID
	var waiting []waiter
	for _, w := range m.waiting {
		if pick(w) {
			refused = append(refused, w.ID)
		} else {
			waiting = append(waiting, w)
		}
	}
	if refused != nil {
		m.waiting = waiting
		m.do(Refuse{refused, err})
	}
}

func all(waiter) bool { return true }

// close ends the connection and goes on in Stopping until it is closed.
func (m *serverStep) close(then ServerPhase) {
	m.phase, m.inFlight, m.listing = Stopping, 0, false
	m.do(Close{m.generation, then})
}

// observe publishes what was learned where it is news.
func (m *serverStep) observe(o *capability.Observation) {
	if o != nil && o.Catalog == nil && o.Failure == "" {
		o = nil
	}
	if equalObservations(m.observed, o) {
		return
	}
	m.observed = o
	m.do(Observe{o})
}

// learned is the last observation's catalog with another failure.
func (m *serverStep) learned(failure string) *capability.Observation {
	o := &capability.Observation{Failure: failure}
	if m.observed != nil {
		o.Catalog, o.Features, o.Notes = m.observed.Catalog, m.observed.Features, m.observed.Notes
	}
	return o
}

func equalObservations(a, b *capability.Observation) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Failure == b.Failure && a.Features.Equal(b.Features) && slices.Equal(a.Notes, b.Notes) && (a.Catalog == nil) == (b.Catalog == nil) && slices.EqualFunc(a.Catalog, b.Catalog, equalTools)
}

func equalTools(a, b capability.ObservedTool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.ReadOnly == b.ReadOnly && a.Destructive == b.Destructive &&
		a.Idempotent == b.Idempotent && string(a.InputSchema) == string(b.InputSchema) && string(a.Definition) == string(b.Definition)
}
