package mcpio

import (
	"context"
	"encoding/json"
	"time"
)

// The waits between two attempts of a listener.
const (
	listenWait    = time.Second
	listenWaitMax = time.Minute
)

var subscription = json.RawMessage(
	`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)

// subscribe holds a subscriptions/listen request open, by which a modern server sends its notifications. It returns when
// the connection ends or the server does not know the request.
func (c *Conn) subscribe() {
	c.listen(func(ctx context.Context) bool {
		resp, err := c.link.send(ctx, c.frame(c.nextID.Add(1), "subscriptions/listen", subscription, nil))
		return err != nil || resp.Error == nil
	})
}

// listen calls attempt until it returns false or the connection ends. Attempts that end soon are spaced out more and more.
func (c *Conn) listen(attempt func(ctx context.Context) (again bool)) {
	wait := listenWait
	for c.life.Err() == nil {
		begun := time.Now()
		if !attempt(c.life) {
			return
		}
		if time.Since(begun) > listenWaitMax {
			wait = listenWait
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.done:
		}
		timer.Stop()
		if c.Err() != nil {
			return
		}
		wait = min(2*wait, listenWaitMax)
	}
}
