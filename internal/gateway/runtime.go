package gateway

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	channel = "mcp" // whose policy rules what MCP clients see

	// askTimeout bounds every question to the runtime but a call, which its tool's own limit bounds.
	askTimeout = 30 * time.Second

	maxAttribute = 256 // bytes, as OpenSession allows
)

// runtimeSession is the session of the runtime that a connection calls through. It is opened when it is first needed.
type runtimeSession struct {
	id string

	// opened counts openings: 0 while it is not open. Those who find it gone name the opening they used, so that of many
	// calls one opens it again.
	opened atomic.Uint64

	turnstile chan struct{} // holds a token while someone opens

	mu     sync.Mutex // guards what follows
	client string     // what the client says it is
	count  uint64     // openings so far
}

func (r *runtimeSession) init(id string) {
	r.id, r.turnstile = id, make(chan struct{}, 1)
}

// describe keeps what a client says it is, for operators.
func (r *runtimeSession) describe(name, version string) {
	text := strings.TrimSpace(name + " " + version)
	if len(text) > maxAttribute {
		text = text[:maxAttribute]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = strings.ToValidUTF8(text, "")
}

// asking bounds a question to the runtime.
func (s *session) asking() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.life, askTimeout)
}

// within calls use, which asks the runtime something of this session, with the session open. Where the runtime does not
// know the session, as after a loss of data, it is opened once more and asked again: nothing has run then.
func (s *session) within(ctx context.Context, use func() error) error {
	for again := true; ; again = false {
		opening, err := s.open(ctx)
		if err != nil {
			return err
		}
		err = use()
		if !again || vakerr.CodeOf(err) != vakerr.SessionNotFound {
			return err
		}
		s.runtime.opened.CompareAndSwap(opening, 0)
	}
}

// open makes sure that the session is open and returns which opening that was.
func (s *session) open(ctx context.Context) (uint64, error) {
	r := &s.runtime
	if n := r.opened.Load(); n != 0 {
		return n, nil
	}
	select {
	case r.turnstile <- struct{}{}:
		defer func() { <-r.turnstile }()
	case <-ctx.Done():
		return 0, vakerr.From(context.Cause(ctx))
	}
	if n := r.opened.Load(); n != 0 {
		return n, nil
	}
	command := &sessionv1.OpenSession{Tenant: s.Tenant, SessionId: r.id, Channel: channel, WritePaths: s.writePaths()}
	r.mu.Lock()
	if r.client != "" {
		command.Attributes = map[string]string{"client": r.client}
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := protocol.Call[*sessionv1.OpenSessionResult](ctx, s.door, command); err != nil {
		return 0, vakerr.From(err)
	}
	r.mu.Lock()
	r.count++
	n := r.count
	r.mu.Unlock()
	r.opened.Store(n)
	return n, nil
}

// leave closes the runtime's session where no client can come back to it: its id was made here, for one connection. It
// is called after close.
func (s *session) leave(ctx context.Context) {
	if s.runtime.opened.Load() == 0 || !strings.HasPrefix(s.runtime.id, ownPrefix) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	if _, err := s.door.Ask(ctx, &sessionv1.CloseSession{Tenant: s.Tenant, SessionId: s.runtime.id}); err != nil {
		s.log.Warn("cannot close a session whose client left", "session", s.runtime.id, "code", vakerr.CodeOf(err))
	}
}
