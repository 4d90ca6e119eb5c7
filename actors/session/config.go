package session

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/skillfiles"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// Ledger is what sessions need of the ledger. Methods may be called from any goroutine.
type Ledger interface {
	// Submit queues a write and returns at once. done is called once, from another goroutine or before Submit returns;
	// it does not block. A write that is not urgent may wait up to 50 ms for company.
	Submit(w ledger.Write, urgent bool, done func(ledger.Outcome))

	// Behind reports whether writes have waited for longer than that: then calls wait for theirs. It does not block.
	Behind() bool

	// The others block; they are called from effects.
	Session(ctx context.Context, tenant string, id ledger.SessionID) (ledger.SessionInfo, error)
	Sessions(ctx context.Context, tenant string, page ledger.Page) ([]ledger.SessionInfo, error)
	Read(ctx context.Context, tenant string, id ledger.SessionID, from uint64, limit int) ([]ledger.Entry, error)
}

// Config is what the sessions of a tenant are made of.
type Config struct {
	Tenant     string
	Owner      string // who writes: node and incarnation
	Gate       *turn.Gate
	Admissions *dispatch.Admissions
	Skills     *skillfiles.Store
	Pipeline   *dispatch.Pipeline
	Ledger     Ledger
	Reconciler *protocol.Address
	Slice      bool          // readings choose what is loaded ([intent] slice_capabilities)
	IdleTTL    time.Duration // an unused session is passivated after it; 0: DefaultIdleTTL
	MaxLive    int           // sessions of one directory in memory; beyond it the longest unused are passivated; 0: no bound

	// Route leads to the directory that is responsible for a session. It does not block.
	Route func(session string) actorkit.Ref

	// Residents holds the ids of the sessions in memory, of all directories together: each directory writes its own, and
	// whichever lists sessions reads all.
	Residents *sync.Map
}

// DefaultIdleTTL is how long an unused session stays in memory.
const DefaultIdleTTL = 10 * time.Minute

// Bounds.
const (
	maxCalls   = 256 // calls in flight of one session
	maxWaiting = 256 // messages that wait for a session to wake or a turn to be bound
)

// Command is a command for a session with the context of whoever waits for its result: when that ends, a call is given
// up. Fronts' commands arrive so; a bare message is a Command nobody gives up.
type Command struct {
	proto.Message
	//nolint:containedctx // it says when the asker is gone, and lives as long as the message
	Asker context.Context
}

// command is a message on its way to a session, with its answer.
type command struct {
	Command
	reply     actorkit.Replier
	directory actorkit.Ref
}

// Undelivered implements actorkit.Undelivered: a session that ended has not begun with the command, so its next
// activation gets it.
func (m command) Undelivered(why error) {
	if m.directory.Tell(m) != nil {
		m.reply.Reply(why)
	}
}

// Shard says which of n directories is responsible for a session.
func Shard(id string, n int) int { return int(hash(id)) % n }

func hash(id string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return h.Sum32() & 0x7fffffff
}
