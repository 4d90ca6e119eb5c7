package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// front is what all sessions of a process share. It is never changed.
type front struct {
	door    protocol.Door
	version string // of the program, as clients are told
	log     *slog.Logger
	looks   chan struct{} // bounds how many sessions look at their list at once; a token is put in while looking
}

// maxLooks bounds the lists that are read at once after a publication, which concerns every session of its tenant.
const maxLooks = 16

func newFront(door protocol.Door, version string, log *slog.Logger) *front {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &front{door: door, version: version, log: log, looks: make(chan struct{}, maxLooks)}
}

// outlet takes frames for a client. It is safe for concurrent use.
type outlet interface {
	// write takes a frame over. It may block while the client does not read.
	write(frame []byte)
	// offer takes a frame over, or drops it and returns false. It does not block.
	offer(frame []byte) (taken bool)
}

// session is one MCP connection, whatever carries it. It is safe for concurrent use.
type session struct {
	*front
	endpoint
	runtime runtimeSession

	unasked outlet // for frames that answer no request

	life        context.Context //nolint:containedctx // the connection's: calls outlive the request that brought them
	cancel      context.CancelCauseFunc
	work        sync.WaitGroup // calls and the watch; added to under mu, and not once closed is set
	unsubscribe func()

	mu     sync.Mutex // guards what follows
	closed bool
	calls  map[string]context.CancelCauseFunc // in flight, by the asker's key: in the legacy era the id as it came
	list   listing
	peer   peer

	subscribed map[string]context.CancelCauseFunc // open subscriptions/listen on pipes, by the asker's key

	ear ear

	questions questions // of servers, that the client has not answered
	mirrored  mirrored
}

// attach opens a connection to an endpoint. ctx carries values only; the connection ends by close. runtimeID names the
// session of the runtime, which is opened when it is first needed. Errors: those of Door.Subscribe, among them
// unknown_tenant.
func (f *front) attach(ctx context.Context, at endpoint, runtimeID string, unasked outlet) (*session, error) {
	s := &session{front: f, endpoint: at, unasked: unasked, calls: map[string]context.CancelCauseFunc{}, subscribed: map[string]context.CancelCauseFunc{}}
	s.runtime.init(runtimeID)
	s.life, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	unsubscribe, err := f.door.Subscribe(at.Tenant, s.changed)
	if err != nil {
		s.cancel(err)
		return nil, vakerr.From(err)
	}
	s.unsubscribe = unsubscribe
	return s, nil
}

// close ends the connection: its calls are cancelled with cause, and when it returns nothing of it runs any more. It may
// be called again.
func (s *session) close(cause *vakerr.Error) {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	leave := s.ear.leave
	s.mu.Unlock()
	s.cancel(cause)
	if first {
		s.unsubscribe()
	}
	if first && leave != nil {
		leave()
	}
	s.work.Wait()
}

// begin counts one more piece of work, unless the connection is closed; the worker calls s.work.Done.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// accept takes a message of the legacy era in. Messages of a connection are accepted in the order in which they came, as a
// cancellation concerns only what came before it; accept does not block. The answer is complete when work is nil, and empty
// for what is not answered. Otherwise work, called once from any goroutine, blocks and returns it. stream is the request's
// own, for frames that belong to it; nil: there is none.
func (s *session) accept(m message, stream outlet) (answer []byte, work func() []byte) {
	if !m.request() {
		s.notified(m)
		return nil, nil
	}
	return s.acceptFrom(m, s.legacyAsker(m, stream))
}

// legacyAsker is the client of the connection, as it is known now.
func (s *session) legacyAsker(m message, stream outlet) asker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return asker{key: string(m.ID), peer: s.peer, to: stream}
}

// acceptFrom is accept for a request of whoever asks, in either era.
func (s *session) acceptFrom(m message, by asker) (answer []byte, work func() []byte) {
	if !s.begin() {
		return failure(errClosing).frame(m.ID), nil
	}
	answer, rest := s.answer(m, by)
	if rest == nil {
		s.work.Done()
		return answer, nil
	}
	return nil, func() []byte {
		defer s.work.Done()
		return rest()
	}
}

var errClosing = vakerr.New(vakerr.ShuttingDown, "the connection is being closed").WithRemedy("connect again")

// notified hears what is not answered. notifications/initialized asks for nothing; unknown notifications are ignored, as
// JSON-RPC has it.
func (s *session) notified(m message) {
	if m.Method == "" {
		s.questions.answered(m)
		return
	}
	if m.Method != string(mcp.MethodNotificationCancelled) {
		return
	}
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.calls[string(p.ID)]
	if cancel == nil {
		cancel = s.subscribed[string(p.ID)]
	}
	s.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

// errCancelled is the cause of a call's end that its own client asked for: nothing is answered then.
var errCancelled = vakerr.New(vakerr.Canceled, "the client cancelled the call")
