package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// stateless carries a request of the era without sessions. It needs no link; to cancel it is to close its stream.
func (b *bridge) stateless(ctx context.Context, p *pipe, m message, raw []byte) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	if _, under := b.calls[string(m.ID)]; under {
		b.mu.Unlock()
		cancel()
		b.out.write(invalidRequest("a request with this id is in flight").frame(m.ID))
		return
	}
	b.calls[string(m.ID)] = false
	b.closers[string(m.ID)] = closer{cancel, m.Method == string(mcp.MethodSubscriptionsListen)}
	b.mu.Unlock()
	p.do(func() {
		frame := b.carryStateless(ctx, m, raw)
		b.mu.Lock()
		delete(b.closers, string(m.ID))
		b.mu.Unlock()
		cancel()
		b.answer(m.ID, frame)
	})
}

// carryStateless has the daemon answer a request, and asks one that comes back again where it cannot have begun.
func (b *bridge) carryStateless(ctx context.Context, m message, raw []byte) []byte {
	patience, cancel := context.WithTimeout(ctx, b.o.Patience)
	defer cancel()
	meta, _ := readMeta(m.Params)
	at := link{version: meta.Version, stated: http.Header{}}
	for name, value := range mcp.StandardHeaders(meta.Version, mcp.MCPMethod(m.Method), m.Params) {
		at.stated.Set(name, value)
	}
	for pause := time.Duration(0); ; {
		reply, err := b.post(ctx, raw, at, m.ID)
		switch {
		case err == nil:
			return reply.frame
		case ctx.Err() != nil:
			return nil // the client closed it
		case reply.begun && m.Method == string(mcp.MethodToolsCall):
			return asker{modern: true}.refusal(m.ID, errUnknown)
		}
		if reply.begun || !retryable(err) || !sleep(patience, &pause) {
			return failure(err).frame(m.ID)
		}
	}
}

// closes ends a request of the era without sessions that its client cancelled, and reports whether there was one.
func (b *bridge) closes(m message) bool {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.Method != string(mcp.MethodNotificationCancelled) || json.Unmarshal(m.Params, &p) != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, under := b.closers[string(p.ID)]
	if !under {
		return false
	}
	b.calls[string(p.ID)] = true
	c.end()
	return true
}

// closer ends a request of the era without sessions.
type closer struct {
	end       context.CancelFunc
	subscribe bool // it ends with its client only
}

// endSubscriptions ends what would wait for the client for ever.
func (b *bridge) endSubscriptions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, c := range b.closers {
		if c.subscribe {
			b.calls[id] = true
			c.end()
		}
	}
}
