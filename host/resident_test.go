package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

// Beyond [sessions] max_resident sessions leave memory, whether or not they were unused for long, and lose nothing by it;
// one with an open turn stays.
func TestMaxResident(t *testing.T) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, configName), []byte("[sessions]\nmax_resident = 16\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHost(t, ws)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open := func(id string) bool {
		r, err := protocol.Call[*sessionv1.OpenSessionResult](ctx, h.Door(), &sessionv1.OpenSession{SessionId: id})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetResumed()
	}
	open("busy")
	if _, err := protocol.Call[*sessionv1.BeginTurnResult](ctx, h.Door(), &sessionv1.BeginTurn{SessionId: "busy"}); err != nil {
		t.Fatal(err)
	}
	const sessions = 96
	live := func() (n int, busy bool) {
		r, err := protocol.Call[*sessionv1.ListSessionsResult](ctx, h.Door(), &sessionv1.ListSessions{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.GetSessions() {
			if s.GetState() == "live" {
				n, busy = n+1, busy || s.GetSessionId() == "busy"
			}
		}
		return n, busy
	}
	for i := range sessions {
		open(fmt.Sprint("s", i))
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		n, busy := live()
		if !busy {
			t.Fatal("a session with an open turn was passivated")
		}
		if n <= 2*sessionShards+1 { // one a directory, one that just came, and the busy one
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d of %d sessions are live, at most 16 are to be kept", n, sessions)
		}
		if !open(fmt.Sprint("s", i%sessions)) {
			t.Fatal("a session that left memory was not resumed")
		}
	}
}
