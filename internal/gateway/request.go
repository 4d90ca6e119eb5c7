package gateway

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/internal/wire"
)

// maxExtra bounds what a request carries beside name and arguments, in bytes, as Dispatch allows.
const maxExtra = 1 << 20

// extraOf is what of a request's params a server gets beside what the request is about: empty where there is nothing.
func extraOf(params json.RawMessage) (json.RawMessage, *rpcError) {
	var extra struct {
		Meta      json.RawMessage `json:"_meta,omitempty"`
		Responses json.RawMessage `json:"inputResponses,omitempty"`
		State     json.RawMessage `json:"requestState,omitempty"`
	}
	if len(params) == 0 || json.Unmarshal(params, &extra) != nil || len(extra.Meta)+len(extra.Responses)+len(extra.State) == 0 {
		return nil, nil
	}
	if len(extra.Meta) > 0 && !isObject(extra.Meta) {
		return nil, invalidParams("_meta is no object")
	}
	text := json.RawMessage(encode(extra))
	if len(text) > maxExtra {
		return nil, invalidParams("_meta, inputResponses and requestState have more than %d bytes", maxExtra)
	}
	return text, nil
}

// progressToken is the token of the progress a request asks for; empty: none.
func progressToken(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if len(params) == 0 || json.Unmarshal(params, &p) != nil || len(p.Meta.Token) == 0 || !validID(p.Meta.Token) {
		return nil
	}
	return p.Meta.Token
}

// prepareRequest enters a request to a server that is no call of a tool among the calls in flight.
func (s *session) prepareRequest(m message, by asker) ([]byte, func() []byte) {
	if s.aboutSkill(m) {
		return s.prepareSkill(m, by)
	}
	extra, bad := extraOf(m.Params)
	if bad != nil {
		return bad.frame(m.ID), nil
	}
	fields := map[string]json.RawMessage{}
	if len(m.Params) > 0 {
		_ = json.Unmarshal(m.Params, &fields) // it is an object
	}
	for _, key := range []string{"_meta", "inputResponses", "requestState"} {
		delete(fields, key)
	}
	own := encode(fields)
	if len(own) > maxArguments {
		return invalidParams("the params have more than %d bytes", maxArguments).frame(m.ID), nil
	}
	ctx, cancel := context.WithCancelCause(s.life)
	if err := s.enter(by.key, cancel); err != nil {
		cancel(err.err)
		return err.frame(m.ID), nil
	}
	return nil, func() []byte {
		defer s.leaveCall(by.key, cancel)
		name, leave := s.attendant(m, by)
		defer leave()
		answer := s.relay(ctx, m, by, &sessionv1.Dispatch{
			Tenant: s.Tenant, SessionId: s.runtime.id, Name: s.Server, Method: m.Method, ArgumentsJson: own, ExtraJson: extra, Client: name,
		})
		if context.Cause(ctx) == errCancelled { //nolint:errorlint // this very value: another cancellation is answered
			return nil
		}
		return answer
	}
}

// attendant is the name of who is asked and told while a request runs, until leave is called. For a subscription it is the
// connection itself, until its end.
func (s *session) attendant(m message, by asker) (name string, leave func()) {
	switch mcp.MCPMethod(m.Method) {
	case mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		return s.standing(), func() {}
	default:
		_, name, leave = s.attend(progressToken(m.Params), by)
		return name, leave
	}
}

// relay has the session send a request to a server. What refuses it is an error of the protocol, and so is the server's own.
func (s *session) relay(ctx context.Context, m message, by asker, command *sessionv1.Dispatch) []byte {
	var answer *sessionv1.DispatchResult
	err := s.within(ctx, func() (err error) {
		answer, err = protocol.Call[*sessionv1.DispatchResult](ctx, s.door, command)
		return err
	})
	switch refusal := answer.GetRefusal(); {
	case err != nil:
		return failure(s.public(err)).frame(m.ID)
	case len(answer.GetErrorJson()) > 0:
		return errorFrame(m.ID, answer.GetErrorJson())
	case refusal != nil:
		return failure(s.public(wire.Error(refusal))).frame(m.ID)
	case len(answer.GetResultJson()) == 0:
		return failure(vakerr.New(vakerr.Internal, "the server answered with nothing")).frame(m.ID)
	}
	return by.result(m.ID, m.Method == string(mcp.MethodResourcesRead), answer.GetResultJson())
}

// errorFrame is the answer to id with an error as a server gave it.
func errorFrame(id, raw json.RawMessage) []byte {
	return oneLine([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + string(raw) + `}`))
}
