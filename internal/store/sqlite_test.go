package store

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		appendUntilKilled(folder)
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, folder string) *SQLite {
	t.Helper()
	s, err := OpenSQLite(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func opening(id ledger.SessionID) ledger.Open {
	return ledger.Open{Tenant: "t", ID: id, Owner: "o", At: ledgertest.At}
}

func note(text string) ledger.Body { return ledger.TurnEnded{Turn: "t", Reason: text} }

func TestSQLiteConforms(t *testing.T) {
	ledgertest.Conformance(t, func(t testing.TB) ledger.Store { return open(t, t.TempDir()) })
}

// raw opens the database as any other program could.
func raw(t *testing.T, folder string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driverName, dsn(filepath.Join(folder, databaseName), nil, "busy_timeout(5000)"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// V93: no statement of any program changes or removes what was recorded.
func TestTheLedgerIsAppendOnly(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	head := ledgertest.Must(t, s, opening("s"))
	ledgertest.Must(t, s, ledgertest.Record(t, "t", head, note("one"), note("two")))
	db := raw(t, folder)
	for _, statement := range []string{
		"UPDATE entry SET body = '{}' WHERE seq = 2",
		"UPDATE entry SET seq = 9 WHERE seq = 3",
		"DELETE FROM entry WHERE seq = 3",
		"DELETE FROM entry",
		"INSERT OR REPLACE INTO entry SELECT session, seq, epoch, at, kind, operation, '{}', prev, hash FROM entry",
		"REPLACE INTO entry SELECT * FROM entry WHERE seq = 1",
		"DELETE FROM session",
		"UPDATE session SET head = 1",
		"UPDATE session SET epoch = 0",
		"UPDATE session SET tenant = 'other'",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused as append-only", statement, err)
		}
	}
	if all := ledgertest.ReadAll(t, s, "t", "s"); len(all) != 3 {
		t.Fatalf("%d entries, want 3", len(all))
	}
}

func TestFilesArePrivate(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "data")
	s := open(t, folder)
	ledgertest.Must(t, s, opening("s"))
	var names []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		names = append(names, filepath.Base(path))
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || len(names) != 5 {
		t.Fatalf("the folder holds %v, %v; want itself, the lock, the database, its log and its index", names, err)
	}
}

func TestTheDatabaseIsDurable(t *testing.T) {
	s := open(t, t.TempDir())
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "0"} {
		var got string
		if err := s.writer.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s, %v; want %s", pragma, got, err, want)
		}
	}
	if _, err := s.reader.ExecContext(t.Context(), "DELETE FROM state"); err == nil {
		t.Error("a connection for reading can write")
	}
}

func TestReopeningKeepsEverything(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	head := ledgertest.Must(t, s, opening("s"))
	head = ledgertest.Must(t, s, ledgertest.Record(t, "t", head, note("one")))
	ledgertest.Must(t, s, ledger.Put{Tenant: "t", Key: "epoch", Value: []byte("7")})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, folder)
	if all := ledgertest.ReadAll(t, s, "t", "s"); len(all) != 2 || all[1].Hash != head.Hash {
		t.Fatalf("after reopening: %+v", all)
	}
	if value, _, err := s.State(t.Context(), "t", "epoch"); string(value) != "7" || err != nil {
		t.Fatalf("state after reopening: %q, %v", value, err)
	}
	ledgertest.Must(t, s, ledgertest.Record(t, "t", head, note("two")))
}

func TestACanceledCommitWritesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := s.Commit(ctx, []ledger.Write{opening("s")})[0]
	if vakerr.CodeOf(out.Err) != vakerr.Canceled || ledger.IsUnknown(out.Err) {
		t.Fatalf("outcome %v, want canceled and known", out.Err)
	}
	if _, err := s.Session(t.Context(), "t", "s"); vakerr.CodeOf(err) != vakerr.SessionNotFound {
		t.Fatalf("session: %v, want session_not_found", err)
	}
}

// endsWhenAsked is a context that ends right after it was first asked whether it has.
type endsWhenAsked struct {
	context.Context
	end func()
}

func (c endsWhenAsked) Err() error {
	err := c.Context.Err()
	c.end()
	return err
}

func TestACommitThatBeganIsNotInterrupted(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	if out := s.Commit(endsWhenAsked{ctx, cancel}, []ledger.Write{opening("s")})[0]; out.Err != nil {
		t.Fatalf("outcome %v, want the session opened", out.Err)
	}
}
