package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxQuestions bounds the requests of servers that wait for one client, in number.
const maxQuestions = 64

// questions are requests of servers that a client was sent and has not answered.
type questions struct {
	mu      sync.Mutex // guards what follows
	last    uint64
	waiting map[string]chan message // by id as the client repeats it; room for one
}

// ask enters a question. It returns nil where too many wait.
func (q *questions) ask() (id string, answer <-chan message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxQuestions {
		return "", nil
	}
	if q.waiting == nil {
		q.waiting = map[string]chan message{}
	}
	q.last++
	id = `"vak-` + strconv.FormatUint(q.last, 10) + `"`
	c := make(chan message, 1)
	q.waiting[id] = c
	return id, c
}

func (q *questions) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// answered hands the client's answer to whoever waits for it. What nobody waits for is dropped.
func (q *questions) answered(m message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.waiting[string(m.ID)]; c != nil {
		delete(q.waiting, string(m.ID))
		c <- m
	}
}

// caller is the client of one request, as the server that works on it may turn to it.
type caller struct {
	s     *session
	token json.RawMessage // of the progress the client asked for; empty: none
	asker

	heard atomic.Bool // the server has told of its progress
}

var _ protocol.Client = (*caller)(nil)

// attend enters the client of a request while it runs, where there is a stream on which it can be asked.
func (s *session) attend(token json.RawMessage, by asker) (client *caller, name string, leave func()) {
	if by.to == nil {
		return nil, "", func() {}
	}
	client = &caller{s: s, token: token, asker: by}
	name, leave = s.door.Attend(client)
	return client, name, leave
}

// standing is the name of the connection as a client that is told what belongs to no request, until its end.
func (s *session) standing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ""
	}
	if s.ear.name == "" {
		s.ear.name, s.ear.leave = s.door.Attend(&caller{s: s, asker: asker{to: s.unasked}})
	}
	return s.ear.name
}

// Ask implements protocol.Client.
func (c *caller) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !c.peer.declares(method) {
		return nil, &protocol.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: "the client does not support " + method}
	}
	switch {
	case c.held != nil:
		return c.held.ask(ctx, method, params)
	case c.modern:
		return nil, &protocol.RPCError{Code: mcp.METHOD_NOT_FOUND, Message: "the client cannot be asked during this request"}
	}
	id, answer := c.s.questions.ask()
	if answer == nil {
		return nil, vakerr.New(vakerr.TooMany, "%d questions wait for this client already", maxQuestions)
	}
	defer c.s.questions.forget(id)
	if !c.to.offer(requestFrame(id, method, params)) {
		return nil, vakerr.New(vakerr.QueueFull, "the client does not read what it is sent")
	}
	select {
	case m := <-answer:
		return answerOf(m)
	case <-ctx.Done():
		c.to.offer(oneLine([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"nobody waits for it any more"}}`)))
		return nil, context.Cause(ctx)
	case <-c.s.life.Done():
		return nil, context.Cause(c.s.life) //nolint:contextcheck // the connection ends what waits in it
	}
}

func answerOf(m message) (json.RawMessage, error) {
	if len(m.Error) == 0 {
		return m.Result, nil
	}
	refused := &protocol.RPCError{}
	if json.Unmarshal(m.Error, refused) != nil {
		return nil, vakerr.New(vakerr.InvalidRequest, "the client answered with an error of a wrong form")
	}
	return nil, refused
}

// Tell implements protocol.Client.
func (c *caller) Tell(method string, params json.RawMessage) {
	if !isObject(params) {
		return
	}
	switch mcp.MCPMethod(method) {
	case mcp.MethodNotificationProgress:
		fields := map[string]json.RawMessage{}
		if len(c.token) == 0 || json.Unmarshal(params, &fields) != nil {
			return
		}
		fields["progressToken"] = c.token
		c.heard.Store(true)
		params = encode(fields)
	case mcp.MethodNotificationMessage:
		if !c.wantsMessage(params) {
			return
		}
	default: // as it is
	}
	c.to.offer(notificationFrame(method, params))
}

// Capabilities implements protocol.Client.
func (c *caller) Capabilities() json.RawMessage {
	return c.peer.capabilities
}

// TakesQuestions implements protocol.Client: clients of the legacy era are asked by requests.
func (c *caller) TakesQuestions() bool { return c.modern }

// WantsProgress implements protocol.Client.
func (c *caller) WantsProgress() bool { return len(c.token) > 0 }

// LogLevel implements protocol.Client.
func (c *caller) LogLevel() string {
	return c.peer.level
}

// ear is the attendance of a connection for what belongs to no request; the zero value until it is needed.
type ear struct {
	name  string
	leave func()
}

// peer is what a client said of itself.
type peer struct {
	capabilities json.RawMessage // an object; empty: it said nothing
	level        string          // least level of log messages it wants; empty: it did not say
}

// levels of log messages, least first.
var levels = []string{
	string(mcp.LoggingLevelDebug), string(mcp.LoggingLevelInfo), string(mcp.LoggingLevelNotice), string(mcp.LoggingLevelWarning),
	string(mcp.LoggingLevelError), string(mcp.LoggingLevelCritical), string(mcp.LoggingLevelAlert), string(mcp.LoggingLevelEmergency),
}

// setLevel notes which log messages of servers the client wants.
func (s *session) setLevel(m message, _ asker) []byte {
	var p struct {
		Level string `json:"level"`
	}
	if json.Unmarshal(m.Params, &p) != nil || !slices.Contains(levels, p.Level) {
		return invalidParams("there is no such level").frame(m.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer.level = p.Level
	return resultFrame(m.ID, []byte(`{}`))
}

// wantsMessage reports whether the client wants to see a log message. Of a level that nobody knows it wants all; in the modern
// era it wants none unless it says so.
func (by asker) wantsMessage(params json.RawMessage) bool {
	var p struct {
		Level string `json:"level"`
	}
	_ = json.Unmarshal(params, &p)
	if by.modern && by.peer.level == "" {
		return false
	}
	at := slices.Index(levels, p.Level)
	return at < 0 || at >= slices.Index(levels, by.peer.level)
}

// declares reports whether the client said that it answers requests of a method.
func (p peer) declares(method string) bool {
	var can struct {
		Sampling    json.RawMessage `json:"sampling"`
		Elicitation json.RawMessage `json:"elicitation"`
		Roots       json.RawMessage `json:"roots"`
	}
	if json.Unmarshal(p.capabilities, &can) != nil {
		return false
	}
	switch mcp.MCPMethod(method) {
	case mcp.MethodSamplingCreateMessage:
		return isObject(can.Sampling)
	case mcp.MethodElicitationCreate:
		return isObject(can.Elicitation)
	case mcp.MethodListRoots:
		return isObject(can.Roots)
	default:
		return false
	}
}

// isObject reports whether raw, which is JSON or empty, is an object.
func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) > 0 && trimmed[0] == '{'
}

func requestFrame(id, method string, params json.RawMessage) []byte {
	if !isObject(params) {
		params = json.RawMessage(`{}`)
	}
	return oneLine([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":` + strconv.Quote(method) + `,"params":` + string(params) + `}`))
}

func notificationFrame(method string, params json.RawMessage) []byte {
	return oneLine([]byte(`{"jsonrpc":"2.0","method":` + strconv.Quote(method) + `,"params":` + string(params) + `}`))
}
