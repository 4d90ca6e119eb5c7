package host

import (
	"context"

	ledgerv1 "github.com/vak-actors/vak-actors/messages/vak/ledger/v1"

	"github.com/vak-actors/vak-actors/internal/builtin"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/store"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// sessionLedger is the ledger as sessions use it.
type sessionLedger struct {
	*store.SQLite
	commit *store.Committer
}

// Submit implements session.Ledger.
func (l sessionLedger) Submit(w ledger.Write, urgent bool, done func(ledger.Outcome)) {
	urgency := store.Soon
	if urgent {
		urgency = store.Now
	}
	l.commit.Submit(w, urgency, done)
}

// Behind implements session.Ledger.
func (l sessionLedger) Behind() bool { return l.commit.Behind() }

// values is the ledger as the registry uses it.
type values struct {
	*store.SQLite
	commit *store.Committer
}

// Put implements registry.Values.
func (v values) Put(ctx context.Context, tenant, key string, value []byte) error {
	return v.commit.Commit(ctx, ledger.Put{Tenant: tenant, Key: key, Value: value}).Err
}

// history is what session_search finds: the caller's own session.
type history struct{ *store.SQLite }

// Search implements builtin.History.
func (h history) Search(ctx context.Context, c op.Call, query string, limit int) ([]builtin.Recollection, error) {
	q, err := ledger.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	entries, err := h.SQLite.Search(ctx, c.Tenant, ledger.SessionID(c.Session), q, limit)
	if err != nil {
		return nil, err
	}
	found := make([]builtin.Recollection, len(entries))
	for i, e := range entries {
		found[i] = builtin.Recollection{Session: string(e.Session), Seq: e.Seq, At: e.At, Kind: string(e.Kind), Text: string(e.Body)}
	}
	return found, nil
}

const defaultEntries = 200

// flush returns when everything that was recorded before is durable, so that a reader sees what it has caused. Writes are
// committed in order: one that does nothing is a barrier.
func (h *Host) flush(ctx context.Context, tenant string) error {
	return h.commit.Commit(ctx, ledger.Put{Tenant: tenant, Key: "host.barrier"}).Err
}

func (h *Host) readLedger(ctx context.Context, tenant string, m *ledgerv1.ReadLedger) (*ledgerv1.ReadLedgerResult, error) {
	from, limit := max(m.GetFromSeq(), 1), int(m.GetLimit())
	if limit == 0 {
		limit = defaultEntries
	}
	id := ledger.SessionID(m.GetSessionId())
	if err := ledger.ValidateSessionID(id); err != nil {
		return nil, err
	}
	if err := h.flush(ctx, tenant); err != nil {
		return nil, err
	}
	info, err := h.store.Session(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	entries, err := h.store.Read(ctx, tenant, id, from, limit)
	if err != nil {
		return nil, err
	}
	result := &ledgerv1.ReadLedgerResult{}
	for _, e := range entries {
		result.Entries = append(result.Entries, &ledgerv1.Entry{
			Seq: e.Seq, WriterEpoch: e.Epoch, AtUs: e.At.UnixMicro(), Kind: string(e.Kind), BodyJson: e.Body,
			Hash: e.Hash[:], Prev: e.Prev[:], Operation: e.Operation,
		})
	}
	if len(entries) > 0 && entries[len(entries)-1].Seq < info.Head.Seq {
		result.NextSeq = entries[len(entries)-1].Seq + 1
	}
	return result, nil
}

// maxFaults bounds how many broken sessions one answer names.
const maxFaults = 100

func (h *Host) verifyLedger(ctx context.Context, tenant string, m *ledgerv1.VerifyLedger) (*ledgerv1.VerifyLedgerResult, error) {
	if err := h.flush(ctx, tenant); err != nil {
		return nil, err
	}
	result := &ledgerv1.VerifyLedgerResult{}
	if m.GetSessionId() != "" {
		id := ledger.SessionID(m.GetSessionId())
		if err := ledger.ValidateSessionID(id); err != nil {
			return nil, err
		}
		return result, h.verifySession(ctx, tenant, id, result)
	}
	for after := ledger.SessionID(""); ; {
		page, err := h.store.Sessions(ctx, tenant, ledger.Page{After: after})
		if err != nil || len(page) == 0 {
			return result, err
		}
		for _, info := range page {
			if err := h.verifySession(ctx, tenant, info.ID, result); err != nil {
				return nil, err
			}
		}
		after = page[len(page)-1].ID
	}
}

// verifySession adds one session to result; a broken chain is a fault there and no error.
func (h *Host) verifySession(ctx context.Context, tenant string, id ledger.SessionID, result *ledgerv1.VerifyLedgerResult) error {
	_, err := ledger.Replay(ctx, h.store, tenant, id, func(ledger.Entry) error {
		result.Entries++
		return nil
	})
	result.Sessions++
	if vakerr.CodeOf(err) == vakerr.LedgerCorrupt {
		if len(result.Faults) < maxFaults {
			result.Faults = append(result.Faults, vakerr.From(err).Reason)
		}
		return nil
	}
	return err
}
