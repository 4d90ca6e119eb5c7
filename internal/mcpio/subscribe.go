package mcpio

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
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
		resp, err := c.link.send(ctx, c.frame(c.nextID.Add(1), "subscriptions/listen", subscription))
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

// statusError is the error of a request that was refused with an HTTP status.
func (c *Conn) statusError(method string, s *StatusError) error {
	switch s.Status {
	case 401, 403:
		return vakerr.New(vakerr.Unauthenticated, "server %q wants authentication: it answered %s with HTTP status %d",
			c.spec.Name, method, s.Status).
			WithRemedy("check the credentials in the headers of the server's configuration").WithCause(s)
	case 429:
		return vakerr.New(vakerr.QueueFull, "server %q takes no more requests now (HTTP status 429)", c.spec.Name).
			WithRemedy("wait and repeat the request").WithCause(s)
	}
	return vakerr.New(vakerr.ServerProtocol, "server %q answered %s with HTTP status %d", c.spec.Name, method, s.Status).
		WithRemedy("check the URL of the server and its log").WithCause(s)
}
