package mcpio

import (
	"bytes"
	"context"
	"fmt"
)

// pendingReplies bounds the requests of a server that wait for our answer. A server that asks faster than it reads loses
// the rest, and waits for its own deadline.
const pendingReplies = 64

// responder answers the requests of a server: a ping with a pong, everything else with "method not found". On a shared
// connection nothing else can be answered truthfully, since a request does not say which caller it is about.
type responder struct {
	queue chan []byte // answers to send
	send  func(frame []byte)
}

func newResponder(send func(frame []byte)) *responder {
	return &responder{queue: make(chan []byte, pendingReplies), send: send}
}

// post queues the answer to a request. It does not block.
func (r *responder) post(method, id []byte) {
	id = bytes.Clone(id)
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"not supported by this client"}}`+"\n",
		id, codeMethodNotFound)
	if string(method) == `"ping"` {
		answer = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
	}
	select {
	case r.queue <- answer:
	default:
	}
}

// run sends the answers until ctx ends.
func (r *responder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-r.queue:
			r.send(frame)
		}
	}
}
