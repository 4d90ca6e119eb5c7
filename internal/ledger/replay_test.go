package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// record serves a chain, at most two entries a read.
type record struct {
	info    SessionInfo
	entries []Entry
}

func (r record) Session(context.Context, string, SessionID) (SessionInfo, error) { return r.info, nil }

func (r record) Read(_ context.Context, _ string, _ SessionID, from uint64, limit int) ([]Entry, error) {
	rest := r.entries[min(int(from)-1, len(r.entries)):]
	return rest[:min(2, limit, len(rest))], nil
}

func TestReplay(t *testing.T) {
	all := chainOf(t, 5)
	whole := record{SessionInfo{Head: Origin("tenant", "s").after(all[4])}, all}
	grown := whole
	grown.info.Head = Origin("tenant", "s").after(all[2]) // two entries came after the replay began
	cut := record{whole.info, all[:3]}
	changed := record{whole.info, append([]Entry{}, all...)}
	changed.entries[3].Operation = "x"
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		record  record
		visited int
		want    vakerr.Code
	}{
		"whole": {whole, 5, ""}, "grown": {grown, 3, ""}, "cut": {cut, 3, vakerr.LedgerCorrupt}, "changed": {changed, 3, vakerr.LedgerCorrupt},
	} {
		visited := 0
		info, err := Replay(t.Context(), c.record, "tenant", "s", func(e Entry) error {
			if visited++; e.Seq != uint64(visited) {
				t.Errorf("%s: entry %d was visited as number %d", name, e.Seq, visited)
			}
			return nil
		})
		if visited != c.visited || vakerr.CodeOf(err) != c.want || info.Head != c.record.info.Head {
			t.Errorf("%s: %d visited, %v; want %d, %q", name, visited, err, c.visited, c.want)
		}
	}
	if _, err := Replay(t.Context(), whole, "tenant", "s", func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error came back as %v", err)
	}
}
