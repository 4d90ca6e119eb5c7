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
	mu     sync.RWMutex
	byID   map[int64]*activeCall
	ghosts []ghost // calls that were given up and that the server may still work on
}

// ghost is the owner of a call that was given up. What the server then says could be about it.
type ghost struct {
	owner string
	until time.Time
}

const (
	ghostTime = time.Minute
	maxGhosts = 1024 // beyond it nothing is attributed until the oldest are gone
)

func (s *calls) enter(c *activeCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[c.id] = c
}

// leave takes a call out; one that was given up stays as a ghost.
func (s *calls) leave(id int64, gaveUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	delete(s.byID, id)
	now := time.Now()
	s.ghosts = slices.DeleteFunc(s.ghosts, func(g ghost) bool { return now.After(g.until) })
	if gaveUp && c != nil && len(s.ghosts) < maxGhosts {
		s.ghosts = append(s.ghosts, ghost{c.owner, now.Add(ghostTime)})
	}
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
	if newest == nil || len(s.ghosts) >= maxGhosts {
		return nil
	}
	now := time.Now()
	if slices.ContainsFunc(s.ghosts, func(g ghost) bool { return g.owner != newest.owner && now.Before(g.until) }) {
		return nil
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
func (s *calls) progressed(params []byte, redact *Redactor) {
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
		c.client.Tell("notifications/progress", redact.JSON(bytes.Clone(params)))
	}
}

// callTimer is the time a call has left. It stands still while the server waits for the client's answer.
type callTimer struct {
	timer *time.Timer

	mu    sync.Mutex // guards what follows
	left  time.Duration
	since time.Time // the timer runs since
	asked int       // questions that wait for the client
	all   int       // questions so far
}

// maxAsked bounds the questions of a server in one call.
const maxAsked = 100

// withTimer is a context that ends with errTooLate when a server has not answered in time.
func withTimer(ctx context.Context, allowed time.Duration) (context.Context, *callTimer, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &callTimer{left: allowed, since: time.Now()}
	p.timer = time.AfterFunc(allowed, func() { cancel(errTooLate) })
	return ctx, p, func() { p.timer.Stop(); cancel(nil) }
}

var errTooLate = vakerr.New(vakerr.DeadlineExceeded, "the server did not answer in time")

// pause stops the time for a question, and reports whether the call may ask one more.
func (p *callTimer) pause() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all++; p.all > maxAsked {
		return false
	}
	if p.asked++; p.asked == 1 {
		p.timer.Stop()
		p.left -= time.Since(p.since)
	}
	return true
}

func (p *callTimer) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked--; p.asked == 0 {
		p.since = time.Now()
		p.timer.Reset(max(p.left, 0))
	}
}

// levelTime is how long a call waits for a server to take a level.
const levelTime = 2 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	_, _ = c.roundTrip(ctx, c.nextID.Add(1), "logging/setLevel", json.RawMessage(`{"level":"`+levels[wanted]+`"}`), nil) // a server without is none the worse
}
