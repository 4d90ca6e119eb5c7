package registry

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// pinned holds declarations to what is approved. What is seen for the first time is kept as baseline before the epoch that
// shows it, since saves run in order.
func (r *registry) pinned(c *actorkit.Context, declared []capability.Declaration) []capability.Declaration {
	result := pins.Apply(declared, r.book, r.pins)
	r.pending = append(result.Pending, r.stillPending(declared)...)
	if len(result.Learned) > 0 {
		r.learn(c, result.Learned, nil)
	}
	r.baseline(c)
	return result.Declarations
}

// stillPending are versions of tools that wait while nothing is known of their server: it announced a change, or failed.
func (r *registry) stillPending(declared []capability.Declaration) []pins.Pending {
	unknown := map[capability.ID]bool{}
	for _, d := range declared {
		if server, is := d.Config.(*capability.Server); is && (server.Observation == nil || server.Observation.Catalog == nil) {
			unknown[d.ID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(r.pending), func(p pins.Pending) bool {
		return p.Tool == "" || !unknown[p.ID] || p.Settled(r.book[p.ID])
	})
}

// pin takes over what is to be pinned. The first pass over a workspace that was trusted is its baseline; with the end of the
// trust that baseline is forgotten, for whoever trusts it again has looked again.
func (r *registry) pin(c *actorkit.Context, s pins.Settings) {
	if r.pins.Workspace && !s.Workspace || !s.Workspace && r.seen {
		r.forgetBaseline(c)
	}
	s.Seen = r.seen
	r.pins = s
}

// baseline notes that the pass which is published now was the first over a trusted workspace.
func (r *registry) baseline(c *actorkit.Context) {
	if !r.pins.Workspace || r.seen {
		return
	}
	r.seen, r.pins.Seen = true, true
	r.saveSeen(c, true)
}

func (r *registry) forgetBaseline(c *actorkit.Context) {
	gone := pins.Book{}
	for id, e := range r.book {
		if e.Self != nil {
			bare := *e
			bare.Self = nil
			gone[id] = &bare
		}
	}
	r.seen = false
	r.learn(c, gone, nil)
	r.saveSeen(c, false)
}

func (r *registry) saveSeen(c *actorkit.Context, seen bool) {
	r.save(c, save{
		work: func(ctx context.Context) error { return r.Memory.SaveSeen(ctx, seen) },
		then: func(c *actorkit.Context, err error) {
			if err != nil {
				c.Log().Error("cannot keep that a workspace has been seen", slog.Any("error", err))
				r.unkept = vakerr.From(err).Reason
			}
		},
	})
}

// learn takes entries up and makes them durable; then, which may be nil, is told whether they are.
func (r *registry) learn(c *actorkit.Context, entries pins.Book, then func(error)) {
	book := maps.Clone(r.book)
	if book == nil {
		book = pins.Book{}
	}
	maps.Copy(book, entries)
	r.book = book
	r.publishView() // whoever asks a server reads by the book of now, whether an epoch follows or not
	r.save(c, save{
		work: func(ctx context.Context) error {
			for id, e := range entries {
				if err := r.Memory.SavePins(ctx, id, e); err != nil {
					return err
				}
			}
			return nil
		},
		then: func(c *actorkit.Context, err error) {
			if r.unkept = ""; err != nil {
				c.Log().Error("cannot keep what was approved", slog.Any("error", err))
				r.unkept = vakerr.From(err).Reason
			}
			if then != nil {
				then(err)
			}
		},
	})
}

// maxUndeclaredPins is of how many capabilities that are not declared pins are kept, for one that comes back. When there
// are more, all of them are forgotten.
const maxUndeclaredPins = 1024

func (r *registry) forgetPins(c *actorkit.Context) {
	if len(r.book) <= maxUndeclaredPins {
		return
	}
	declared := make(map[capability.ID]bool, len(r.declared))
	for _, d := range r.declared {
		declared[d.ID] = true
	}
	kept, gone := pins.Book{}, pins.Book{}
	for id, e := range r.book {
		if declared[id] {
			kept[id] = e
		} else {
			gone[id] = nil
		}
	}
	if len(gone) > maxUndeclaredPins {
		r.learn(c, gone, nil)
		r.book = kept
	}
}

func (r *registry) listPins(m *registryv1.ListPins) *registryv1.ListPinsResult {
	result := &registryv1.ListPinsResult{}
	for _, p := range r.pending {
		if m.GetId() != "" && m.GetId() != p.ID.String() || m.GetTool() != "" && m.GetTool() != p.Tool {
			continue
		}
		pin := &registryv1.Pin{Id: p.ID.String(), Tool: p.Tool, Digest: p.Digest, ApprovedDigest: p.Approved, Rejected: p.Rejected}
		for _, change := range p.Changes {
			pin.Changes = append(pin.Changes, &registryv1.PinChange{Part: change.Part, Before: change.Before, After: change.After})
		}
		result.Pins = append(result.Pins, pin)
	}
	return result
}

// decidePin approves or turns down exactly the version that the operator has seen.
func (r *registry) decidePin(c *actorkit.Context, m *registryv1.DecidePin, reply actorkit.Replier) {
	for i := range r.pending {
		p := &r.pending[i]
		if p.ID.String() != m.GetId() || p.Tool != m.GetTool() {
			continue
		}
		if p.Digest != m.GetDigest() {
			reply.Reply(vakerr.New(vakerr.PinMoved, "%s has changed again: another version waits now", name(p)).
				WithRemedy("look at it: vak-actors pins show %s", name(p)))
			return
		}
		next := p.Reject(r.book[p.ID])
		if m.GetApprove() {
			next = p.Approve(r.book[p.ID])
		}
		r.learn(c, pins.Book{p.ID: next}, func(err error) {
			if err != nil {
				reply.Reply(err)
			}
		})
		r.publishThen(c, func(epoch capability.Epoch, err error) {
			if err != nil {
				reply.Reply(err)
				return
			}
			reply.Reply(&registryv1.DecidePinResult{Epoch: uint64(epoch)})
		})
		return
	}
	reply.Reply(vakerr.New(vakerr.PinUnknown, "nothing of %s waits to be approved", m.GetId()).
		WithRemedy("see what waits: vak-actors pins list"))
}

func name(p *pins.Pending) string {
	if p.Tool == "" {
		return p.ID.String()
	}
	return p.ID.String() + " " + p.Tool
}

// pinProblems say what waits for a person, and that approvals cannot be kept.
func pinProblems(pending []pins.Pending, unkept string, declared *capability.Set) []capability.Problem {
	var all []capability.Problem
	if unkept != "" {
		all = append(all, capability.Problem{
			Severity: capability.SeverityError, Code: "pins_unkept", Path: "pins",
			Message: "what was approved cannot be kept, and is forgotten at the next start: " + unkept, Hint: "look at the ledger's folder",
		})
	}
	for i := range pending {
		p := &pending[i]
		source := p.ID.String()
		if c, is := declared.Get(p.ID); is && c.Source != "" {
			source = c.Source
		}
		problem := capability.Problem{
			Severity: capability.SeverityWarning, Code: "pin_pending", Path: source,
			Message: fmt.Sprintf("%s has changed since it was approved; the approved version is in force, or it is held", name(p)),
			Hint:    fmt.Sprintf("vak-actors pins show %s; then pins approve or pins reject", name(p)),
		}
		if p.Rejected {
			problem.Code, problem.Message = "pin_rejected", fmt.Sprintf("%s has changed, and the change was turned down", name(p))
			problem.Hint = fmt.Sprintf("vak-actors pins approve %s, if that was wrong", name(p))
		}
		all = append(all, problem)
	}
	return all
}
