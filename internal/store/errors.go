package store

import (
	"context"
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func closedError() error {
	return vakerr.New(vakerr.LedgerUnavailable, "the ledger is closed").WithRemedy("the daemon is shutting down; start it again")
}

// publicError gives an error of the database a public face; a typed one passes.
func (s *SQLite) publicError(err error) error {
	var typed *vakerr.Error
	var failed *sqlite.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, context.Canceled):
		return vakerr.New(vakerr.Canceled, "the caller gave up on the ledger").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return vakerr.New(vakerr.DeadlineExceeded, "the ledger did not answer in time").WithCause(err)
	case errors.As(err, &failed) && damaged(failed):
		return vakerr.New(vakerr.LedgerCorrupt, "the ledger in %s is damaged", s.folder).
			WithRemedy("stop the daemon, keep a copy of the folder, and restore it from a backup").WithCause(err)
	case failed == nil:
		return folderError(s.folder, err)
	}
	return vakerr.New(vakerr.LedgerUnavailable, "the ledger in %s does not work: %s", s.folder, causeText(failed)).
		WithRemedy("check the disk's space, health and permissions").WithCause(err)
}

// unknown is the error of a commit that failed: the write may have happened. It says what is wrong with the disk.
func (s *SQLite) unknown(err error) error {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return ledger.Unknown(err)
	}
	return vakerr.New(vakerr.LedgerUnavailable, "it is not known whether the ledger in %s took the entry: %s", s.folder, causeText(failed)).
		WithRemedy("check the disk's space, health and permissions, and look for the operation before repeating it").
		WithCause(ledger.Unknown(err))
}

// damaged tells a file that holds what it should not from one that cannot be reached. A violated constraint is damage:
// the writer never breaks one that it has not checked before.
func damaged(err *sqlite.Error) bool {
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT:
		return true
	}
	return false
}

func causeText(err *sqlite.Error) string {
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "the disk is full"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH:
		return "its files cannot be opened for writing"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds its file"
	case sqlite3.SQLITE_NOMEM:
		return "out of memory"
	}
	return "an input or output error"
}
