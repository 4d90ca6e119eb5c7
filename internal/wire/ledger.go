package wire

import (
	"time"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// LedgerEntry is the entry of a session that e carries. It returns ledger_corrupt for hashes that are none; whether the
// entry is what was written, only the chain tells.
func LedgerEntry(session string, e *ledgerv1.Entry) (ledger.Entry, error) {
	entry := ledger.Entry{
		Session: ledger.SessionID(session), Seq: e.GetSeq(), Epoch: e.GetWriterEpoch(), At: time.UnixMicro(e.GetAtUs()).UTC(),
		Kind: ledger.Kind(e.GetKind()), Operation: e.GetOperation(), Body: e.GetBodyJson(),
	}
	if copy(entry.Hash[:], e.GetHash()) != len(e.GetHash()) || len(e.GetHash()) != len(entry.Hash) ||
		copy(entry.Prev[:], e.GetPrev()) != len(e.GetPrev()) || len(e.GetPrev()) != len(entry.Prev) {
		return ledger.Entry{}, vakerr.New(vakerr.LedgerCorrupt, "sequence %d of the answer carries no hash of %d bytes", e.GetSeq(), len(entry.Hash))
	}
	return entry, nil
}
