package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// What cannot be opened is a typed error that names the folder, and the file is left as it is.
func TestOpenRefusesAndKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, folder, database string)
		want   vakerr.Code
	}{
		"a broken header": {func(t *testing.T, _, db string) { write(t, db, bytes.Repeat([]byte("x"), 8192)) }, vakerr.LedgerCorrupt},
		"an empty file":   {func(t *testing.T, _, db string) { write(t, db, nil) }, vakerr.LedgerCorrupt},
		"a cut file": {func(t *testing.T, _, db string) {
			if err := os.Truncate(db, 4096); err != nil {
				t.Fatal(err)
			}
		}, vakerr.LedgerCorrupt},
		"another program's database": {func(t *testing.T, folder, _ string) {
			if _, err := raw(t, folder).ExecContext(t.Context(), "PRAGMA application_id = 1"); err != nil {
				t.Fatal(err)
			}
		}, vakerr.LedgerCorrupt},
		"a newer schema": {func(t *testing.T, folder, _ string) {
			query := fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1)
			if _, err := raw(t, folder).ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}, vakerr.LedgerTooNew},
		"a log without its database": {func(t *testing.T, _, db string) {
			remove(t, db)
			write(t, db+"-wal", []byte("entries"))
		}, vakerr.LedgerCorrupt},
		"a folder in place of the database": {func(t *testing.T, _, db string) {
			remove(t, db)
			if err := os.Mkdir(db, 0o700); err != nil {
				t.Fatal(err)
			}
		}, vakerr.LedgerUnavailable},
		"a folder in place of the lock": {func(t *testing.T, folder, _ string) {
			remove(t, filepath.Join(folder, lockName))
			if err := os.Mkdir(filepath.Join(folder, lockName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, vakerr.LedgerUnavailable},
		"a file in place of the folder": {func(t *testing.T, folder, _ string) {
			remove(t, folder)
			write(t, folder, nil)
		}, vakerr.LedgerUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			s := open(t, folder)
			ledgertest.Must(t, s, opening("s"))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			database := filepath.Join(folder, databaseName)
			c.damage(t, folder, database)
			before, _ := os.ReadFile(database)
			_, err := OpenSQLite(t.Context(), folder)
			if vakerr.CodeOf(err) != c.want || !strings.Contains(err.Error(), folder) || vakerr.From(err).Remedy == "" {
				t.Fatalf("%v, want %s with folder and remedy", err, c.want)
			}
			if after, _ := os.ReadFile(database); !bytes.Equal(before, after) {
				t.Fatal("the refused file was changed")
			}
			// A refusal gives the lock back: the second attempt is refused for the same reason.
			if _, again := OpenSQLite(t.Context(), folder); vakerr.CodeOf(again) != c.want {
				t.Fatalf("the second attempt: %v, want %s", again, c.want)
			}
		})
	}
}

func TestAnUnwritableFolderIsUnavailable(t *testing.T) {
	// No user can make a folder here, root neither.
	_, err := OpenSQLite(t.Context(), "/proc/self/data")
	if vakerr.CodeOf(err) != vakerr.LedgerUnavailable || !strings.Contains(err.Error(), "/proc/self/data") {
		t.Fatalf("%v, want ledger_unavailable", err)
	}
}

func TestASecondStoreIsLockedOut(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	_, err := OpenSQLite(t.Context(), folder)
	want := fmt.Sprintf("data_folder_locked: the data folder %s is in use by process %d", folder, os.Getpid())
	if vakerr.CodeOf(err) != vakerr.DataFolderLocked || err.Error() != want {
		t.Fatalf("%v, want %s", err, want)
	}
	ledgertest.Must(t, s, opening("s")) // the first one is not disturbed
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, folder)
}

func TestADraftOfACrashedCreationIsReplaced(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, databaseName+".new"), []byte("half"))
	ledgertest.Must(t, open(t, folder), opening("s"))
}

func TestAFullDiskIsUnavailableAndPasses(t *testing.T) {
	s := open(t, t.TempDir())
	head := ledgertest.Must(t, s, opening("s"))
	limit := func(pages int) {
		t.Helper()
		if _, err := s.writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // SQLite takes the present size when that is more
	w := ledgertest.Record(t, "t", head, note(strings.Repeat("x", 100_000)))
	for _, out := range s.Commit(t.Context(), []ledger.Write{opening("s2"), w}) {
		if vakerr.CodeOf(out.Err) != vakerr.LedgerUnavailable || !strings.Contains(out.Err.Error(), "disk is full") || ledger.IsUnknown(out.Err) {
			t.Fatalf("outcome %v, want ledger_unavailable, known not to have happened", out.Err)
		}
	}
	if _, err := s.Session(t.Context(), "t", "s2"); vakerr.CodeOf(err) != vakerr.SessionNotFound {
		t.Fatalf("a part of the failed batch was kept: %v", err)
	}
	limit(1 << 30)
	ledgertest.Must(t, s, w)
	if all := ledgertest.ReadAll(t, s, "t", "s"); len(all) != 2 {
		t.Fatalf("%d entries, want 2", len(all))
	}
}

// A session whose rows are damaged fails alone.
func TestADamagedSessionCostsNoOther(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	bad, good := ledgertest.Must(t, s, opening("bad")), ledgertest.Must(t, s, opening("good"))
	_, err := raw(t, folder).ExecContext(t.Context(), `INSERT INTO entry
		SELECT session, seq + 1, epoch, at, kind, operation, body, prev, x'00' FROM entry WHERE session = 1`)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := s.Commit(t.Context(), []ledger.Write{
		ledgertest.Record(t, "t", bad, note("x")), ledgertest.Record(t, "t", good, note("x")), opening("new"),
	})
	for i, want := range []vakerr.Code{vakerr.LedgerCorrupt, "", ""} {
		if vakerr.CodeOf(outcomes[i].Err) != want {
			t.Errorf("outcome %d: %v, want %q", i, outcomes[i].Err, want)
		}
	}
	if _, err := s.Read(t.Context(), "t", "bad", 1, 0); vakerr.CodeOf(err) != vakerr.LedgerCorrupt {
		t.Errorf("reading the damaged rows: %v, want ledger_corrupt", err)
	}
	if len(ledgertest.ReadAll(t, s, "t", "good")) != 2 {
		t.Error("the sound session lost its entry")
	}
}
