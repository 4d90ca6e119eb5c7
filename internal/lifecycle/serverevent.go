package lifecycle

import (
	"fmt"
	"math"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// DemandID names one demand; the owner chooses it and uses none twice while it lives.
type DemandID uint64

// ServerEvent is something that happened to a server.
type ServerEvent interface{ apply(*serverStep) }

// Demand is a call that needs the server: it starts one that does not run. It is answered by exactly one Grant or
// Refuse, unless it is withdrawn.
type Demand struct {
	ID       DemandID
	Deadline time.Time // it is refused when it still waits then; zero: it waits for ever
	List     bool      // it is granted only when the catalog is known
	// Again is set where a Grant of this call led to a connection that turned out dead before anything was sent: the
	// call has had its restart.
	Again bool
}

// Withdraw takes back a demand that waits; one that was answered is not concerned.
type Withdraw struct{ ID DemandID }

// Released says that a granted demand has finished.
type Released struct {
	Generation uint64
	Answered   bool // the server answered, with a result or an error of its own
}

// Started says that the connection is up and what it offers. The catalog is sorted by name; nil where the server has no
// tools to list.
type Started struct {
	Generation uint64
	Catalog    []capability.ObservedTool
}

// StartFailed says why there is no connection. Nothing of it lives any more.
type StartFailed struct {
	Generation uint64
	Code       vakerr.Code // empty: server_start_failed
	Reason     string      // public: no secrets, no counts, no times
	Random     float64     // in [0,1), for the backoff's jitter
}

// Died says that a connection ended without having been closed. Nothing of it lives any more.
type Died struct {
	Generation uint64
	Reason     string // public
	Random     float64
}

// Closed says that a connection that was to be closed is gone.
type Closed struct{ Generation uint64 }

// ListChanged says that the server announced another catalog.
type ListChanged struct{ Generation uint64 }

// Listed is the outcome of a List.
type Listed struct {
	Generation uint64
	Catalog    []capability.ObservedTool // sorted by name
	Failure    string                    // why there is none; public
}

// Stop ends the connection and refuses who waits: an operator's act, a revocation, a removal or a shutdown.
type Stop struct {
	Reason string // public
	Drain  bool   // calls in flight may finish
}

// ConfigChanged says that the declaration differs: the connection is replaced by the next demand, after the calls in
// flight have finished. What was observed and what failed belongs to the old one.
type ConfigChanged struct{ Config ServerConfig }

// Tick says that the time of Wake has come.
type Tick struct{}

func (d Demand) apply(m *serverStep) {
	switch {
	case m.phase == BackingOff && m.now.Before(m.nextAttempt):
		m.do(Refuse{[]DemandID{d.ID}, m.backingOff()})
		return
	case m.phase == BackingOff:
		m.phase = Cold
	case len(m.waiting) >= m.config.MaxWaiting:
		m.do(Refuse{[]DemandID{d.ID}, vakerr.New(vakerr.QueueFull, "%d calls wait for server %q already", len(m.waiting), m.config.Name).
			WithRemedy("try again when some of them have finished")})
		return
	}
	m.waiting = append(m.waiting[:len(m.waiting):len(m.waiting)], waiter{d, d.Again})
}

// backingOff is the recorded reason with the whole seconds until the next attempt, at least one.
func (m *serverStep) backingOff() *vakerr.Error {
	wait := m.nextAttempt.Sub(m.now)
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	return vakerr.New(vakerr.ServerBackingOff, "server %q failed to start: %s; next attempt in %d s", m.config.Name, m.failure.Reason, seconds).
		WithRemedy("try again after that; an operator finds more with: vak-actors servers logs %s", m.config.Name).WithRetryAfter(wait)
}

func (w Withdraw) apply(m *serverStep) {
	var waiting []waiter
	for _, x := range m.waiting {
		if x.ID != w.ID {
			waiting = append(waiting, x)
		}
	}
	m.waiting = waiting
}

func (r Released) apply(m *serverStep) {
	if r.Generation != m.generation || m.inFlight == 0 {
		return
	}
	m.inFlight--
	m.lastUse = m.now
	m.answered = m.answered || r.Answered
	if m.phase == Draining && m.inFlight == 0 {
		m.close(Cold)
	}
}

func (e Started) apply(m *serverStep) {
	if e.Generation != m.generation || m.phase != Starting {
		return
	}
	m.phase, m.inFlight, m.lastUse, m.listed = Ready, 0, m.now, true
	m.observe(&capability.Observation{Catalog: catalog(e.Catalog)})
}

// catalog tells an empty catalog from one that is not known.
func catalog(tools []capability.ObservedTool) []capability.ObservedTool {
	if tools == nil {
		return []capability.ObservedTool{}
	}
	return tools
}

func (e StartFailed) apply(m *serverStep) {
	if e.Generation != m.generation || m.phase != Starting {
		return
	}
	m.failed(e.Code, e.Reason, e.Random)
	m.refuse(m.startFailed(), all)
}

// failed counts a failure and begins the wait for the next attempt.
func (m *serverStep) failed(code vakerr.Code, reason string, random float64) {
	if code == "" {
		code = vakerr.ServerStartFailed
	}
	m.failures++
	m.failure = vakerr.New(code, "%s", reason)
	m.nextAttempt = m.now.Add(m.config.Backoff.Delay(m.failures, random))
	m.phase = BackingOff
	m.observe(m.learned(reason))
}

func (m *serverStep) startFailed() *vakerr.Error {
	wait := m.nextAttempt.Sub(m.now)
	return vakerr.New(m.failure.Code, "server %q failed to start: %s; next attempt in %d s", m.config.Name, m.failure.Reason,
		max(1, int(math.Ceil(wait.Seconds())))).
		WithRemedy("check [mcp.servers.%s]; an operator finds more with: vak-actors servers logs %s", m.config.Name, m.config.Name).WithRetryAfter(wait)
}

// apply drops the connection. Demands that wait start it again, each at most once. One that died before it answered
// anything has failed to start for all that anybody can tell, so that a crash after each start is not tried at full
// speed.
func (e Died) apply(m *serverStep) {
	if e.Generation != m.generation {
		return
	}
	switch m.phase {
	case Starting:
		StartFailed{Generation: e.Generation, Code: vakerr.ServerDied, Reason: e.Reason, Random: e.Random}.apply(m)
	case Ready:
		m.inFlight, m.listing = 0, false
		m.died(e)
	case Draining, Stopping:
		m.inFlight, m.phase = 0, Cold
	case Cold, Idle, BackingOff:
	}
}

func (m *serverStep) died(e Died) {
	if !m.answered {
		m.failed(vakerr.ServerDied, e.Reason, e.Random)
		m.refuse(m.startFailed(), all)
		return
	}
	m.failures, m.phase = 0, Cold
	m.refuse(vakerr.New(vakerr.ServerDied, "server %q died: %s", m.config.Name, e.Reason).
		WithRemedy("try again; it is started anew"), func(w waiter) bool { return w.restarted })
	restarted := make([]waiter, len(m.waiting))
	for i, w := range m.waiting {
		w.restarted = true
		restarted[i] = w
	}
	m.waiting = restarted
}

func (e Closed) apply(m *serverStep) {
	if e.Generation == m.generation && m.phase == Stopping {
		m.phase = Cold
		if m.idled {
			m.phase = Idle
		}
	}
}

func (e ListChanged) apply(m *serverStep) {
	if e.Generation != m.generation || m.phase != Ready && m.phase != Draining {
		return
	}
	if m.listing {
		m.relist = true
		return
	}
	m.forget()
}

// forget makes the catalog unknown; the next use learns it again.
func (m *serverStep) forget() {
	m.listed = false
	o := m.learned(m.failureObserved())
	o.Catalog = nil
	m.observe(o)
}

func (m *serverStep) failureObserved() string {
	if m.observed == nil {
		return ""
	}
	return m.observed.Failure
}

func (e Listed) apply(m *serverStep) {
	if e.Generation != m.generation || !m.listing {
		return
	}
	m.listing = false
	switch {
	case e.Failure != "":
		m.relist = false
		m.observe(m.learned(e.Failure))
		m.refuse(vakerr.New(vakerr.ServerProtocol, "server %q cannot list its tools: %s", m.config.Name, e.Failure).
			WithRemedy("try again; an operator finds more with: vak-actors servers logs %s", m.config.Name), func(w waiter) bool { return w.List })
	case m.relist:
		// What was listed may be old already. It is listed once more and then believed, or a server that announces
		// changes without end would never be.
		m.relist, m.listing = false, true
		m.do(List{m.generation})
	default:
		m.listed = true
		m.observe(&capability.Observation{Catalog: catalog(e.Catalog)})
	}
}

func (e Stop) apply(m *serverStep) {
	m.refuse(vakerr.New(vakerr.ServerStopped, "server %q was stopped: %s", m.config.Name, e.Reason).
		WithRemedy("try again later, or ask an operator"), all)
	m.replace(e.Drain)
}

// replace ends the connection, if there is one.
func (m *serverStep) replace(drain bool) {
	m.idled = false
	switch m.phase {
	case Starting:
		m.close(Cold)
	case Ready, Draining:
		if drain && m.inFlight > 0 {
			m.phase = Draining
			return
		}
		m.close(Cold)
	case Idle, BackingOff:
		m.phase = Cold
	case Cold, Stopping:
	}
}

func (e ConfigChanged) apply(m *serverStep) {
	m.config = e.Config.withDefaults()
	m.observed, m.failure, m.failures, m.nextAttempt = nil, nil, 0, time.Time{}
	m.replace(true)
}

func (Tick) apply(m *serverStep) {
	m.refuse(vakerr.New(vakerr.DeadlineExceeded, "server %q was not ready in time: it is %s", m.config.Name, m.phase).
		WithRemedy("try again with a longer timeout"),
		func(w waiter) bool { return !w.Deadline.IsZero() && !m.now.Before(w.Deadline) })
	ttl := m.config.IdleTTL
	if m.phase == Ready && m.inFlight == 0 && len(m.waiting) == 0 && ttl > 0 && !m.now.Before(m.lastUse.Add(ttl)) {
		m.idled = true
		m.close(Idle)
	}
}

// ServerEffect is something the owner of a server has to do.
type ServerEffect interface{ fmt.Stringer }

// Start asks for a connection of that generation; Started, StartFailed or Died answers.
type Start struct{ Generation uint64 }

// Close ends a connection, calls in flight included; Closed answers, when nothing of it lives any more.
type Close struct {
	Generation uint64
	Then       ServerPhase // for the log: Idle after an eviction, Cold otherwise
}

// List asks that connection for its catalog; Listed answers.
type List struct{ Generation uint64 }

// Grant lets demands send their calls on that connection; each is Released once.
type Grant struct {
	Generation uint64
	IDs        []DemandID
}

// Refuse answers demands that get no connection.
type Refuse struct {
	IDs []DemandID
	Err *vakerr.Error
}

// Observe publishes what demand taught; nil: what was known is forgotten.
type Observe struct{ Observation *capability.Observation }

func (e Start) String() string { return fmt.Sprintf("start %d", e.Generation) }
func (e Close) String() string { return fmt.Sprintf("close %d, then %s", e.Generation, e.Then) }
func (e List) String() string  { return fmt.Sprintf("list %d", e.Generation) }
func (e Grant) String() string { return fmt.Sprintf("grant %v on %d", e.IDs, e.Generation) }
func (e Refuse) String() string {
	return fmt.Sprintf("refuse %v: %v", e.IDs, e.Err)
}
func (e Observe) String() string {
	if e.Observation == nil {
		return "observe nothing"
	}
	text := "observe"
	if e.Observation.Catalog == nil {
		text += " no catalog"
	}
	for _, t := range e.Observation.Catalog {
		text += " " + t.Name
	}
	if e.Observation.Failure != "" {
		text += " failure " + fmt.Sprintf("%q", e.Observation.Failure)
	}
	return text
}
