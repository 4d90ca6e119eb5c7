package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// TestLedgerEntryKeepsTheChain: what comes over the wire still verifies.
func TestLedgerEntryKeepsTheChain(t *testing.T) {
	head := ledger.Origin("t", "s")
	head.Epoch = 3
	want, _, err := head.Next(time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), "op", ledger.TurnEnded{Turn: "t1"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := LedgerEntry("s", message(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v (-sent +got):\n%s", err, diff)
	}
	if err := ledger.Verify("t", "s", []ledger.Entry{got}); err != nil {
		t.Error(err)
	}
}

func message(e ledger.Entry) *ledgerv1.Entry {
	return &ledgerv1.Entry{
		Seq: e.Seq, WriterEpoch: e.Epoch, AtUs: e.At.UnixMicro(), Kind: string(e.Kind), BodyJson: e.Body, Hash: e.Hash[:],
		Prev: e.Prev[:], Operation: e.Operation,
	}
}

// FuzzLedgerEntry: any hashes end in an entry with these hashes, or in ledger_corrupt.
func FuzzLedgerEntry(f *testing.F) {
	f.Add(make([]byte, 32), make([]byte, 32), int64(0))
	f.Add(make([]byte, 31), make([]byte, 33), int64(-1))
	f.Fuzz(func(t *testing.T, hash, prev []byte, at int64) {
		e, err := LedgerEntry("s", &ledgerv1.Entry{Hash: hash, Prev: prev, AtUs: at})
		if whole := len(hash) == 32 && len(prev) == 32; whole != (err == nil) || err != nil && vakerr.CodeOf(err) != vakerr.LedgerCorrupt {
			t.Fatalf("%d and %d bytes: %v", len(hash), len(prev), err)
		}
		if err == nil && (string(e.Hash[:]) != string(hash) || string(e.Prev[:]) != string(prev)) {
			t.Fatal("other hashes")
		}
	})
}
