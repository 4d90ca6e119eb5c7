// Package ledger is the contract of a session's append-only record, and its hash chain.
//
// It decides what an entry is, how entries are chained, who may write (the activation whose epoch is current, at the
// head it expects) and what a broken chain looks like. It does not decide when to write, what a turn means or how bytes
// reach a disk: internal/store implements Store, actors decide the rest. The package is pure: no goroutine, no I/O, no
// clock but the one passed in.
//
// Invariants
//   - Sequences of a session start at 1 and have no gaps; entries are never changed and never removed.
//   - Every entry hashes its content and the hash before it. The chain starts at Genesis(tenant, session), so an entry
//     cannot be moved to another session or tenant.
//   - Epochs never fall along a chain. Taking the next epoch (Activate) shuts out whoever held the one before, for ever.
//   - A session of another tenant cannot be told from one that does not exist.
//
// The writer of a session owns a Head, makes entries with Head.Next, and hands them over as an Append that names the head
// it stands on. After an error that IsUnknown, or a fenced append, the head is worthless: activate anew, read, and look
// for the operation (Store.FindOperation).
package ledger
