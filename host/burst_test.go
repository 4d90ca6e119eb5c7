package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

// A call tells the epoch that it was bound to, also when the burst it belonged to was left because the epoch moved.
func TestCallTellsItsOwnEpoch(t *testing.T) {
	ws := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The hook says that it was asked, and waits to be let go.
	write("vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"echo >> asked; while [ ! -e go ]; do sleep 0.01; done\"\n")
	h := startHost(t, ws)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	open, err := protocol.Call[*sessionv1.OpenSessionResult](ctx, h.Door(), &sessionv1.OpenSession{})
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan *sessionv1.DispatchResult, 2)
	call := func() {
		go func() {
			r, err := protocol.Call[*sessionv1.DispatchResult](ctx, h.Door(), &sessionv1.Dispatch{
				SessionId: open.GetSession().GetSessionId(), Name: "glob", ArgumentsJson: []byte(`{"pattern":"*"}`),
			})
			if err != nil {
				t.Error(err)
			}
			results <- r
		}()
	}
	reload := func() uint64 {
		r, err := protocol.Call[*registryv1.ReloadResult](ctx, h.Door(), &registryv1.Reload{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetEpoch()
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	underWay := func(calls int64) {
		for {
			if info, err := os.Stat(filepath.Join(ws, "asked")); err == nil && info.Size() == calls {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatal("the hook was not asked")
			}
		}
	}
	before := reload()
	call()
	underWay(1)
	write("commands/new.md", "do it")
	after := reload()
	if after == before {
		t.Fatal("the epoch did not move")
	}
	call()
	underWay(2)
	write("go", "")
	got := map[uint64]int{}
	for range 2 {
		got[(<-results).GetEpoch()]++
	}
	if got[before] != 1 || got[after] != 1 {
		t.Errorf("calls tell the epochs %v, want one of %d and one of %d", got, before, after)
	}
}
