package registry

import (
	"context"
	"log/slog"
	"reflect"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// observe takes what demand taught about a server. A connection that lives on under an older definition teaches nothing
// about the one that is declared now, and must not overwrite what is known of it.
func (r *registry) observe(c *actorkit.Context, m *protocol.Observed) {
	if now := r.declaredServer(m.Server); now != nil && protocol.ServerDefinition(now) != m.Definition {
		return
	}
	known := r.observations[m.Server]
	next := &RememberedObservation{Definition: m.Definition, Observation: m.Observation}
	if m.Observation == nil {
		next = nil
	}
	if reflect.DeepEqual(known, next) {
		return // no news
	}
	if next == nil {
		delete(r.observations, m.Server)
	} else {
		r.observations[m.Server] = next
	}
	r.saveObservation(c, m.Server, next)
	r.publishThen(c, func(capability.Epoch, error) {})
}

func (r *registry) saveObservation(c *actorkit.Context, server string, o *RememberedObservation) {
	r.save(c, save{
		work: func(ctx context.Context) error { return r.Memory.SaveObservation(ctx, server, o) },
		then: func(c *actorkit.Context, err error) {
			if err != nil { // it is learned again after a restart
				c.Log().Warn("cannot keep what was learned of a server", slog.String("server", server), slog.Any("error", err))
			}
		},
	})
}

// maxUndeclared is of how many servers that are not declared observations are kept, for a plugin that comes back. When
// there are more, all of them are forgotten.
const maxUndeclared = 256

func (r *registry) forgetObservations(c *actorkit.Context) {
	if len(r.observations) <= maxUndeclared {
		return
	}
	declared := make(map[string]struct{})
	for _, d := range r.declared {
		if d.ID.Kind == capability.KindMCP {
			declared[d.ID.Name] = struct{}{}
		}
	}
	var gone []string
	for server := range r.observations {
		if _, still := declared[server]; !still {
			gone = append(gone, server)
		}
	}
	if len(gone) <= maxUndeclared {
		return
	}
	for _, server := range gone {
		delete(r.observations, server)
		r.saveObservation(c, server, nil)
	}
}

func (r *registry) declaredServer(name string) *capability.Server {
	for _, d := range r.declared {
		if d.ID.Kind == capability.KindMCP && d.ID.Name == name {
			return d.Config.(*capability.Server)
		}
	}
	return nil
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
