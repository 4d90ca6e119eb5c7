package host

import (
	"context"

	"google.golang.org/protobuf/proto"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"
	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/actors/session"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Door is how fronts and embedding programs reach the actors.
func (h *Host) Door() protocol.Door { return door{h} }

type door struct{ host *Host }

// Ask implements protocol.Door.
func (d door) Ask(ctx context.Context, command proto.Message) (proto.Message, error) {
	named, ok := command.(interface{ GetTenant() string })
	if !ok {
		return nil, unknownCommand(command)
	}
	t, err := d.host.tenant(named.GetTenant())
	if err != nil {
		return nil, err
	}
	switch m := command.(type) {
	case *ledgerv1.ReadLedger:
		return d.host.readLedger(ctx, t.id, m)
	case *ledgerv1.VerifyLedger:
		return d.host.verifyLedger(ctx, t.id, m)
	case *registryv1.Revoke, *registryv1.Restore, *registryv1.GetReport, *registryv1.Find, *registryv1.GetSurface, *registryv1.ListPins, *registryv1.DecidePin:
		return actorkit.Ask[proto.Message](ctx, t.registry.Ref(), command)
	case *registryv1.Reload:
		return actorkit.Ask[proto.Message](ctx, t.reconciler.Ref(), command)
	case *poolv1.ListServers, *poolv1.ProbeServer, *poolv1.StopServer, *poolv1.GetServerLogs:
		return actorkit.Ask[proto.Message](ctx, t.pool.Ref(), command)
	case *approvalv1.ListApprovals, *approvalv1.GetApproval, *approvalv1.AnswerApproval:
		return actorkit.Ask[proto.Message](ctx, t.approver.Ref(), command)
	case *sessionv1.OpenSession:
		if m.GetSessionId() == "" {
			m = proto.CloneOf(m)
			m.SessionId = newSessionID()
		}
		return toSession(ctx, t, m.GetSessionId(), m)
	case *sessionv1.ListSessions:
		return toSession(ctx, t, "", m)
	case interface{ GetSessionId() string }:
		return toSession(ctx, t, m.GetSessionId(), command)
	}
	return nil, unknownCommand(command)
}

func toSession(ctx context.Context, t *tenant, id string, m proto.Message) (proto.Message, error) {
	return actorkit.Ask[proto.Message](ctx, t.session(id), session.Command{Message: m, Asker: ctx})
}

func unknownCommand(command proto.Message) error {
	return vakerr.New(vakerr.InvalidRequest, "nobody handles %T", command)
}

// Attend implements protocol.Door.
func (d door) Attend(client protocol.Client) (string, func()) { return d.host.clients.Attend(client) }

// Subscribe implements protocol.Door.
func (d door) Subscribe(tenant string, changed func()) (func(), error) {
	t, err := d.host.tenant(tenant)
	if err != nil {
		return nil, err
	}
	return t.changes.subscribe(changed), nil
}

var _ protocol.Door = door{}
