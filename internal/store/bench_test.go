package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
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
	for _, sessions := range []int{1, 64} {
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

// BenchmarkRead reads, and searches, a session of 10,000 entries of about 600 bytes.
func BenchmarkRead(b *testing.B) {
	s := open(b, b.TempDir())
	head := ledgertest.Must(b, s, opening("s"))
	const entries = 10_000
	for head.Seq < entries {
		w := ledger.Append{Tenant: "t", On: head}
		for range 100 {
			e, next := benchEntry(b, head)
			w.Entries, head = append(w.Entries, e), next
		}
		ledgertest.Must(b, s, w)
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for from := uint64(1); from <= entries; {
				some, err := s.Read(b.Context(), "t", "s", from, 0)
				if err != nil {
					b.Fatal(err)
				}
				from += uint64(len(some))
			}
		}
	})
	b.Run("search", func(b *testing.B) {
		q, err := ledger.ParseQuery("nowhere")
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if found, err := s.Search(b.Context(), "t", "s", q, 0); err != nil || len(found) > 0 {
				b.Fatal(found, err)
			}
		}
	})
}
