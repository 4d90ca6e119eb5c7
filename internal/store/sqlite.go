package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the database/sql driver

	"github.com/vak-actors/vak-actors/internal/ledger"
)

const (
	driverName = "sqlite"
	readers    = 4 // connections for reading
)

// SQLite is a ledger.Store in one file of a data folder.
type SQLite struct {
	folder string
	lock   *os.File
	writer *sql.DB // exactly one connection
	reader *sql.DB // read-only connections
	sql    statements

	// gate is held shared by every call and exclusively by Close, so that the folder is given up only when nothing runs.
	gate   sync.RWMutex
	closed bool
}

var _ ledger.Store = (*SQLite)(nil)

// OpenSQLite opens the data folder, making it (mode 0700) and its files (0600) where they are missing, and owns it until
// Close. It returns data_folder_locked while somebody else does, ledger_unavailable when the folder or its files cannot
// be used, ledger_corrupt for a file that is no sound database and ledger_too_new for one of a newer version; a file that
// is refused is left as it is.
func OpenSQLite(ctx context.Context, folder string) (*SQLite, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, folderError(folder, err)
	}
	s := &SQLite{folder: folder}
	if s.lock, err = lockFolder(folder); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		_ = s.release() // what went wrong first is what counts
		return nil, s.publicError(err)
	}
	return s, nil
}

func (s *SQLite) open(ctx context.Context) (err error) {
	path := filepath.Join(s.folder, databaseName)
	if err := createDatabase(ctx, s.folder); err != nil {
		return err
	}
	s.reader, err = sql.Open(driverName, dsn(path, url.Values{"mode": {"ro"}},
		"busy_timeout(5000)", "cell_size_check(ON)", "trusted_schema(OFF)"))
	if err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	version, err := schemaOf(ctx, s.reader, path)
	if err != nil {
		return err
	}
	s.writer, err = sql.Open(driverName, dsn(path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}},
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(OFF)", "cell_size_check(ON)",
		"trusted_schema(OFF)", "journal_size_limit(67108864)"))
	if err != nil {
		return err
	}
	s.writer.SetMaxOpenConns(1)
	if err := migrate(ctx, s.writer, version); err != nil {
		return err
	}
	return s.sql.prepare(ctx, s.writer)
}

// dsn is the driver's name of a database; each connection runs the pragmas when it is made.
func dsn(path string, query url.Values, pragmas ...string) string {
	if query == nil {
		query = url.Values{}
	}
	query["_pragma"] = pragmas
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// enter begins a call; the returned function ends it.
func (s *SQLite) enter() (leave func(), err error) {
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return nil, closedError()
	}
	return s.gate.RUnlock, nil
}

// Close implements ledger.Store. A second call does nothing.
func (s *SQLite) Close() error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.release(); err != nil {
		return s.publicError(err)
	}
	return nil
}

// release closes what is open; the lock goes last.
func (s *SQLite) release() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
