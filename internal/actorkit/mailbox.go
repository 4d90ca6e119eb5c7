package actorkit

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// node is one queued message of a lane.
type node struct {
	next *node
	msg  any
}

// lane is a FIFO list; the zero value is empty and costs 16 bytes, so that idle actors stay small.
type lane struct{ head, tail *node }

func (l *lane) push(n *node) {
	if l.tail == nil {
		l.head, l.tail = n, n
		return
	}
	l.tail.next = n
	l.tail = n
}

func (l *lane) pop() any {
	n := l.head
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	return n.msg
}

// refusal says why a message was not queued.
type refusal uint8

const (
	accepted refusal = iota
	refusedClosed
	refusedFull
)

// mailbox is the queue of one actor: system before control before bounded user lane. It implements protoactor's Mailbox.
//
// One lock makes every decision atomic: accept or refuse, take the next message or go idle, close and empty. So a message
// is either refused or handled or handed to the dead letters, and never lost between two of those (hazards H5, H8).
type mailbox struct {
	owner *cell

	mu        sync.Mutex // guards all below; nothing else is locked while it is held
	system    lane       // the kit's and protoactor's lifecycle messages; never refused
	control   lane
	user      lane
	queued    int  // length of the user lane
	bound     int  // of the user lane, for messages from others
	inflight  int  // effects that have not returned
	busy      bool // a worker runs or was called; true until Start, so that nothing runs on a half-built actor (H6)
	suspended bool // the actor failed and its parent has not decided: only system messages are taken
	closed    bool // the actor is stopping: nothing but system messages is accepted or handed out
}

// post queues a message for Receive. bounded is false for what an actor brought upon itself (timers, effects).
func (m *mailbox) post(msg any, bounded bool) refusal {
	n := &node{msg: msg}
	overtakes := isControl(msg)
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return refusedClosed
	case overtakes:
		m.control.push(n)
	case bounded && m.queued >= m.bound:
		m.mu.Unlock()
		return refusedFull
	default:
		m.user.push(n)
		m.queued++
	}
	m.unlockAndWake(!m.suspended)
	return accepted
}

// isControl looks through the envelopes a message may travel in (H7).
func isControl(msg any) bool {
	switch e := msg.(type) {
	case *ask:
		msg = e.msg
	case *timer:
		msg = e.msg
	}
	_, ok := msg.(Control)
	return ok
}

// unlockAndWake releases the lock and calls a worker if there is work and none is at it.
func (m *mailbox) unlockAndWake(work bool) {
	wake := work && !m.busy
	m.busy = m.busy || wake
	m.mu.Unlock()
	if wake {
		m.owner.sys.workers.schedule(m)
	}
}

// next takes the most urgent message, or goes idle.
func (m *mailbox) next() (msg any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.system.head != nil:
		return m.system.pop(), true, true
	case m.suspended:
	case m.control.head != nil:
		return m.control.pop(), false, true
	case m.user.head != nil:
		m.queued--
		return m.user.pop(), false, true
	}
	m.busy = false
	return nil, false, false
}

// run is called by a worker and handles messages until none is left.
func (m *mailbox) run() {
	for m.runGuarded() {
	}
}

// runGuarded handles messages until none is left (false) or one of them failed (true).
func (m *mailbox) runGuarded() (more bool) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			m.owner.failed(newPanicError(v))
			more = true
			return
		}
		// Goexit: this goroutine is lost, another must go on.
		m.owner.failed(newPanicError(errGoexit))
		m.owner.sys.workers.schedule(m)
	}()
	for {
		msg, system, ok := m.next()
		switch {
		case !ok:
			returned = true
			return false
		case system:
			m.owner.handleSystem(msg)
		default:
			m.owner.handle(msg)
		}
	}
}

// close refuses all further messages and returns those that were queued, in the order they would have been handled.
func (m *mailbox) close() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var left []any
	for _, l := range []*lane{&m.control, &m.user} {
		for l.head != nil {
			left = append(left, l.pop())
		}
	}
	m.queued = 0
	return left
}

func (m *mailbox) suspend(yes bool) {
	m.mu.Lock()
	m.suspended = yes
	m.mu.Unlock()
}

// effectStarted counts one more effect the stop must wait for.
func (m *mailbox) effectStarted() {
	m.mu.Lock()
	m.inflight++
	m.mu.Unlock()
}

// effectReturned posts the result; to an actor that is stopping it only says that there is one less to wait for.
func (m *mailbox) effectReturned(result any) {
	m.mu.Lock()
	m.inflight--
	last := m.closed && m.inflight == 0
	m.mu.Unlock()
	switch {
	case last:
		m.PostSystemMessage(finishStop{})
	case result != nil:
		m.post(result, false) // refused when the stop began meanwhile: nobody is left to tell
	}
}

func (m *mailbox) effectsInFlight() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inflight
}

// PostSystemMessage queues a lifecycle message.
func (m *mailbox) PostSystemMessage(msg any) {
	n := &node{msg: msg}
	m.mu.Lock()
	m.system.push(n)
	m.unlockAndWake(true)
}

// PostUserMessage takes a message that comes through protoactor's registry. It cannot report a refusal to the sender
// directly: an envelope's sender is answered with a dead letter response, anything else is counted as a dead letter.
// Batches are not unpacked (H16), poison pills are ordinary messages.
func (m *mailbox) PostUserMessage(msg any) {
	if env, ok := msg.(*actor.MessageEnvelope); ok {
		if msg = env.Message; env.Sender != nil {
			msg = &ask{msg: env.Message, sender: env.Sender, proto: m.owner.sys.proto}
		}
	}
	if msg == nil || m.post(msg, true) != accepted {
		m.owner.deadLetter(msg)
	}
}

// RegisterHandlers binds the mailbox to protoactor's context. Its dispatcher is ignored: the System's workers run us.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.owner.proto = invoker.(protoContext)
}

// Start lets the first worker in. Until then messages are queued only.
func (m *mailbox) Start() {
	m.mu.Lock()
	m.busy = false
	m.unlockAndWake(true)
}

// UserMessageCount is the number of queued messages that are neither system nor control.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queued
}
