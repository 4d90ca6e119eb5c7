package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

const (
	maxCalls     = 256     // in flight on one connection
	maxToolName  = 1 << 10 // bytes
	maxArguments = 4 << 20 // bytes, as Dispatch allows

	// beat is how often a client that asked for progress hears that its call still runs; clients that give up on silence
	// allow a minute and more.
	beat = 10 * time.Second
)

// call is a tools/call on its way.
type call struct {
	id        json.RawMessage
	name      string
	arguments json.RawMessage
	token     json.RawMessage // of the progress its client asked for; empty: none
	extra     json.RawMessage // what its server gets besides; empty: nothing
	client    string          // who the runtime asks what the server wants to know; empty: nobody
}

// readCall reads the params of a tools/call.
func readCall(m message) (call, *rpcError) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(m.Params) == 0 || json.Unmarshal(m.Params, &p) != nil {
		return call{}, invalidParams("tools/call needs the name of a tool and an object of arguments")
	}
	c := call{id: m.ID, name: p.Name, arguments: p.Arguments}
	if p.Name == "" || len(p.Name) > maxToolName {
		return c, invalidParams("tools/call needs the name of a tool, at most %d bytes", maxToolName)
	}
	if !bytes.Contains(m.Params, []byte(`"_meta"`)) && !bytes.Contains(m.Params, []byte(`"requestState"`)) {
		return c, nil
	}
	var bad *rpcError
	c.extra, bad = extraOf(m.Params)
	c.token = progressToken(m.Params)
	return c, bad
}

// prepareCall enters a call among those in flight.
func (s *session) prepareCall(m message, by asker) ([]byte, func() []byte) {
	c, bad := readCall(m)
	if bad != nil {
		return bad.frame(m.ID), nil
	}
	ctx, cancel := context.WithCancelCause(s.life)
	if err := s.enter(by.key, cancel); err != nil {
		cancel(err.err)
		return err.frame(m.ID), nil
	}
	return nil, func() []byte {
		defer s.leaveCall(by.key, cancel)
		client, name, leave := s.attend(c.token, by)
		defer leave()
		c.client = name
		stop := client.heartbeat()
		defer stop()
		answer := s.callTool(ctx, c, by)
		if context.Cause(ctx) == errCancelled { //nolint:errorlint // this very value: another cancellation is answered
			return nil
		}
		return answer
	}
}

func (s *session) enter(key string, cancel context.CancelCauseFunc) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[key]; taken {
		return invalidRequest("a call with this id is in flight")
	}
	if len(s.calls) >= maxCalls {
		return failure(vakerr.New(vakerr.TooMany, "%d calls are in flight on this connection", maxCalls).
			WithRemedy("wait for one of them"))
	}
	s.calls[key] = cancel
	return nil
}

// leaveCall takes a call out; the last one of a burst lets the list be looked at.
func (s *session) leaveCall(key string, cancel context.CancelCauseFunc) {
	cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, key)
	s.lookLocked()
}

// busy reports whether calls are in flight.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

// callTool has the session make the call and returns the answer. What refuses or fails a call is a result, which the
// model sees; only a tool that does not exist is an error of the protocol.
func (s *session) callTool(ctx context.Context, c call, by asker) []byte {
	if len(c.arguments) > maxArguments {
		return by.refusal(c.id, vakerr.New(vakerr.TooLarge, "the arguments have %d bytes, more than the %d allowed",
			len(c.arguments), maxArguments).WithRemedy("send less at once"))
	}
	result, refused, err := s.dispatch(ctx, c)
	switch {
	case len(refused) > 0:
		return errorFrame(c.id, refused)
	case vakerr.CodeOf(err) == vakerr.UnknownTool && !s.lists(ctx, c.name):
		return failure(err).frame(c.id)
	case err != nil:
		return by.refusal(c.id, s.public(err))
	case len(result) == 0:
		return by.refusal(c.id, vakerr.New(vakerr.Internal, "the tool answered with nothing"))
	}
	return by.result(c.id, false, result)
}

// dispatch returns the tool's result as it came, or why there is none; refused is an error of the server that is the client's
// to mend.
func (s *session) dispatch(ctx context.Context, c call) (result, refused json.RawMessage, err error) {
	command := &sessionv1.Dispatch{
		Tenant: s.Tenant, SessionId: s.runtime.id, Name: s.address(c.name), ArgumentsJson: c.arguments,
		ExtraJson: c.extra, Client: c.client,
	}
	err = s.within(ctx, func() error {
		answer, err := protocol.Call[*sessionv1.DispatchResult](ctx, s.door, command)
		if err != nil {
			return err
		}
		if refusal := answer.GetRefusal(); refusal != nil {
			refused = answer.GetErrorJson()
			return wire.Error(refusal)
		}
		result = answer.GetResultJson()
		return nil
	})
	return result, refused, err
}

// public is the face of err that a client sees; what it hides is logged.
func (s *session) public(err error) *vakerr.Error {
	e := vakerr.From(err)
	if e.Code == vakerr.Internal {
		s.log.Error("a call failed for an internal reason", "session", s.runtime.id, "error", err, "cause", e.Unwrap())
	}
	return e
}

// refusal is the answer to a call that was refused or failed.
func (by asker) refusal(id json.RawMessage, err *vakerr.Error) []byte {
	return by.result(id, false, op.Failure(err).Content)
}

// heartbeat says, at each beat, that the call still runs, to a client that asked for progress and hears none from the
// server. When the returned function has returned, nothing more is said: clients take progress of an answered call for a
// breach of the protocol.
func (c *caller) heartbeat() (stop func()) {
	if c == nil || len(c.token) == 0 {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{}) // closed by stop, and by the goroutine
	go func() {
		defer close(done)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for beats := 1; ; beats++ {
			select {
			case <-quit:
				return
			case <-tick.C:
				if c.heard.Load() {
					return
				}
				c.to.offer(progressFrame(c.token, beats))
			}
		}
	}()
	return func() { close(quit); <-done }
}

// progressFrame says that a call still runs. Its number is small, as progress has to grow and the server may tell its own yet.
func progressFrame(token json.RawMessage, beats int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%g,"message":"still running"}}`,
		token, float64(beats)/1e6)
}
