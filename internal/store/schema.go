package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// applicationID marks our database files (PRAGMA application_id): "vakL".
const applicationID = 0x76616b4c

// migrations lead from one schema to the next; PRAGMA user_version counts the ones that were applied. One that was
// released is never changed.
var migrations = [...]string{`
CREATE TABLE session (
	n          INTEGER PRIMARY KEY,
	tenant     TEXT    NOT NULL,
	id         TEXT    NOT NULL,
	closed     INTEGER NOT NULL DEFAULT 0,
	epoch      INTEGER NOT NULL, -- of the current activation
	head       INTEGER NOT NULL, -- sequence of the last entry
	hash       BLOB    NOT NULL, -- of the last entry
	owner      TEXT    NOT NULL, -- of the current activation
	created_at INTEGER NOT NULL, -- microseconds since 1970, like all times
	last_at    INTEGER NOT NULL, -- of the last entry
	attributes TEXT    NOT NULL, -- JSON object of strings
	UNIQUE (tenant, id)
) STRICT;

-- Without rowid, the entries of a session lie together, in order.
CREATE TABLE entry (
	session   INTEGER NOT NULL, -- session.n
	seq       INTEGER NOT NULL,
	epoch     INTEGER NOT NULL,
	at        INTEGER NOT NULL,
	kind      TEXT    NOT NULL,
	operation TEXT,
	body      TEXT    NOT NULL, -- JSON object
	prev      BLOB    NOT NULL,
	hash      BLOB    NOT NULL,
	PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX entry_operation ON entry (session, operation) WHERE operation IS NOT NULL;

CREATE TABLE state (
	tenant TEXT NOT NULL,
	key    TEXT NOT NULL,
	value  BLOB NOT NULL,
	PRIMARY KEY (tenant, key)
) STRICT;

CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER entry_is_never_removed BEFORE DELETE ON entry
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- INSERT OR REPLACE removes a row without asking the trigger above.
CREATE TRIGGER entry_is_never_replaced BEFORE INSERT ON entry
WHEN EXISTS (SELECT 1 FROM entry WHERE session = NEW.session AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER session_is_never_removed BEFORE DELETE ON session
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER session_never_goes_back BEFORE UPDATE ON session
WHEN NEW.head < OLD.head OR NEW.epoch < OLD.epoch OR NEW.closed < OLD.closed
	OR NEW.n <> OLD.n OR NEW.tenant <> OLD.tenant OR NEW.id <> OLD.id
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
`}

// createDatabase makes the database file unless there is one. It appears under its name only when it is whole, so an
// empty or half-made file of that name is damage and never taken for a new ledger.
func createDatabase(ctx context.Context, folder string) error {
	path := filepath.Join(folder, databaseName)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A log without its file means that the file was taken away: starting anew would drop what the log holds.
	if _, err := os.Stat(path + "-wal"); err == nil {
		return vakerr.New(vakerr.LedgerCorrupt, "%s is missing, but its log is there", path).
			WithRemedy("restore the data folder from a backup")
	}
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := fillDatabase(ctx, draft); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return rootfs.SyncFolder(folder)
}

func fillDatabase(ctx context.Context, draft string) error {
	db, err := sql.Open(driverName, dsn(draft, nil, "synchronous(FULL)", fmt.Sprintf("application_id(%d)", applicationID)))
	if err != nil {
		return err
	}
	err = migrate(ctx, db, 0)
	return errors.Join(err, db.Close())
}

// schemaOf returns the schema of the database. It returns ledger_corrupt for what is no ledger and ledger_too_new for one
// of a newer version. db reads only, so what is refused is not changed.
func schemaOf(ctx context.Context, db *sql.DB, path string) (version int, err error) {
	var id int
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return 0, err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, err
	}
	switch {
	case id != applicationID || version < 1:
		return 0, vakerr.New(vakerr.LedgerCorrupt, "%s is not a ledger", path).
			WithRemedy("restore the data folder from a backup, or name another data folder")
	case version > len(migrations):
		return 0, vakerr.New(vakerr.LedgerTooNew, "%s has schema %d, this version knows schemas up to %d", path, version, len(migrations)).
			WithRemedy("run the version that wrote it, or a newer one")
	}
	return version, nil
}

// migrate applies each migration that a database of the given schema lacks, in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB, version int) error {
	for ; version < len(migrations); version++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, migrations[version]+fmt.Sprintf("PRAGMA user_version = %d;", version+1))
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}
