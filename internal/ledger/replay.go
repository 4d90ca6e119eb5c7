package ledger

import "context"

// Replayed is what Replay needs of a Store.
type Replayed interface {
	Session(ctx context.Context, tenant string, id SessionID) (SessionInfo, error)
	Read(ctx context.Context, tenant string, id SessionID, from uint64, limit int) ([]Entry, error)
}

// Replay calls visit for every entry of a session's record, in order, each only after the chain up to it was verified.
// It ends at the head the session had when it began, and returns it. A broken or cut record is ledger_corrupt; an error
// of visit ends the replay and is returned as it is.
func Replay(ctx context.Context, store Replayed, tenant string, id SessionID, visit func(Entry) error) (SessionInfo, error) {
	info, err := store.Session(ctx, tenant, id)
	if err != nil {
		return info, err
	}
	v := NewVerifier(tenant, id)
	for v.Head().Seq < info.Head.Seq {
		some, err := store.Read(ctx, tenant, id, v.Head().Seq+1, int(min(info.Head.Seq-v.Head().Seq, MaxRead)))
		if err != nil {
			return info, err
		}
		if len(some) == 0 {
			break
		}
		for _, e := range some {
			if err := v.Next(e); err != nil {
				return info, err
			}
			if err := visit(e); err != nil {
				return info, err
			}
		}
	}
	return info, v.End(info.Head)
}
