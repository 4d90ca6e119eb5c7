package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// A client of the modern era is asked by the result input_required, and answers with another request. A server of the legacy
// era asks in the middle of a call. Between the two the call is held: it goes on while its client has no request open.

const (
	// heldState begins the requestState of a held call; every other one is a server's own.
	heldState = "vak-held."

	// heldKey is the key of the one question that a held call asks at a time.
	heldKey = "question"

	maxHeld = 64 // calls of one session

	heldTime = 5 * time.Minute // a client may take for its answer
)

// held is a call of the modern era, over all the requests its client makes for it.
type held struct {
	by   asker
	id   json.RawMessage          // of its first request
	done chan []byte              // the answer to that; room for one
	asks chan question            // of the server
	now  atomic.Pointer[response] // the request that is open, or was last
}

// question waits for the client's answer.
type question struct {
	ctx    context.Context //nolint:containedctx // of the question: it ends what waits for an answer to it
	method string
	params json.RawMessage
	answer chan json.RawMessage // room for one
}

// write implements outlet.
func (c *held) write(frame []byte) { c.offer(frame) }

// offer implements outlet: a frame goes to the request that is open.
func (c *held) offer(frame []byte) bool { return c.now.Load().offer(frame) }

// ask has the client asked by the next answer.
func (c *held) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q := question{ctx, method, params, make(chan json.RawMessage, 1)}
	select {
	case c.asks <- q:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// waiting are the held calls of a session that have asked, by requestState.
type waiting struct {
	mu      sync.Mutex // guards byState
	byState map[string]asked
}

// asked is a held call with its question.
type asked struct {
	call   *held
	q      question
	method string // of the call
	forget func() bool
}

// put keeps a call until its client answers, or the question is over. It returns its requestState.
func (w *waiting) put(a asked) (state string, err *vakerr.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byState) >= maxHeld {
		return "", vakerr.New(vakerr.TooMany, "%d calls wait for answers of their clients", maxHeld).WithRemedy("answer them first")
	}
	if w.byState == nil {
		w.byState = map[string]asked{}
	}
	state = heldState + rand.Text()
	a.forget = context.AfterFunc(a.q.ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.byState, state)
	})
	w.byState[state] = a
	return state, nil
}

// take returns the call of a requestState, once.
func (w *waiting) take(state, method string) (asked, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.byState[state]
	if !ok || a.method != method {
		return asked{}, false
	}
	delete(w.byState, state)
	a.forget()
	return a, true
}

// mayAsk reports whether a method's result may be input_required.
func mayAsk(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		return true
	default:
		return false
	}
}

// call serves a request whose server may ask in between: the first of a call, or the answer to a question.
func (p *response) call(m message, by asker, json bool) {
	state, answers := answersOf(m.Params)
	if strings.HasPrefix(state, heldState) {
		p.resume(m, state, answers, json)
		return
	}
	call := &held{id: m.ID, done: make(chan []byte, 1), asks: make(chan question)}
	call.now.Store(p)
	by.to, by.held = call, call
	call.by = by
	answer, work := p.c.acceptFrom(m, by)
	if work == nil {
		p.finish(m, answer, json)
		return
	}
	go func() { call.done <- work() }()
	p.await(m, call, json)
}

// resume hands the client's answer to the call that waits for it.
func (p *response) resume(m message, state string, answers map[string]json.RawMessage, json bool) {
	a, ok := p.c.waiting.take(state, m.Method)
	switch {
	case !ok:
		refuseMessage(p.w, m.ID, invalidParams("there is no call of this requestState any more"))
		return
	case answers[heldKey] == nil:
		p.ask(m, a.call, a.q, json)
		return
	}
	a.q.answer <- answers[heldKey]
	p.await(m, a.call, json)
}

// await writes what comes first: the call's answer or a question of its server. A client that leaves meanwhile has
// cancelled the call.
func (p *response) await(m message, call *held, json bool) {
	call.now.Store(p)
	stop := context.AfterFunc(p.r.Context(), func() { p.c.abandon(call.by.key) })
	defer stop()
	slow := time.AfterFunc(keepAlive, func() { p.stream() })
	defer slow.Stop()
	select {
	case answer := <-call.done:
		p.finish(m, reframed(answer, call.id, m.ID), json)
	case q := <-call.asks:
		stop()
		p.ask(m, call, q, json)
	}
}

// ask answers a request with a question.
func (p *response) ask(m message, call *held, q question, json bool) {
	state, err := p.c.waiting.put(asked{call: call, q: q, method: m.Method})
	if err != nil {
		p.c.abandon(call.by.key)
		p.finish(m, failure(err).frame(m.ID), json)
		return
	}
	time.AfterFunc(heldTime, func() {
		if _, left := p.c.waiting.take(state, m.Method); left {
			p.c.abandon(call.by.key)
		}
	})
	params := q.params
	if !isObject(params) {
		params = []byte(`{}`)
	}
	p.finish(m, resultFrame(m.ID, encode(map[string]any{
		"resultType": "input_required", "requestState": state,
		"inputRequests": map[string]any{heldKey: map[string]any{"method": q.method, "params": params}},
	})), json)
}

// answersOf is what the params of a request say to questions asked before.
func answersOf(params json.RawMessage) (state string, answers map[string]json.RawMessage) {
	var p struct {
		State   json.RawMessage            `json:"requestState"`
		Answers map[string]json.RawMessage `json:"inputResponses"`
	}
	if len(params) == 0 || json.Unmarshal(params, &p) != nil {
		return "", nil
	}
	_ = json.Unmarshal(p.State, &state) // one that is no text is none of ours
	return state, p.Answers
}

// reframed is the answer to the first request of a call as that to a later one.
func reframed(answer []byte, first, id json.RawMessage) []byte {
	head := `{"jsonrpc":"2.0","id":`
	if answer == nil || string(first) == string(id) {
		return answer
	}
	rest := answer[len(head)+len(first):]
	return append(append([]byte(head), id...), rest...)
}
