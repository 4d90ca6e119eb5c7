package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxID bounds a client's request id, in bytes: it is repeated in answers and keyed by.
const maxID = 256

// message is one JSON-RPC message of a client, its parts as they came.
type message struct {
	ID     json.RawMessage // a string or a number; empty: a notification
	Method string          // empty: an answer to a request that a server had sent to the client
	Params json.RawMessage // an object, or empty
	Result json.RawMessage // of an answer; empty: it is an error
	Error  json.RawMessage // of an answer
}

// request reports whether m waits for an answer.
func (m message) request() bool { return m.Method != "" && len(m.ID) > 0 }

// decode reads one message. It returns a *rpcError for everything that is none, with the id where one could be read.
func decode(raw []byte) (message, *rpcError) {
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		return message{}, &rpcError{mcp.INVALID_REQUEST, vakerr.New(vakerr.InvalidRequest, "JSON-RPC batches are not supported").
			WithRemedy("send one message at a time")}
	}
	var in struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		if !json.Valid(raw) {
			return message{}, &rpcError{mcp.PARSE_ERROR, vakerr.New(vakerr.InvalidRequest, "the message is no JSON")}
		}
		return message{}, invalidRequest("the message is no JSON-RPC object")
	}
	m := message{ID: in.ID, Method: in.Method, Params: in.Params, Result: in.Result, Error: in.Error}
	if bytes.Equal(m.Params, []byte("null")) {
		m.Params = nil
	}
	switch {
	case len(m.ID) > 0 && !validID(m.ID):
		m.ID = nil
		return m, invalidRequest("the id is neither a string nor a number of at most %d bytes", maxID)
	case in.Version != mcp.JSONRPC_VERSION:
		return m, invalidRequest(`the message does not say "jsonrpc":"2.0"`)
	case m.Method == "" && len(m.ID) == 0:
		return m, invalidRequest("the message has neither a method nor an id")
	case len(m.Params) > 0 && m.Params[0] != '{':
		return m, &rpcError{mcp.INVALID_PARAMS, vakerr.New(vakerr.InvalidRequest, "the params are no object")}
	}
	return m, nil
}

// validID accepts what MCP does; the JSON around it is known to be valid.
func validID(id json.RawMessage) bool {
	if len(id) > maxID {
		return false
	}
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

// rpcError is a failure of the protocol, in contrast to that of a tool.
type rpcError struct {
	code int
	err  *vakerr.Error
}

func invalidRequest(reason string, args ...any) *rpcError {
	return &rpcError{mcp.INVALID_REQUEST, vakerr.New(vakerr.InvalidRequest, reason, args...)}
}

func invalidParams(reason string, args ...any) *rpcError {
	return &rpcError{mcp.INVALID_PARAMS, vakerr.New(vakerr.InvalidRequest, reason, args...)}
}

// failure is err as the protocol tells it.
func failure(err error) *rpcError {
	e := vakerr.From(err)
	return &rpcError{e.Kind().JSONRPC(), e}
}

// frame is the error as the answer to id; to no message in particular when id is empty.
func (e *rpcError) frame(id json.RawMessage) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	text := e.err.Reason
	if e.err.Remedy != "" {
		text += "; " + e.err.Remedy // many clients show a model nothing but the message
	}
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{mcp.JSONRPC_VERSION, id, struct {
		Code    int        `json:"code"`
		Message string     `json:"message"`
		Data    op.Refusal `json:"data"`
	}{e.code, text, op.Refusal{
		Code: e.err.Code, Reason: e.err.Reason, Remedy: e.err.Remedy, RetryAfterMS: e.err.RetryAfter.Milliseconds(),
	}}})
}

// resultFrame is the answer to id whose result is raw, byte for byte but for line breaks between its tokens: a frame is
// one line.
func resultFrame(id json.RawMessage, raw ...[]byte) []byte {
	size := len(id) + 40
	for _, part := range raw {
		size += len(part)
	}
	frame := make([]byte, 0, size)
	frame = append(frame, `{"jsonrpc":"2.0","id":`...)
	frame = append(frame, id...)
	frame = append(frame, `,"result":`...)
	for _, part := range raw {
		frame = append(frame, part...)
	}
	frame = append(frame, '}')
	return oneLine(frame)
}

// oneLine replaces line breaks, in place. In valid JSON they stand between tokens only.
func oneLine(frame []byte) []byte {
	for _, c := range []byte("\n\r") {
		for rest := frame; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return frame
}

// encode writes values of this package, which always have a JSON form, on one line.
func encode(v any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("gateway: cannot encode %T: %v", v, err))
	}
	return oneLine(bytes.TrimRight(out.Bytes(), "\n"))
}
