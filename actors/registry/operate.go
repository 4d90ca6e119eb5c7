package registry

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const maxReason = 1 << 10 // bytes of a revocation's reason

func (r *registry) revoke(c *actorkit.Context, m *registryv1.Revoke, reply actorkit.Replier) {
	id, err := capability.ParseID(m.GetId())
	switch {
	case err != nil:
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "%v", err))
		return
	case id.Kind == capability.KindMCP && strings.Contains(id.Name, "/"):
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "no server is called %.80q: a server is revoked whole", id.Name).
			WithRemedy("to take one tool away, add \"mcp(%.80s)\" to deny in [permissions]", id.Name))
		return
	case m.GetReason() == "" || len(m.GetReason()) > maxReason:
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "a revocation of %s needs a reason of 1 to %d bytes", id, maxReason).
			WithRemedy("say why with --reason: models and people will read it"))
		return
	}
	revoked := maps.Clone(r.revoked)
	if revoked == nil {
		revoked = make(capability.Revocations)
	}
	revoked[id] = m.GetReason()
	r.revoked = revoked
	r.publishView() // in force from here on, whatever happens below
	r.Announce(&protocol.Revoked{CapabilityRevoked: &registryv1.CapabilityRevoked{
		Tenant: r.Tenant, Id: id.String(), Reason: m.GetReason(), CancelRunning: m.GetCancelRunning(),
	}})
	_, declared := r.snapshot.Set.Get(id)
	r.saveRevocations(c, reply, func(epoch capability.Epoch) any {
		return &registryv1.RevokeResult{Epoch: uint64(epoch), Declared: declared}
	})
}

func (r *registry) restore(c *actorkit.Context, m *registryv1.Restore, reply actorkit.Replier) {
	id, err := capability.ParseID(m.GetId())
	if err != nil {
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "%v", err))
		return
	}
	_, was := r.revoked[id]
	revoked := maps.Clone(r.revoked)
	delete(revoked, id)
	r.revoked = revoked
	r.publishView()
	r.saveRevocations(c, reply, func(epoch capability.Epoch) any {
		return &registryv1.RestoreResult{Epoch: uint64(epoch), WasRevoked: was}
	})
}

// saveRevocations makes the revocations durable, publishes the epoch that shows them and answers. When they cannot be
// made durable the operator is told so; they stay in force in this process.
func (r *registry) saveRevocations(c *actorkit.Context, reply actorkit.Replier, result func(capability.Epoch) any) {
	current := r.revoked
	r.save(c, save{
		work: func(ctx context.Context) error { return r.Memory.SaveRevocations(ctx, current) },
		then: func(c *actorkit.Context, err error) {
			if err != nil {
				c.Log().Error("cannot make a revocation durable", slog.Any("error", err))
				reply.Reply(err)
				return
			}
			r.publishThen(c, func(epoch capability.Epoch, err error) {
				if err != nil {
					reply.Reply(err)
					return
				}
				reply.Reply(result(epoch))
			})
		},
	})
}

// report answers in an effect: what is wrong with thousands of tools takes a while to say, the first time.
func (r *registry) report(c *actorkit.Context, reply actorkit.Replier) {
	in := capability.ReportInput{
		Tenant: r.Tenant, Snapshot: r.snapshot, Revoked: r.revoked, Loop: r.loop, Problems: r.problems, Shadowed: r.shadowed,
	}
	if r.Health != nil {
		in.Actors = r.Health()
	}
	if r.Asking != nil {
		in.Asking = r.Asking()
	}
	if r.Hooks != nil {
		in.Hooks = r.Hooks()
	}
	in.Problems = slices.Concat(in.Problems, r.policyProblems(), pinProblems(r.pending, r.unkept, r.snapshot.Set))
	c.Go(func(context.Context) any {
		defer reply.Reply(errReportBroke) // an earlier answer counts
		in.Problems = slices.Concat(in.Problems, r.catalogs.problems(in.Snapshot.Set))
		report := capability.NewReport(in)
		text, err := json.Marshal(report)
		if err != nil {
			reply.Reply(err)
			return nil
		}
		reply.Reply(&registryv1.GetReportResult{ReportJson: text, Healthy: len(report.Findings()) == 0})
		return nil
	})
}

// policyProblems tell that nothing can be called, which no row of a capability would.
func (r *registry) policyProblems() []capability.Problem {
	if r.policy == nil || r.policy.Engine == nil {
		return nil
	}
	why := r.policy.Engine.DeniesAll()
	if why == "" {
		return nil
	}
	return []capability.Problem{{
		Severity: capability.SeverityError, Code: "every_call_denied", Path: "permissions",
		Message: "every call is denied: " + why, Hint: "repair the file that holds the rule",
	}}
}

var errReportBroke = vakerr.New(vakerr.Internal, "the report broke off").WithRemedy("look for the cause in the daemon's log")

var errSurfaceBroke = vakerr.New(vakerr.Internal, "the surface broke off").WithRemedy("look for the cause in the daemon's log")

// surface answers in an effect: thousands of digests take milliseconds.
func (r *registry) surface(c *actorkit.Context, m *registryv1.GetSurface, reply actorkit.Replier) {
	view := r.Gate.View()
	if view.Policy == nil {
		reply.Reply(errNotRead)
		return
	}
	c.Go(func(context.Context) any {
		defer reply.Reply(errSurfaceBroke) // an earlier answer counts
		admitted := turn.Admit(turn.AdmitInput{View: view, Channel: view.Policy.Channel(m.GetChannel()), Engine: view.Policy.Engine})
		reply.Reply(&registryv1.GetSurfaceResult{Surface: view.Snapshot.Set.Surface(func(id capability.ID) bool {
			_, is := admitted.Get(id)
			return is
		})})
		return nil
	})
}

var errNotRead = vakerr.New(vakerr.CapabilityUnavailable, "the workspace has not been read yet").WithRemedy("try again in a moment")

const (
	maxQuery    = 1 << 10
	defaultHits = 5
	mostHits    = 50
)

var errSearchBroke = vakerr.New(vakerr.Internal, "the search broke off").WithRemedy("look for the cause in the daemon's log")

// find searches in an effect: an index over thousands of tools takes milliseconds.
func (r *registry) find(c *actorkit.Context, m *registryv1.Find, reply actorkit.Replier) {
	if m.GetQuery() == "" || len(m.GetQuery()) > maxQuery {
		reply.Reply(vakerr.New(vakerr.InvalidRequest, "a query has 1 to %d bytes, this one has %d", maxQuery, len(m.GetQuery())))
		return
	}
	limit := int(m.GetLimit())
	if limit == 0 {
		limit = defaultHits
	}
	view := r.Gate.View()
	if view.Policy == nil {
		reply.Reply(errNotRead)
		return
	}
	c.Go(func(context.Context) any {
		defer reply.Reply(errSearchBroke) // an earlier answer counts
		admitted := turn.Admit(turn.AdmitInput{View: view, Channel: view.Policy.Channel(m.GetChannel()), Engine: view.Policy.Engine})
		result := &registryv1.FindResult{}
		for _, h := range r.indexes.Of(admitted.Docs()).Search(m.GetQuery(), min(limit, mostHits)) {
			result.Hits = append(result.Hits, &registryv1.Hit{Name: h.Name, Server: h.Server, Summary: turn.FirstSentence(h.Description), Score: h.Score})
		}
		reply.Reply(result)
		return nil
	})
}
