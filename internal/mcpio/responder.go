package mcpio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	// pendingReplies bounds the answers to requests of a server that wait to be sent. A server that asks faster than it
	// reads loses the rest, and waits for its own deadline.
	pendingReplies = 64

	maxQuestions = 16               // that wait for a client at once, of one connection
	questionTime = 10 * time.Minute // a client, and so a person, has to answer
)

// responder answers the requests of a server: a ping with a pong, what concerns the client of a call with what that client
// answers, everything else with an error that says why.
type responder struct {
	c     *Conn
	queue chan []byte // answers to send
	send  func(frame []byte)

	mu     sync.Mutex                         // guards what follows
	asked  map[string]context.CancelCauseFunc // questions that wait for a client, by the server's id
	closed bool
	work   sync.WaitGroup // not added to once closed is set
}

func newResponder(c *Conn, send func(frame []byte)) *responder {
	return &responder{c: c, queue: make(chan []byte, pendingReplies), send: send, asked: map[string]context.CancelCauseFunc{}}
}

// passed are the requests that only the client of a call can answer.
func passed(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodSamplingCreateMessage, mcp.MethodElicitationCreate, mcp.MethodListRoots:
		return true
	default:
		return false
	}
}

// post takes a request of the server in. callID names the call on whose stream it came; 0 where the transport does not tell.
// It does not block, and keeps none of the slices.
func (r *responder) post(callID int64, method, id, params []byte) {
	id = bytes.Clone(id)
	var name string
	_ = json.Unmarshal(method, &name)
	switch {
	case name == "ping":
		r.reply(resultAnswer(id, json.RawMessage(`{}`)))
	case !passed(name):
		r.reply(errorAnswer(id, codeMethodNotFound, "not supported by this client", nil))
	default:
		r.question(callID, id, name, bytes.Clone(params))
	}
}

// question asks the client of the call that it belongs to.
func (r *responder) question(callID int64, id []byte, method string, params json.RawMessage) {
	call := r.c.calls.attribute(callID)
	switch {
	case call == nil:
		r.reply(errorAnswer(id, codeInvalidRequest, method+" cannot be attributed: it needs a call of exactly one session in flight. "+
			`With isolation = "session" each session has a connection of its own`, nil))
		return
	case call.client == nil:
		r.reply(errorAnswer(id, codeMethodNotFound, "whoever made the call takes no "+method, nil))
		return
	}
	ctx, cancel, err := r.enter(call, id)
	if err != nil {
		r.reply(errorAnswer(id, codeInvalidRequest, err.Reason, nil))
		return
	}
	if !call.clock.pause() {
		r.leave(id, cancel)
		r.work.Done()
		r.reply(errorAnswer(id, codeInvalidRequest, "this call has asked too often", nil))
		return
	}
	go func() {
		defer r.work.Done()
		defer r.leave(id, cancel)
		defer call.clock.resume()
		result, err := call.client.Ask(ctx, method, r.c.redact.JSON(params))
		if cause := context.Cause(ctx); errors.Is(cause, errWithdrawn) {
			return // the server does not wait for an answer any more
		}
		r.reply(answer(id, result, err))
	}()
}

var errWithdrawn = vakerr.New(vakerr.Canceled, "the server does not wait for the answer any more")

// enter notes a question that waits for a client. It ends with its call, with the connection, or after questionTime.
func (r *responder) enter(call *activeCall, id []byte) (context.Context, context.CancelCauseFunc, *vakerr.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch _, taken := r.asked[string(id)]; {
	case taken:
		return nil, nil, vakerr.New(vakerr.InvalidRequest, "a request with this id waits already")
	case len(r.asked) >= maxQuestions:
		return nil, nil, vakerr.New(vakerr.TooMany, "%d requests of the server wait already", maxQuestions)
	case r.closed || r.c.life.Err() != nil:
		return nil, nil, vakerr.New(vakerr.ServerStopped, "the connection is being closed")
	}
	ctx, cancel := context.WithCancelCause(call.ctx)
	timer := time.AfterFunc(questionTime, func() {
		cancel(vakerr.New(vakerr.DeadlineExceeded, "nobody answered within %s", questionTime))
	})
	stop := context.AfterFunc(r.c.life, func() { cancel(errClosed) })
	r.asked[string(id)] = cancel
	r.work.Add(1)
	return ctx, func(cause error) { timer.Stop(); stop(); cancel(cause) }, nil
}

var errClosed = vakerr.New(vakerr.ServerStopped, "the connection to the server was closed")

func (r *responder) leave(id []byte, cancel context.CancelCauseFunc) {
	cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, string(id))
}

// withdraw hears notifications/cancelled of the server about a request of its own.
func (r *responder) withdraw(params []byte) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.asked[string(p.ID)]; cancel != nil {
		cancel(errWithdrawn)
	}
}

// reply queues an answer. It does not block.
func (r *responder) reply(frame []byte) {
	select {
	case r.queue <- frame:
	default:
	}
}

// run sends the answers until ctx ends, and waits for the questions that are then given up.
func (r *responder) run(ctx context.Context) {
	defer r.finish()
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-r.queue:
			r.send(frame)
		}
	}
}

// finish waits for the questions, which the end of the connection gives up; none is added any more.
func (r *responder) finish() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}

// answer is the frame for what a client said.
func answer(id []byte, result json.RawMessage, err error) []byte {
	var refused *RPCError
	switch {
	case errors.As(err, &refused):
		return errorAnswer(id, refused.Code, refused.Message, refused.Data)
	case err != nil:
		return errorAnswer(id, codeInternal, vakerr.From(err).Reason, nil)
	case !isObject(result):
		return errorAnswer(id, codeInternal, "the client answered with no object", nil)
	}
	return resultAnswer(id, result)
}

func resultAnswer(id []byte, result json.RawMessage) []byte {
	return answerFrame(id, "result", result)
}

func errorAnswer(id []byte, code int, message string, data json.RawMessage) []byte {
	text, _ := json.Marshal(struct { // a number, a string and JSON
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{code, message, data})
	return answerFrame(id, "error", text)
}

// answerFrame is one line.
func answerFrame(id []byte, member string, value json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteString(`{"jsonrpc":"2.0","id":`)
	b.Write(id)
	b.WriteString(`,"` + member + `":`)
	if json.Compact(&b, value) != nil {
		b.WriteString(`{}`)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// routed takes what the server says that answers nothing.
type routed struct {
	c      *Conn
	reply  *responder
	callID int64 // on whose stream it comes; 0: the transport does not tell
}

func (r routed) notification(method, params []byte) {
	if string(method) == `"notifications/cancelled"` {
		r.reply.withdraw(params)
		return
	}
	r.c.notified(r.callID, method, params)
}

func (r routed) asked(method, id, params []byte) { r.reply.post(r.callID, method, id, params) }
