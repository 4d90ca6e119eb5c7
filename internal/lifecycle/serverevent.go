package lifecycle

import (
	"math"
	"slices"
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
	Features   capability.Features
	Notes      []string // what it lacks, see capability.Observation
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
	Features   capability.Features
	Notes      []string // what it lacks
	Failure    string   // why there is none; public
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
		m.do(Refuse{[]DemandID{d.ID}, m.notStarted(vakerr.ServerBackingOff)})
		return
	case m.phase == BackingOff:
		m.phase = Cold
	case len(m.waiting) >= m.config.MaxWaiting:
		m.do(Refuse{[]DemandID{d.ID}, vakerr.New(vakerr.QueueFull, "%d calls wait for server %q already", len(m.waiting), m.config.Name).
			WithRemedy("try again when some of them have finished")})
		return
	}
	m.waiting = append(slices.Clip(m.waiting), waiter{d, d.Again})
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
	m.phase, m.inFlight, m.lastUse = Ready, 0, m.now
	m.listed = !m.relist
	m.failedBefore, m.failures = m.failures, 0
	m.observe(&capability.Observation{Catalog: catalog(e.Catalog), Features: e.Features, Notes: e.Notes})
}

// catalog tells an empty catalog from one that is not known.
func catalog(tools []capability.ObservedTool) []capability.ObservedTool {
	if tools == nil {
		return []capability.ObservedTool{}
	}
	return tools
}

func (e StartFailed) apply(m *serverStep) {
	switch {
	case e.Generation != m.generation:
		return
	case m.phase == Stopping:
		m.closed()
		return
	case m.phase != Starting:
		return
	}
	m.failed(e.Code, e.Reason, e.Random)
}

// failed counts a failure, begins the wait for the next attempt and refuses who waits.
func (m *serverStep) failed(code vakerr.Code, reason string, random float64) {
	if code == "" {
		code = vakerr.ServerStartFailed
	}
	m.failures++
	m.failure = reason
	m.nextAttempt = m.now.Add(m.config.Backoff.Delay(m.failures, random))
	m.phase = BackingOff
	m.observe(m.learned(reason))
	m.refuse(m.notStarted(code), all)
}

// notStarted tells the recorded reason and the whole seconds until the next attempt, at least one.
func (m *serverStep) notStarted(code vakerr.Code) *vakerr.Error {
	wait := m.nextAttempt.Sub(m.now)
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	return vakerr.New(code, "server %q failed to start: %s; next attempt in %d s", m.config.Name, m.failure, seconds).
		WithRemedy("check [mcp.servers.%s]; more is in: vak-actors servers logs %s", m.config.Name, m.config.Name).
		WithRetryAfter(wait)
}

// apply drops the connection of one that ran. Demands that wait start it again, each at most once. One that died before it answered
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
		m.inFlight = 0
		m.closed()
	case Cold, Idle, BackingOff:
	}
}

func (m *serverStep) died(e Died) {
	if !m.answered {
		m.failures = m.failedBefore
		m.failed(vakerr.ServerDied, e.Reason, e.Random)
		return
	}
	m.phase = Cold
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
		m.closed()
	}
}

func (m *serverStep) closed() {
	m.phase = Cold
	if m.idled {
		m.phase, m.idled = Idle, false
	}
}

func (e ListChanged) apply(m *serverStep) {
	switch {
	case e.Generation != m.generation:
	case m.phase == Starting || m.listing:
		m.relist = true // what the list under way returns may be old already
	case m.phase == Ready || m.phase == Draining:
		m.forget()
	}
}

// forget makes the catalog unknown; the next use learns it again.
func (m *serverStep) forget() {
	m.listed = false
	if m.observed != nil {
		m.observe(&capability.Observation{Failure: m.observed.Failure})
	}
}

func (e Listed) apply(m *serverStep) {
	if e.Generation != m.generation || !m.listing {
		return
	}
	m.listing = false
	switch {
	case e.Failure != "":
		m.again = false
		m.observe(m.learned(e.Failure))
		m.refuse(vakerr.New(vakerr.ServerProtocol, "server %q cannot list its tools: %s", m.config.Name, e.Failure).
			WithRemedy("try again; more is in: vak-actors servers logs %s", m.config.Name), func(w waiter) bool { return w.List })
	case m.relist && !m.again:
		m.again = true
		m.list()
	default:
		m.observe(&capability.Observation{Catalog: catalog(e.Catalog), Features: e.Features, Notes: e.Notes})
		// A server that announces changes without end must not make its callers wait without end: those who wait take
		// what there is, and the next use lists again.
		m.listed = true
		m.grant()
		m.listed, m.again = !m.relist, false
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
	m.observed, m.failure, m.failures, m.nextAttempt = nil, "", 0, time.Time{}
	m.replace(true)
}

func (Tick) apply(m *serverStep) {
	m.refuse(vakerr.New(vakerr.DeadlineExceeded, "server %q was not ready in time: it is %s", m.config.Name, m.phase).
		WithRemedy("try again with a longer timeout"),
		func(w waiter) bool { return !w.Deadline.IsZero() && !m.now.Before(w.Deadline) })
	if m.unused() && !m.now.Before(m.lastUse.Add(m.config.IdleTTL)) {
		m.idled = true
		m.close(Idle)
	}
}
