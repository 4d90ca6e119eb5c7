package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/ledger/ledgertest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// childFolder is the variable that makes this test binary a writer to that folder.
const childFolder = "VAK_TEST_LEDGER_FOLDER"

const crashSessions = 4

// appendUntilKilled appends to several sessions through a committer and prints each acknowledged append: session and
// sequence, or "locked" once it was locked out by nobody and runs.
func appendUntilKilled(folder string) {
	ctx := context.Background()
	s, err := OpenSQLite(ctx, folder)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	c := NewCommitter(ctx, CommitterConfig{Store: s})
	for i := range crashSessions {
		go func() {
			id := ledger.SessionID(fmt.Sprint("s", i))
			out := c.Commit(ctx, opening(id))
			if vakerr.CodeOf(out.Err) == vakerr.SessionExists {
				out = c.Commit(ctx, ledger.Activate{Tenant: "t", ID: id, Owner: "again", At: ledgertest.At})
			}
			for {
				if out.Err != nil {
					fmt.Println("error", out.Err)
					os.Exit(1)
				}
				fmt.Println(id, out.Head.Seq)
				e, _, err := out.Head.Next(time.Now(), fmt.Sprint("op", out.Head.Seq+1), note("work"))
				if err != nil {
					panic(err)
				}
				out = c.Commit(ctx, ledger.Append{Tenant: "t", On: out.Head, Entries: []ledger.Entry{e}})
			}
		}()
	}
	select {}
}

// crash runs a writer, kills it after so many acknowledged appends and returns the last acknowledged sequence of each
// session.
func crash(t *testing.T, folder string, after int) map[ledger.SessionID]uint64 {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	child, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{
		Env: append(os.Environ(), childFolder+"="+folder), Files: []*os.File{nil, in, os.Stderr},
	})
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := map[ledger.SessionID]uint64{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var id ledger.SessionID
		var seq uint64
		if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
			t.Errorf("the writer said %q", lines.Text())
		}
		acknowledged[id] = max(acknowledged[id], seq)
		if n == after/2 {
			if _, err := OpenSQLite(t.Context(), folder); vakerr.CodeOf(err) != vakerr.DataFolderLocked {
				t.Errorf("a second process: %v, want data_folder_locked", err)
			}
		}
		if n == after {
			if err := child.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	return acknowledged
}

// Guarantee 7: a writer that is killed loses nothing that it was told is durable, and its lock dies with it.
func TestNothingAcknowledgedIsLostToAKill(t *testing.T) {
	folder := t.TempDir()
	for round := range 4 {
		acknowledged := crash(t, folder, 200+137*round)
		s := open(t, folder)
		if len(acknowledged) != crashSessions {
			t.Fatalf("round %d: only %v wrote", round, acknowledged)
		}
		for id, seq := range acknowledged {
			all := ledgertest.ReadAll(t, s, "t", id) // verifies the chain up to the head
			if last := all[len(all)-1].Seq; last < seq || last > seq+1 {
				t.Errorf("round %d: session %s ends at %d, %d was acknowledged and at most one more was sent", round, id, last, seq)
			}
			if epoch := all[len(all)-1].Epoch; epoch != uint64(round+1) {
				t.Errorf("round %d: session %s ends in epoch %d", round, id, epoch)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
