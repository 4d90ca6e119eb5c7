package ledger

import "context"

// Bounds of reads.
const (
	MaxRead      = 1000     // entries of one Read
	MaxReadBytes = 16 << 20 // body bytes after which a Read or Search stops early
	MaxPage      = 1000     // sessions of one page
	MaxFound     = 100      // entries of one Search
	MaxStateKeys = 10_000   // keys of one StateKeys
)

// Limit is what a read of at most limit takes when most is its bound.
func Limit(limit, most int) int {
	if limit < 1 || limit > most {
		return most
	}
	return limit
}

// Page asks for sessions in order of their ids.
type Page struct {
	After SessionID // exclusive; empty: from the first
	Limit int       // 1 to MaxPage; anything else is MaxPage
}

// Store keeps ledgers and small values. Its methods may be called from any goroutine and block on a disk, so an actor
// never calls them itself. Errors: session_not_found, ledger_unavailable (worth a retry), ledger_corrupt (not), canceled,
// deadline_exceeded, and what Open, Activate, Append and Put say.
type Store interface {
	// Commit writes all of writes, in order, in one transaction; each is accepted or refused on its own. What was
	// accepted is durable when Commit returns. When the transaction fails, every write in it gets an error, for which
	// IsUnknown says whether it may have happened all the same. A canceled context is heeded before the transaction
	// begins and not after.
	Commit(ctx context.Context, writes []Write) []Outcome

	// Read returns entries from the sequence from on, in order: at most limit (1 to MaxRead; anything else is MaxRead)
	// and fewer when they are large. None at all means that the end was reached.
	Read(ctx context.Context, tenant string, id SessionID, from uint64, limit int) ([]Entry, error)
	// Search returns the entries that match the query, newest first, at most limit (1 to MaxFound; anything else is
	// MaxFound).
	Search(ctx context.Context, tenant string, id SessionID, query Query, limit int) ([]Entry, error)
	// FindOperation returns the entry that carries the operation, and whether there is one.
	FindOperation(ctx context.Context, tenant string, id SessionID, operation string) (Entry, bool, error)

	// Session returns what is known of one session.
	Session(ctx context.Context, tenant string, id SessionID) (SessionInfo, error)
	// Sessions returns one page of a tenant's sessions; none at all means that the end was reached.
	Sessions(ctx context.Context, tenant string, page Page) ([]SessionInfo, error)

	// State returns the value that a Put keeps, and whether there is one.
	State(ctx context.Context, tenant, key string) ([]byte, bool, error)
	// StateKeys returns the tenant's keys that begin with prefix, in order, at most MaxStateKeys.
	StateKeys(ctx context.Context, tenant, prefix string) ([]string, error)

	// Close waits for what runs and lets the storage go. Later calls return ledger_unavailable.
	Close() error
}
