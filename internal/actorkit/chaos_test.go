package actorkit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Many askers, failing and stopping actors with effects and timers at once: every ask gets an outcome of the catalogue
// long before its deadline, and the System still stops completely.
func TestChaos(t *testing.T) {
	const children, askers, asks = 20, 8, 1500
	s := newSystem(t)
	p := props(nil)
	p.Mailbox = 16
	parent := spawn(t, s, "parent", actorkit.Props{Mailbox: askers * asks, New: props(nil).New})
	refs := make([]actorkit.Ref, children)
	var mu sync.Mutex // guards refs
	respawn := func(c *actorkit.Context, i int) {
		r, err := c.Spawn(fmt.Sprint(i), p)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		refs[i] = r
		mu.Unlock()
	}
	in(t, parent, func(c *actorkit.Context) {
		for i := range refs {
			respawn(c, i)
		}
	})
	acts := []do{
		func(*actorkit.Context) any { panic("chaos") },
		func(c *actorkit.Context) any { c.StopSelf(); return 1 },
		func(c *actorkit.Context) any { c.After(time.Microsecond, "tick"); return 1 },
		func(c *actorkit.Context) any {
			r := c.Replier()
			c.Go(func(ctx context.Context) any { r.Reply(1); return "result" })
			return 1
		},
		func(c *actorkit.Context) any { c.Go(func(ctx context.Context) any { panic("effect") }); return 1 },
		func(c *actorkit.Context) any {
			c.Go(func(ctx context.Context) any { <-ctx.Done(); return nil })
			return 1
		},
		func(c *actorkit.Context) any { _, err := c.Spawn("grandchild", p); return errors.Join(err, errBroken) },
	}
	expected := map[vakerr.Code]bool{vakerr.ActorStopped: true, vakerr.Internal: true, vakerr.QueueFull: true}
	var all sync.WaitGroup
	for range askers {
		all.Go(func() {
			for range asks {
				i := rand.IntN(children)
				mu.Lock()
				r := refs[i]
				mu.Unlock()
				_, err := ask(t, r, acts[rand.IntN(len(acts))])
				if err != nil && !errors.Is(err, errBroken) && !expected[vakerr.CodeOf(err)] {
					t.Errorf("outcome %v", err)
				}
				if vakerr.CodeOf(err) == vakerr.ActorStopped {
					tell(t, parent, do(func(c *actorkit.Context) any { respawn(c, i); return nil }))
				}
			}
		})
	}
	all.Wait()
	in(t, parent, func(c *actorkit.Context) { c.StopSelf() })
}
