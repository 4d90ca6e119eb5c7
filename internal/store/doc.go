// Package store keeps ledgers and small values of tenants in one SQLite file, and commits writes in groups.
//
// SQLite implements ledger.Store. It decides how entries lie on the disk, what is durable, and which failure of the disk
// is which error; what may be written is decided by package ledger and by one conditional UPDATE (epoch, head and hash
// must be the writer's), never by a lock or a lease. Committer is the queue in front of it: one goroutine that joins
// what is waiting into one transaction.
//
// Invariants
//   - One process owns a data folder: it holds an flock on the file "lock" in it from OpenSQLite to Close.
//   - There is one writing connection; WAL, synchronous=FULL: what Commit accepted survives a crash of the machine.
//   - Entries are only ever inserted. Triggers refuse updates and deletes to any other program, too.
//   - A file that cannot be understood (corrupt, newer, not a ledger) is refused with a typed error and left as it is.
//
// Foreign keys are off by design: the one relation (entry to session) is written by one statement pair, and a check
// would cost a look-up for each entry.
package store
