package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Urgency says how long a write may wait for company.
type Urgency uint8

// The urgencies.
const (
	Now  Urgency = iota // commit as soon as the disk is free
	Soon                // commit within CommitterConfig.Delay, or with the next write that is Now
)

// Group is what a Committer needs of a store. It is called from the committer's goroutine alone and may block.
type Group interface {
	// Commit is ledger.Store's.
	Commit(ctx context.Context, writes []ledger.Write) []ledger.Outcome
}

// CommitterConfig configures a Committer; zero values mean the defaults.
type CommitterConfig struct {
	Store Group // required

	Queue      int           // writes waiting; default 16,384
	QueueBytes int           // their size; default 64 MiB, and one write of any size always fits an empty queue
	Batch      int           // writes of one transaction; default 1,024
	BatchBytes int           // their size; default 8 MiB, and one write of any size always fits
	Delay      time.Duration // the longest wait of a write that is Soon; default 50 ms
}

func (c CommitterConfig) withDefaults() CommitterConfig {
	fill(&c.Queue, 16_384)
	fill(&c.QueueBytes, 64<<20)
	fill(&c.Batch, 1024)
	fill(&c.BatchBytes, 8<<20)
	fill(&c.Delay, 50*time.Millisecond)
	return c
}

func fill[T int | time.Duration](value *T, preset T) {
	if *value <= 0 {
		*value = preset
	}
}

// Committer joins writes of many sessions into few transactions. Writes are committed in the order in which they were
// submitted, whatever their urgency: so each session's order is kept, and a write that is Soon is durable no later than
// any write submitted after it.
//
// It owns one goroutine, which ends with Close. All methods may be called from any goroutine.
type Committer struct {
	config CommitterConfig
	ctx    context.Context //nolint:containedctx // of every commit; lives as long as the committer
	wake   chan struct{}   // one token: the queue changed; never closed
	ended  chan struct{}   // closed by run

	failure atomic.Pointer[Failure] // nil while the storage works

	mu      sync.Mutex // guards what follows
	queue   []item     // in order of submission
	bytes   int        // size of the queue
	urgent  int        // writes of the queue that are Now
	closing bool
}

type item struct {
	write   ledger.Write
	size    int
	urgency Urgency
	at      time.Time // of submission
	done    func(ledger.Outcome)
}

// NewCommitter starts a committer. Its commits carry ctx; one that is canceled makes the store refuse them.
func NewCommitter(ctx context.Context, config CommitterConfig) *Committer {
	c := &Committer{
		config: config.withDefaults(), ctx: ctx,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go c.run()
	return c
}

// Submit queues a write and returns at once. done is called exactly once: from the committer's goroutine when the outcome
// is known, or before Submit returns when the write is refused, with queue_full or shutting_down. It must not block. The
// write must not be changed any more.
func (c *Committer) Submit(w ledger.Write, u Urgency, done func(ledger.Outcome)) {
	if err := c.enqueue(w, u, done); err != nil {
		done(ledger.Outcome{Err: err})
	}
}

func (c *Committer) enqueue(w ledger.Write, u Urgency, done func(ledger.Outcome)) error {
	it := item{w, w.Size(), u, time.Now(), done}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return vakerr.New(vakerr.ShuttingDown, "the ledger takes no more entries").WithRemedy("wait for the daemon to come back")
	case len(c.queue) >= c.config.Queue, len(c.queue) > 0 && c.bytes+it.size > c.config.QueueBytes:
		return vakerr.New(vakerr.QueueFull, "%d writes wait for the ledger", len(c.queue)).
			WithRemedy("slow down, or look for what makes the disk slow").WithRetryAfter(c.config.Delay)
	}
	c.queue = append(c.queue, it)
	c.bytes += it.size
	if u == Now {
		c.urgent++
	}
	if len(c.queue) == 1 || c.dueLocked() { // else the committer sleeps until the oldest is due, or is at work
		c.signal()
	}
	return nil
}

// Behind reports whether a write has waited for longer than CommitterConfig.Delay: the disk is slower than the writers.
// Whoever can wait for its write should then, so that the queue stays short.
func (c *Committer) Behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0 && time.Since(c.queue[0].at) > c.config.Delay
}

// Commit submits a write that is Now and waits for its outcome. When ctx ends first, the outcome is unknown. An actor
// must not call it.
func (c *Committer) Commit(ctx context.Context, w ledger.Write) ledger.Outcome {
	answer := make(chan ledger.Outcome, 1)
	c.Submit(w, Now, func(out ledger.Outcome) { answer <- out })
	select {
	case out := <-answer:
		return out
	case <-ctx.Done():
		return ledger.Outcome{Err: ledger.Unknown(context.Cause(ctx))}
	}
}

// Close refuses further writes, commits what is queued and returns when that is done. It may be called more than once.
// The store stays open.
func (c *Committer) Close() {
	c.mu.Lock()
	c.closing = true
	c.signal()
	c.mu.Unlock()
	<-c.ended
}

func (c *Committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // a token is there already
	}
}

func (c *Committer) run() {
	defer close(c.ended)
	for {
		batch, wait, end := c.next(time.Now())
		switch {
		case end:
			return
		case len(batch) > 0:
			c.commit(batch)
		default:
			c.sleep(wait)
		}
	}
}

// sleep waits for a change of the queue, at most for wait; without a bound when wait is zero.
func (c *Committer) sleep(wait time.Duration) {
	if wait == 0 {
		<-c.wake
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.wake:
	case <-timer.C:
	}
}

// next takes the writes that are to be committed now. When there are none, wait is the time until there will be, zero
// for an empty queue; end says that there will never be any.
func (c *Committer) next(now time.Time) (batch []item, wait time.Duration, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil, 0, c.closing
	}
	if wait = c.untilDueLocked(now); wait > 0 {
		return nil, wait, false
	}
	return c.takeLocked(), 0, false
}

// untilDueLocked is how long the queue may still wait. A queue that fills a batch gains nothing by waiting. Every Soon
// waits equally long, so the oldest is due first.
func (c *Committer) untilDueLocked(now time.Time) time.Duration {
	if c.dueLocked() {
		return 0
	}
	return c.queue[0].at.Add(c.config.Delay).Sub(now)
}

// dueLocked reports whether the queue has no reason to wait, however young it is.
func (c *Committer) dueLocked() bool {
	return c.urgent > 0 || c.closing || len(c.queue) >= c.config.Batch || c.bytes >= c.config.BatchBytes
}

// takeLocked removes the oldest writes from the queue, as many as fit a batch.
func (c *Committer) takeLocked() []item {
	n, size := 0, 0
	for n < len(c.queue) && n < c.config.Batch && (n == 0 || size+c.queue[n].size <= c.config.BatchBytes) {
		size += c.queue[n].size
		if c.queue[n].urgency == Now {
			c.urgent--
		}
		n++
	}
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	c.bytes -= size
	if len(c.queue) == 0 {
		c.queue = nil // else its array would keep what was committed
	}
	return batch
}

func (c *Committer) commit(batch []item) {
	writes := make([]ledger.Write, len(batch))
	for i, it := range batch {
		writes[i] = it.write
	}
	outcomes := c.config.Store.Commit(c.ctx, writes)
	c.note(outcomes)
	for i, out := range outcomes {
		batch[i].done(out)
	}
	clear(batch) // it shares the queue's array, which would keep the writes
}

// Failing says since when, and why, the storage takes nothing; ok is false while it does.
func (c *Committer) Failing() (f Failure, ok bool) {
	if p := c.failure.Load(); p != nil {
		return *p, true
	}
	return Failure{}, false
}

// Failure is a storage that takes nothing.
type Failure struct {
	Since  time.Time
	Reason string // public text
}

// note keeps Failing current: one write that was taken, or refused for a reason of its own, ends a failure.
func (c *Committer) note(outcomes []ledger.Outcome) {
	for _, out := range outcomes {
		if code := vakerr.CodeOf(out.Err); code != vakerr.LedgerUnavailable && code != vakerr.LedgerCorrupt {
			c.failure.Store(nil)
			return
		}
	}
	if c.failure.Load() == nil && len(outcomes) > 0 {
		c.failure.Store(&Failure{time.Now(), vakerr.From(outcomes[0].Err).Reason})
	}
}
