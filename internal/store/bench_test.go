package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
)

// filler makes bodies of about 600 bytes.
var filler = fmt.Sprintf("%0500d", 7)

func benchEntry(b testing.TB, head ledger.Head) (ledger.Entry, ledger.Head) {
	e, next, err := head.Next(time.Unix(1_700_000_000, 0), "", ledger.TurnEnded{Turn: "t", Reason: filler})
	if err != nil {
		b.Fatal(err)
	}
	return e, next
}

func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) { benchAppend(b, sessions) })
	}
}

func benchAppend(b *testing.B, sessions int) {
	s, err := OpenSQLite(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := NewCommitter(b.Context(), CommitterConfig{Store: s})
	defer c.Close()
	heads := make([]ledger.Head, sessions)
	for i := range heads {
		out := c.Commit(b.Context(), ledger.Open{Tenant: "t", ID: ledger.SessionID(fmt.Sprintf("s%d", i)), Owner: "o", At: time.Unix(1_700_000_000, 0)})
		if out.Err != nil {
			b.Fatal(out.Err)
		}
		heads[i] = out.Head
	}
	work := make(chan struct{}, sessions)
	var group sync.WaitGroup
	b.ResetTimer()
	b.ReportAllocs()
	for i := range heads {
		group.Go(func() {
			for range work {
				e, next := benchEntry(b, heads[i])
				if out := c.Commit(b.Context(), ledger.Append{Tenant: "t", On: heads[i], Entries: []ledger.Entry{e}}); out.Err != nil {
					b.Error(out.Err)
				}
				heads[i] = next
			}
		})
	}
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkOpenActivate opens and activates each of b.N sessions, as a daemon does that is given many at once.
func BenchmarkOpenActivate(b *testing.B) {
	s, err := OpenSQLite(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := NewCommitter(b.Context(), CommitterConfig{Store: s})
	defer c.Close()
	var group sync.WaitGroup
	gate := make(chan struct{}, 1000)
	submit := func(w ledger.Write) {
		gate <- struct{}{}
		group.Add(1)
		c.Submit(w, Now, func(out ledger.Outcome) {
			if out.Err != nil {
				b.Error(out.Err)
			}
			<-gate
			group.Done()
		})
	}
	b.ResetTimer()
	for i := range b.N {
		submit(ledger.Open{Tenant: "t", ID: ledger.SessionID(fmt.Sprintf("s%d", i)), Owner: "o", At: time.Unix(1_700_000_000, 0)})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "opens/s")
	opened := b.Elapsed()
	for i := range b.N {
		submit(ledger.Activate{Tenant: "t", ID: ledger.SessionID(fmt.Sprintf("s%d", i)), Owner: "p", At: time.Unix(1_700_000_000, 0)})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/(b.Elapsed()-opened).Seconds(), "activations/s")
}
