package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startHost(t *testing.T, workspace string) *Host {
	t.Helper()
	return startHostWith(t, Options{Workspace: workspace})
}

func startHostWith(t *testing.T, o Options) *Host {
	t.Helper()
	o.Data, o.Version = t.TempDir(), "test"
	h, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOneTurn(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, ws)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	report, err := protocol.Call[*registryv1.GetReportResult](ctx, h.Door(), &registryv1.GetReport{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", report.GetReportJson())
	s, err := protocol.Call[*sessionv1.OpenSessionResult](ctx, h.Door(), &sessionv1.OpenSession{})
	if err != nil {
		t.Fatal(err)
	}
	id := s.GetSession().GetSessionId()
	turn, err := protocol.Call[*sessionv1.BeginTurnResult](ctx, h.Door(), &sessionv1.BeginTurn{SessionId: id, Prompt: "/nothing"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v", turn)
	r, err := protocol.Call[*sessionv1.DispatchResult](ctx, h.Door(), &sessionv1.Dispatch{
		SessionId: id, TurnId: turn.GetTurnId(), Name: "read", ArgumentsJson: json.RawMessage(`{"path":"a.txt"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v", r)
	end, err := protocol.Call[*sessionv1.EndTurnResult](ctx, h.Door(), &sessionv1.EndTurn{SessionId: id, TurnId: turn.GetTurnId()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v", end)
}
