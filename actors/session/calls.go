package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

const (
	maxArguments = 4 << 20 // bytes
	maxExtra     = 1 << 20 // bytes
)

func (s *session) dispatch(c *actorkit.Context, m *sessionv1.Dispatch, by command) {
	switch {
	case len(m.GetArgumentsJson()) > maxArguments:
		by.reply.Reply(vakerr.New(vakerr.TooLarge, "the arguments have %d bytes, at most %d are taken", len(m.GetArgumentsJson()), maxArguments))
		return
	case len(m.GetExtraJson()) > maxExtra:
		by.reply.Reply(vakerr.New(vakerr.TooLarge, "what the call carries besides has %d bytes, at most %d are taken", len(m.GetExtraJson()), maxExtra))
		return
	case s.life.InFlight() >= maxCalls:
		by.reply.Reply(vakerr.New(vakerr.TooMany, "%d calls of session %s are in flight", maxCalls, s.id).
			WithRemedy("wait for results before calling more"))
		return
	}
	if m.GetTurnId() == "" {
		s.leaveOldBurst(c)
		if s.life.Turn() == "" && !s.openBurst(c, by) {
			return
		}
	}
	life, err := s.life.Call(m.GetTurnId())
	if err != nil {
		by.reply.Reply(err)
		return
	}
	s.life = life
	s.start(c, m, by)
}

// leaveOldBurst ends an implicit turn when the epoch has moved under it, so that calls which overlap without end do not
// hold a session on an old set. Its calls in flight go on under what they were bound to.
func (s *session) leaveOldBurst(c *actorkit.Context) {
	if !s.life.Implicit() || s.bound == nil || s.lent != nil || s.bound.admission.Epoch == s.Gate.View().Snapshot.Epoch {
		return
	}
	s.append(c, false, s.orFail(c), s.turnEnded("the epoch moved"))
	s.life = s.life.Abandon()
	s.unbind()
}

// openBurst binds an implicit turn to the current epoch. It returns false when the command has to wait for it: then it
// is handled again once the turn is bound.
func (s *session) openBurst(c *actorkit.Context, by command) bool {
	view := s.Gate.View()
	if view.Policy == nil {
		by.reply.Reply(notReady())
		return false
	}
	a := s.known(view)
	if a == nil {
		s.binding = true
		s.waiting = append([]command{by}, s.waiting...)
		c.Go(func(context.Context) any {
			s.Admissions.For(view, s.caller)
			return turnBound{turn: &boundTurn{}, err: errAgain}
		})
		return false
	}
	offer, err := a.Everything()
	if err != nil {
		by.reply.Reply(err)
		return false
	}
	if len(s.memory.loaded) > 0 {
		offer.Surface, _ = offer.Surface.Promote(a.Admitted, s.memory.loaded...)
	}
	s.life = s.life.Burst(s.nextID("t"))
	s.bound = &boundTurn{
		id: s.life.Turn(), admission: a, offer: offer, format: turn.FormatMCP,
		discovery: dispatch.NewDiscovery(offer.Surface.Loaded, &s.searched),
	}
	_, bodies := s.turnBegan(turnBound{turn: s.bound})
	s.append(c, false, s.orFail(c), bodies...)
	return true
}

// known is the admission of the session in view, where it was made before. It does not block.
func (s *session) known(view *turn.View) *dispatch.Admission {
	if s.lent != nil {
		return s.lent.admission
	}
	return s.Admissions.Known(view, s.caller)
}

// admission is the admission of the session in view; a worker's is that of the turn it serves, whatever the view. It may
// compute for milliseconds and touches nothing of the actor but what never changes.
func (s *session) admission(view *turn.View) *dispatch.Admission {
	if s.lent != nil {
		return s.lent.admission
	}
	return s.Admissions.For(view, s.caller)
}

// errAgain says that an admission is made now, and the commands that wait can be handled.
var errAgain = vakerr.New(vakerr.CapabilityUnavailable, "the set moved while a call began").WithRemedy("try again")

func (s *session) start(c *actorkit.Context, m *sessionv1.Dispatch, by command) {
	id := s.nextID("c")
	call := dispatch.Call{
		Tenant: s.Tenant, Session: string(s.id), Turn: s.bound.id, ID: id, Channels: s.channels(),
		Attended: s.caller.Attended,
		Name:     m.GetName(), Arguments: m.GetArgumentsJson(), WritePaths: s.writePaths,
		Method: m.GetMethod(), Client: m.GetClient(), Extra: m.GetExtraJson(),
		Admission: s.bound.admission, Discovery: s.bound.discovery, Shard: hash(string(s.id)),
		Allowances: s.memory.allowances, Flight: &dispatch.Flight{},
	}
	ref, err := c.Spawn(id, callProps(&caller{
		pipeline: s.Pipeline, call: call, session: c.Self(), ledger: s.Ledger, asker: by.Asker,
		timeout: time.Duration(m.GetTimeoutMs()) * time.Millisecond,
	}))
	if err != nil {
		s.answer(c, by.reply, err, s.finish(nil)...)
		return
	}
	if s.calls == nil {
		s.calls = make(map[string]*inFlight)
	}
	s.calls[id] = &inFlight{ref, by.reply, s.bound, m.GetMethod() != "" || answers(m.GetExtraJson())}
}

// channels are those by whose policy a call is judged when it is made.
func (s *session) channels() []string {
	if s.worker != nil && s.worker.Channel != "" {
		return []string{s.caller.Channel, s.worker.Channel}
	}
	return []string{s.caller.Channel}
}

// finished is the outcome of a call. There is one a call, so it never waits for room.
type finished struct {
	id      string
	outcome dispatch.Outcome
}

// ControlMessage implements actorkit.Control.
func (finished) ControlMessage() {}

func (s *session) onFinished(c *actorkit.Context, m finished) {
	call := s.calls[m.id]
	if call == nil {
		return
	}
	delete(s.calls, m.id)
	result := &sessionv1.DispatchResult{
		CallId: m.id, Epoch: uint64(call.bound.admission.Epoch), ResultJson: m.outcome.Result.Content, Failed: m.outcome.Result.IsError,
		Refusal: wire.Refusal(asError(m.outcome.Refusal)), Repaired: m.outcome.Repaired,
		ErrorJson: call.serverError(m.outcome.Refusal),
	}
	if m.outcome.Refusal == nil && call.bound.offer.Surface.Misread(m.outcome.Tool) {
		call.bound.misread = append(call.bound.misread, m.outcome.Tool)
		s.memory.misreads++
	}
	var bodies []ledger.Body
	if m.outcome.Entry != nil {
		bodies = append(bodies, m.outcome.Entry)
	}
	var loaded []ledger.Body
	result.Promoted, result.PromotedJson, loaded = s.promote(m.outcome.Result.Promote)
	bodies = append(bodies, loaded...)
	s.answer(c, call.reply, result, s.finish(bodies)...)
	c.Stop(call.ref)
}

// answers reports whether a call answers what its server asked before: what the server has against that is the client's to
// hear.
func answers(extra json.RawMessage) bool {
	var e struct {
		Responses json.RawMessage `json:"inputResponses"`
		State     json.RawMessage `json:"requestState"`
	}
	return len(extra) > 0 && json.Unmarshal(extra, &e) == nil && len(e.Responses)+len(e.State) > 0
}

// codeMissingCapability is the code of a server's error that says what its client would have to declare.
const codeMissingCapability = -32021

// serverError is the error that a server answered a request of MCP with, as it gave it; nil where it did not, or where the
// call was one of a tool, whose caller is told in the runtime's words, unless only a client can do something about it.
func (f *inFlight) serverError(refusal *vakerr.Error) []byte {
	answered := (*protocol.RPCError)(nil)
	if refusal == nil || !errors.As(refusal, &answered) || !f.request && answered.Code != codeMissingCapability {
		return nil
	}
	text, err := json.Marshal(answered)
	if err != nil {
		return nil // its data is no JSON
	}
	return text
}

func asError(e *vakerr.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// finish notes the end of a call, of which the ledger says bodies; the last one of a burst ends its turn.
func (s *session) finish(bodies []ledger.Body) []ledger.Body {
	life, ended := s.life.Finished()
	s.life = life
	if ended {
		bodies = append(bodies, s.turnEnded(""))
		s.unbind()
	}
	return bodies
}

// callEnded settles a call whose actor failed: it says nothing any more. The outcome of one that ended in order is on its
// way behind this message.
func (s *session) callEnded(c *actorkit.Context, m actorkit.ChildStopped) {
	if call := s.calls[m.Name]; m.Reason != nil && call != nil && call.ref == m.Child {
		s.onFinished(c, finished{m.Name, dispatch.Outcome{Refusal: vakerr.New(vakerr.Internal, "the call ended without an outcome").
			WithRemedy("look for the cause in the daemon's log").WithCause(m.Reason)}})
	}
}

// judgeCalls gives up what runs and what the mode in force does not allow any more.
func (s *session) judgeCalls(c *actorkit.Context) {
	for _, call := range s.calls {
		c.Tell(call.ref, judge{})
	}
	if s.flight == nil {
		return
	}
	if why := s.flight.Forbidden(); why != nil {
		s.expanding.Cancel(why)
	}
}

// cancelCalls gives up the calls that touch id, or all for nil.
func (s *session) cancelCalls(c *actorkit.Context, cause *vakerr.Error, id *capability.ID) {
	for _, call := range s.calls {
		c.Tell(call.ref, cancel{cause, id})
	}
}
