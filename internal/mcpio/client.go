package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Client is who a call is made for, as far as a server may turn to it while the call runs.
type Client interface {
	// Ask passes on a request of the server and returns the raw result. An *RPCError is passed to the server as it is,
	// any other error with its public words. It may block until ctx ends, which the end of the call brings about.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Tell passes on a notification that belongs to the call: progress, with our token, or a log message. It is called
	// from the read loop, so it only posts, and never once the call has returned. The client owns params.
	Tell(method string, params json.RawMessage)
	// Capabilities is the object of capabilities that the client declared; empty: none.
	Capabilities() json.RawMessage
	// TakesQuestions reports whether the client answers the result input_required by itself, with another call.
	TakesQuestions() bool
	// WantsProgress reports whether the client asked for progress.
	WantsProgress() bool
	// LogLevel is the least level of log messages that the client wants; empty: it did not say.
	LogLevel() string
}

// activeCall is a request of ours in flight that is made for somebody.
type activeCall struct {
	id     int64
	owner  string          // of whom calls may be told apart: a session
	client Client          // nil: the owner answers nothing
	ctx    context.Context //nolint:containedctx // of the call: it ends what the server asks within it
	clock  *callTimer
}

// calls are those in flight on a connection. Its lock is read-held while a client is told something, so that nothing is
// told once its call has returned.
type calls struct {
	mu   sync.RWMutex
	byID map[int64]*activeCall
}

func (s *calls) enter(c *activeCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[c.id] = c
}

func (s *calls) leave(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// attributeLocked finds the call that something the server says of its own accord belongs to: the one on whose stream it
// came, or else the newest of the only owner that has calls in flight. Nil where that is nobody, or could be several.
func (s *calls) attributeLocked(id int64) *activeCall {
	if id != 0 {
		return s.byID[id]
	}
	var newest *activeCall
	for _, c := range s.byID {
		switch {
		case newest == nil || c.id > newest.id && c.owner == newest.owner:
			newest = c
		case c.owner != newest.owner:
			return nil
		}
	}
	return newest
}

func (s *calls) attribute(id int64) *activeCall {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.attributeLocked(id)
}

// tell hands a notification to the call it belongs to, if there is one that hears it.
func (s *calls) tell(id int64, method string, params []byte) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.attributeLocked(id); c != nil && c.client != nil {
		c.client.Tell(method, bytes.Clone(params))
	}
}

// progressed hands progress to the call whose token it names. Progress of a call that is over, or of none of ours, is
// dropped.
func (s *calls) progressed(params []byte) {
	var p struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, err := strconv.ParseInt(string(numericID(p.Token)), 10, 64)
	if err != nil {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.byID[id]; c != nil && c.client != nil && c.client.WantsProgress() {
		c.client.Tell("notifications/progress", bytes.Clone(params))
	}
}

// callTimer is the time a call has left. It stands still while the server waits for the client's answer.
type callTimer struct {
	allowed time.Duration
	timer   *time.Timer

	mu    sync.Mutex // guards asked
	asked int        // questions that wait for the client
}

// withTimer is a context that ends with errTooLate when a server has not answered in time.
func withTimer(ctx context.Context, allowed time.Duration) (context.Context, *callTimer, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &callTimer{allowed: allowed}
	p.timer = time.AfterFunc(allowed, func() { cancel(errTooLate) })
	return ctx, p, func() { p.timer.Stop(); cancel(nil) }
}

var errTooLate = vakerr.New(vakerr.DeadlineExceeded, "the server did not answer in time")

func (p *callTimer) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.asked == 1 {
		p.timer.Stop()
	}
}

func (p *callTimer) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked--; p.asked == 0 {
		p.timer.Reset(p.allowed)
	}
}

// levels of log messages, least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// raiseLevel has a legacy server send log messages of the level that a client wants, if it was told less until now. What
// another client of the connection wants less of, that client is not shown. A modern server is told with each request.
func (c *Conn) raiseLevel(ctx context.Context, client Client) {
	if client == nil || c.hello.era != EraLegacy || !c.hello.logs {
		return
	}
	wanted := slices.Index(levels, client.LogLevel())
	if wanted < 0 {
		return
	}
	for {
		set := c.level.Load() // 0: nothing was asked for; else the index and one
		if set != 0 && int(set) <= wanted+1 {
			return
		}
		if c.level.CompareAndSwap(set, int32(wanted)+1) {
			break
		}
	}
	_, _ = c.roundTrip(ctx, c.nextID.Add(1), "logging/setLevel", json.RawMessage(`{"level":"`+levels[wanted]+`"}`), nil) // a server without is none the worse
}
