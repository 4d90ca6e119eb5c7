package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxRounds bounds how often a server may ask for input within one request.
const maxRounds = 16

// inputRequired is the result of a modern server that needs something of the client before it goes on.
const inputRequired = "input_required"

func wantsInput(result json.RawMessage) bool {
	if !bytes.Contains(result, []byte(inputRequired)) {
		return false
	}
	var r struct {
		Type string `json:"resultType"`
	}
	return json.Unmarshal(result, &r) == nil && r.Type == inputRequired
}

// input asks a client of the other era for what a modern server wants to know, and returns what the next attempt carries.
func (c *Conn) input(ctx context.Context, clock *callTimer, result, extra json.RawMessage, client Client) (json.RawMessage, error) {
	var asks struct {
		Requests map[string]struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		} `json:"inputRequests"`
		State json.RawMessage `json:"requestState"`
	}
	if err := json.Unmarshal(result, &asks); err != nil || len(asks.Requests) > maxQuestions {
		return nil, vakerr.New(vakerr.ServerProtocol, "server %q asks for input in a wrong form", c.spec.Name).
			WithRemedy("report it to the author of the server").WithCause(err)
	}
	if !clock.pause() {
		return nil, vakerr.New(vakerr.ServerRejected, "server %q asks for input too often", c.spec.Name).WithRemedy("report it to the author of the server")
	}
	defer clock.resume()
	responses := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(asks.Requests)) {
		r := asks.Requests[key]
		if client == nil || !passed(r.Method) {
			return nil, vakerr.New(vakerr.ServerRejected, "server %q needs input, and whoever made the call can give none", c.spec.Name).
				WithRemedy("call it from a client that supports elicitation and sampling, or give all it needs in the arguments")
		}
		ctx, cancel := context.WithTimeout(ctx, questionTime)
		answer, err := client.Ask(ctx, r.Method, c.redact.JSON(r.Params))
		cancel()
		if err != nil {
			return nil, vakerr.New(vakerr.ServerRejected, "server %q needs input, and the client gave none: %s", c.spec.Name, vakerr.From(err).Reason).
				WithCause(err)
		}
		responses[key] = answer
	}
	var kept struct {
		Meta json.RawMessage `json:"_meta,omitempty"`
	}
	_ = json.Unmarshal(extra, &kept) // was read before
	return json.Marshal(struct {
		Meta      json.RawMessage            `json:"_meta,omitempty"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
		State     json.RawMessage            `json:"requestState,omitempty"`
	}{kept.Meta, responses, asks.State})
}
