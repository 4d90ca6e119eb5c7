package registry

import (
	"context"
	"log/slog"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// published is the outcome of making an epoch number durable.
type published struct {
	next    capability.Snapshot
	history *capability.History
	err     error
}

// publishThen publishes what differs and then calls done with the epoch in force. While a publication runs, all that
// arrives is folded into the next one.
func (r *registry) publishThen(c *actorkit.Context, done func(capability.Epoch, error)) {
	if r.publishing {
		r.dirty = true
		r.queued = append(r.queued, done)
		return
	}
	r.settled = append(r.settled, done)
	r.publish(c)
}

func (r *registry) publish(c *actorkit.Context) {
	set, err := capability.NewSet(r.effective(), r.revoked)
	if err != nil {
		c.Log().Error("the declared set is not consistent; the last one stays", slog.Any("error", err))
		r.settle(err)
		return
	}
	delta, next, moved := r.step(set)
	if !moved {
		r.settle(nil)
		return
	}
	r.publishing = true
	history := r.history.With(capability.Step{Epoch: next.Epoch, Delta: delta})
	c.Go(func(ctx context.Context) any {
		err := r.Memory.SaveEpoch(ctx, RememberedEpoch{
			Epoch: next.Epoch, Digest: set.Digest(), Marks: set.Marks(), History: history.Steps(),
		})
		return published{next, history, err}
	})
}

// step finds the snapshot after the current one. After a restart the last published set is known by its marks only: an
// unchanged world goes on under its old number, without moving anything.
func (r *registry) step(set *capability.Set) (capability.Delta, capability.Snapshot, bool) {
	if r.snapshot.Set == nil && r.snapshot.Epoch > 0 {
		delta := capability.DiffMarks(r.marks, set)
		if delta.Empty() {
			r.snapshot.Set, r.marks = set, nil
			r.publishView()
			return delta, r.snapshot, false
		}
		return delta, capability.Snapshot{Epoch: r.snapshot.Epoch + 1, Set: set}, true
	}
	next, moved := r.snapshot.Next(set)
	return capability.Diff(r.snapshot.Set, set), next, moved
}

func (r *registry) onPublished(c *actorkit.Context, m published) {
	r.publishing = false
	if m.err == nil {
		r.snapshot, r.history, r.marks = m.next, m.history, nil
		r.publishView()
		r.Announce(&registryv1.EpochPublished{
			Tenant: r.Tenant, Epoch: uint64(m.next.Epoch), Digest: m.next.Set.Digest(),
		})
	} else {
		c.Log().Error("cannot make an epoch durable; the last one stays", slog.Any("error", m.err))
	}
	r.settle(m.err)
	if r.dirty {
		r.dirty = false
		r.settled, r.queued = r.queued, nil
		r.publish(c)
	}
}

func (r *registry) settle(err error) {
	all := r.settled
	r.settled = nil
	for _, done := range all {
		done(r.snapshot.Epoch, err)
	}
}

// effective is what is declared, with what demand taught about servers. Builtin declarations win over files.
func (r *registry) effective() []capability.Declaration {
	all := make([]capability.Declaration, 0, len(r.Builtin)+len(r.declared))
	taken := make(map[capability.ID]struct{}, len(r.Builtin))
	for _, d := range r.Builtin {
		taken[d.ID] = struct{}{}
		all = append(all, d)
	}
	for _, d := range r.declared {
		if _, builtin := taken[d.ID]; !builtin {
			all = append(all, r.withObservation(d))
		}
	}
	return all
}

// withObservation adds what is known of a server, provided that it was observed under this very definition.
func (r *registry) withObservation(d capability.Declaration) capability.Declaration {
	server, ok := d.Config.(*capability.Server)
	if !ok {
		return d
	}
	known := r.observations[d.ID.Name]
	if known == nil || known.Definition != protocol.ServerDefinition(server) {
		return d
	}
	observed := *server
	observed.Observation = known.Observation
	d.Config = &observed
	return d
}
