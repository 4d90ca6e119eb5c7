package api

import (
	"context"

	"connectrpc.com/connect"

	approvalv1 "github.com/vak-actors/vak-actors/messages/vak/approval/v1"
	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"
	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"
	"github.com/vak-actors/vak-actors/messages/vak/v1/vakv1connect"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

// services implements all services of vak.v1: every method passes its message through the door.
type services struct{ door protocol.Door }

var (
	_ vakv1connect.SessionServiceHandler  = services{}
	_ vakv1connect.RegistryServiceHandler = services{}
	_ vakv1connect.ServerServiceHandler   = services{}
	_ vakv1connect.LedgerServiceHandler   = services{}
	_ vakv1connect.ApprovalServiceHandler = services{}
)

func (s services) OpenSession(ctx context.Context, r *connect.Request[sessionv1.OpenSession]) (*connect.Response[sessionv1.OpenSessionResult], error) {
	return ask[sessionv1.OpenSessionResult](ctx, s.door, r)
}

func (s services) BeginTurn(ctx context.Context, r *connect.Request[sessionv1.BeginTurn]) (*connect.Response[sessionv1.BeginTurnResult], error) {
	return ask[sessionv1.BeginTurnResult](ctx, s.door, r)
}

func (s services) Dispatch(ctx context.Context, r *connect.Request[sessionv1.Dispatch]) (*connect.Response[sessionv1.DispatchResult], error) {
	return ask[sessionv1.DispatchResult](ctx, s.door, r)
}

func (s services) EndTurn(ctx context.Context, r *connect.Request[sessionv1.EndTurn]) (*connect.Response[sessionv1.EndTurnResult], error) {
	return ask[sessionv1.EndTurnResult](ctx, s.door, r)
}

func (s services) CloseSession(ctx context.Context, r *connect.Request[sessionv1.CloseSession]) (*connect.Response[sessionv1.CloseSessionResult], error) {
	return ask[sessionv1.CloseSessionResult](ctx, s.door, r)
}

func (s services) GetSession(ctx context.Context, r *connect.Request[sessionv1.GetSession]) (*connect.Response[sessionv1.GetSessionResult], error) {
	return ask[sessionv1.GetSessionResult](ctx, s.door, r)
}

func (s services) ListSessions(ctx context.Context, r *connect.Request[sessionv1.ListSessions]) (*connect.Response[sessionv1.ListSessionsResult], error) {
	return ask[sessionv1.ListSessionsResult](ctx, s.door, r)
}

func (s services) ListTools(ctx context.Context, r *connect.Request[sessionv1.ListTools]) (*connect.Response[sessionv1.ListToolsResult], error) {
	return ask[sessionv1.ListToolsResult](ctx, s.door, r)
}

func (s services) GetReport(ctx context.Context, r *connect.Request[registryv1.GetReport]) (*connect.Response[registryv1.GetReportResult], error) {
	return ask[registryv1.GetReportResult](ctx, s.door, r)
}

func (s services) Revoke(ctx context.Context, r *connect.Request[registryv1.Revoke]) (*connect.Response[registryv1.RevokeResult], error) {
	return ask[registryv1.RevokeResult](ctx, s.door, r)
}

func (s services) Restore(ctx context.Context, r *connect.Request[registryv1.Restore]) (*connect.Response[registryv1.RestoreResult], error) {
	return ask[registryv1.RestoreResult](ctx, s.door, r)
}

func (s services) Reload(ctx context.Context, r *connect.Request[registryv1.Reload]) (*connect.Response[registryv1.ReloadResult], error) {
	return ask[registryv1.ReloadResult](ctx, s.door, r)
}

func (s services) GetSurface(ctx context.Context, r *connect.Request[registryv1.GetSurface]) (*connect.Response[registryv1.GetSurfaceResult], error) {
	return ask[registryv1.GetSurfaceResult](ctx, s.door, r)
}

func (s services) ListPins(ctx context.Context, r *connect.Request[registryv1.ListPins]) (*connect.Response[registryv1.ListPinsResult], error) {
	return ask[registryv1.ListPinsResult](ctx, s.door, r)
}

func (s services) DecidePin(ctx context.Context, r *connect.Request[registryv1.DecidePin]) (*connect.Response[registryv1.DecidePinResult], error) {
	return ask[registryv1.DecidePinResult](ctx, s.door, r)
}

func (s services) Find(ctx context.Context, r *connect.Request[registryv1.Find]) (*connect.Response[registryv1.FindResult], error) {
	return ask[registryv1.FindResult](ctx, s.door, r)
}

func (s services) ListServers(ctx context.Context, r *connect.Request[poolv1.ListServers]) (*connect.Response[poolv1.ListServersResult], error) {
	return ask[poolv1.ListServersResult](ctx, s.door, r)
}

func (s services) ProbeServer(ctx context.Context, r *connect.Request[poolv1.ProbeServer]) (*connect.Response[poolv1.ProbeServerResult], error) {
	return ask[poolv1.ProbeServerResult](ctx, s.door, r)
}

func (s services) StopServer(ctx context.Context, r *connect.Request[poolv1.StopServer]) (*connect.Response[poolv1.StopServerResult], error) {
	return ask[poolv1.StopServerResult](ctx, s.door, r)
}

func (s services) GetServerLogs(ctx context.Context, r *connect.Request[poolv1.GetServerLogs]) (*connect.Response[poolv1.GetServerLogsResult], error) {
	return ask[poolv1.GetServerLogsResult](ctx, s.door, r)
}

func (s services) ReadLedger(ctx context.Context, r *connect.Request[ledgerv1.ReadLedger]) (*connect.Response[ledgerv1.ReadLedgerResult], error) {
	return ask[ledgerv1.ReadLedgerResult](ctx, s.door, r)
}

func (s services) VerifyLedger(ctx context.Context, r *connect.Request[ledgerv1.VerifyLedger]) (*connect.Response[ledgerv1.VerifyLedgerResult], error) {
	return ask[ledgerv1.VerifyLedgerResult](ctx, s.door, r)
}

func (s services) ListApprovals(ctx context.Context, r *connect.Request[approvalv1.ListApprovals]) (*connect.Response[approvalv1.ListApprovalsResult], error) {
	return ask[approvalv1.ListApprovalsResult](ctx, s.door, r)
}

func (s services) GetApproval(ctx context.Context, r *connect.Request[approvalv1.GetApproval]) (*connect.Response[approvalv1.GetApprovalResult], error) {
	return ask[approvalv1.GetApprovalResult](ctx, s.door, r)
}

func (s services) AnswerApproval(ctx context.Context, r *connect.Request[approvalv1.AnswerApproval]) (*connect.Response[approvalv1.AnswerApprovalResult], error) {
	return ask[approvalv1.AnswerApprovalResult](ctx, s.door, r)
}
