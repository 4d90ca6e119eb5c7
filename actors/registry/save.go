package registry

import (
	"context"

	"github.com/vak-actors/vak-actors/internal/actorkit"
)

// save is something to be made durable. Saves run one after the other in the order in which they were asked for: of two
// values under one key the later one has to win, whatever the scheduler does.
type save struct {
	work func(ctx context.Context) error      // blocks; runs in an effect
	then func(c *actorkit.Context, err error) // runs in Receive
}

type saved struct{ err error }

func (r *registry) save(c *actorkit.Context, s save) {
	r.saves = append(r.saves, s)
	if len(r.saves) == 1 {
		r.runSave(c)
	}
}

func (r *registry) runSave(c *actorkit.Context) {
	work := r.saves[0].work
	r.effect = c.Go(func(ctx context.Context) any { return saved{work(ctx)} })
}

func (r *registry) onSaved(c *actorkit.Context, m saved) {
	done := r.saves[0]
	if r.saves = r.saves[1:]; len(r.saves) == 0 {
		r.saves = nil
	} else {
		r.runSave(c)
	}
	done.then(c, m.err)
}
