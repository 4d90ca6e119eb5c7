package registry

import (
	"context"
	"log/slog"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

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
	set, err := r.snapshot.Set.Renew(r.pinned(c, r.effective()), r.revoked)
	if err != nil {
		c.Log().Error("the declared set is not consistent; the last one stays", slog.Any("error", err))
		r.settle(vakerr.New(vakerr.Internal, "the declared set is not consistent: %v", err))
		return
	}
	delta, next, moved := r.step(set)
	if !moved {
		r.settle(nil)
		return
	}
	r.publishing = true
	history := r.history.With(capability.Step{Epoch: next.Epoch, Delta: delta})
	r.save(c, save{
		work: func(ctx context.Context) error {
			return r.Memory.SaveEpoch(ctx, RememberedEpoch{
				Epoch: next.Epoch, Digest: set.Digest(), Marks: set.Marks(), History: history.Steps(),
			})
		},
		then: func(c *actorkit.Context, err error) { r.published(c, next, history, err) },
	})
}

// step finds the snapshot after the current one. The last published set is not known before the first pass: of an earlier
// process there are its marks only, and an unchanged world goes on under its old number, without moving anything.
func (r *registry) step(set *capability.Set) (capability.Delta, capability.Snapshot, bool) {
	if r.snapshot.Set != nil {
		next, moved := r.snapshot.Next(set)
		return capability.Diff(r.snapshot.Set, set), next, moved
	}
	delta := capability.DiffMarks(r.marks, set)
	if delta.Empty() {
		r.snapshot.Set, r.marks = set, nil
		r.publishView()
		return delta, r.snapshot, false
	}
	return delta, capability.Snapshot{Epoch: r.snapshot.Epoch + 1, Set: set}, true
}

// published goes on when the number of next is durable, or cannot be made so.
func (r *registry) published(c *actorkit.Context, next capability.Snapshot, history *capability.History, err error) {
	r.publishing = false
	if err == nil {
		r.snapshot, r.history, r.marks = next, history, nil
		r.publishView()
		r.Announce(&registryv1.EpochPublished{
			Tenant: r.Tenant, Epoch: uint64(next.Epoch), Digest: next.Set.Digest(),
		})
	} else {
		c.Log().Error("cannot make an epoch durable; the last one stays", slog.Any("error", err))
	}
	r.settle(err)
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
