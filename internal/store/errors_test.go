package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// TestAFullDiskIsNamed: a write that finds no room says so, also where only the commit finds it, and never leaks more.
func TestAFullDiskIsNamed(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.writer.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // as few as there are
		t.Fatal(err)
	}
	_, err := s.writer.ExecContext(t.Context(), "CREATE TABLE big AS SELECT zeroblob(1000000)")
	if err == nil {
		t.Fatal("a full database took a megabyte")
	}
	for name, got := range map[string]error{"write": s.publicError(err), "commit": s.unknown(err)} {
		if e := vakerr.From(got); e.Code != vakerr.LedgerUnavailable || !strings.Contains(e.Reason, "the disk is full") || e.Remedy == "" {
			t.Errorf("%s: %v", name, e)
		}
		if ledger.IsUnknown(got) != (name == "commit") {
			t.Errorf("%s: unknown %t", name, ledger.IsUnknown(got))
		}
	}
	if foreign := s.unknown(errors.New("canary")); !ledger.IsUnknown(foreign) || strings.Contains(vakerr.From(foreign).Reason, "canary") {
		t.Errorf("%v", foreign)
	}
}
