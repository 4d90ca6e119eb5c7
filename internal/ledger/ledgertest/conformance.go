package ledgertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Conformance is what every ledger.Store has to pass. open returns an empty store; the suite closes it.
func Conformance(t *testing.T, open func(testing.TB) ledger.Store) {
	for name, test := range map[string]func(*testing.T, ledger.Store){
		"AStaleActivationIsFenced":              staleActivation,
		"AnAppendNamesTheHead":                  staleHead,
		"OneBadWriteOfABatchCostsNoOther":       batch,
		"OneBatchMayHoldWhatDependsOnEachOther": dependentBatch,
		"AnActivationFencesWithinItsBatch":      fencingBatch,
		"AnotherTenantsSessionIsNotFound":       otherTenant,
		"AClosedSessionStaysClosed":             closed,
		"OperationsAreFoundAndUnique":           operations,
		"ReadsAreBounded":                       boundedReads,
		"SearchLooksAtValuesNewestFirst":        search,
		"SessionsComeInPages":                   pages,
		"StateIsKeptReplacedAndRemoved":         state,
		"AClosedStoreAnswersNothing":            closedStore,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			test(t, s)
		})
	}
	t.Run("Model", func(t *testing.T) { model(t, open) })
}

// At is the time of every entry the suite writes.
var At = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Record makes a Write that appends the bodies to on.
func Record(t testing.TB, tenant string, on ledger.Head, bodies ...ledger.Body) ledger.Append {
	t.Helper()
	w := ledger.Append{Tenant: tenant, On: on}
	for _, body := range bodies {
		e, next, err := on.Next(At, "", body)
		if err != nil {
			t.Fatal(err)
		}
		w.Entries, on = append(w.Entries, e), next
	}
	return w
}

// Must commits one write and returns the head after it; an error ends the test.
func Must(t testing.TB, s ledger.Store, w ledger.Write) ledger.Head {
	t.Helper()
	out := s.Commit(t.Context(), []ledger.Write{w})[0]
	if out.Err != nil {
		t.Fatalf("%T: %v", w, out.Err)
	}
	return out.Head
}

// ReadAll reads and verifies the whole record of a session.
func ReadAll(t testing.TB, s ledger.Store, tenant string, id ledger.SessionID) []ledger.Entry {
	t.Helper()
	var all []ledger.Entry
	_, err := ledger.Replay(t.Context(), s, tenant, id, func(e ledger.Entry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantCode(t testing.TB, err error, code vakerr.Code) {
	t.Helper()
	if got := vakerr.CodeOf(err); got != code {
		t.Fatalf("error %v, want %s", err, code)
	}
}

func refused(t testing.TB, s ledger.Store, w ledger.Write, code vakerr.Code) {
	t.Helper()
	wantCode(t, s.Commit(t.Context(), []ledger.Write{w})[0].Err, code)
}

func opening(tenant string, id ledger.SessionID) ledger.Open {
	return ledger.Open{Tenant: tenant, ID: id, Owner: "node-1/1", At: At, Attributes: map[string]string{"agent": "a"}}
}

func activation(tenant string, id ledger.SessionID) ledger.Activate {
	return ledger.Activate{Tenant: tenant, ID: id, Owner: "node-2/1", At: At}
}

func note(text string) ledger.Body { return ledger.TurnEnded{Turn: "t", Reason: text} }

func staleActivation(t *testing.T, s ledger.Store) {
	first := Must(t, s, opening("a", "s"))
	second := Must(t, s, activation("a", "s"))
	if first.Epoch != 1 || second.Epoch != 2 || second.Seq != 2 {
		t.Fatalf("heads %+v and %+v: an activation takes the next epoch and records it", first, second)
	}
	refused(t, s, Record(t, "a", first, note("stale")), vakerr.LedgerFenced)
	informed := second // knowing the right head does not help a writer whose epoch is gone
	informed.Epoch = first.Epoch
	refused(t, s, Record(t, "a", informed, note("stale")), vakerr.LedgerFenced)
	Must(t, s, Record(t, "a", second, note("good")))
	info, err := s.Session(t.Context(), "a", "s")
	if err != nil || info.Owner != "node-2/1" || info.Head.Epoch != 2 {
		t.Fatalf("session %+v, %v: want the second owner at epoch 2", info, err)
	}
	if all := ReadAll(t, s, "a", "s"); len(all) != 3 {
		t.Fatalf("%d entries, want 3", len(all))
	}
}

func staleHead(t *testing.T, s ledger.Store) {
	head := Must(t, s, opening("a", "s"))
	next := Must(t, s, Record(t, "a", head, note("one")))
	refused(t, s, Record(t, "a", head, note("two")), vakerr.LedgerFenced)
	gap := next
	gap.Seq++
	refused(t, s, Record(t, "a", gap, note("two")), vakerr.LedgerFenced)
	other := next
	other.Hash[0]++
	refused(t, s, Record(t, "a", other, note("two")), vakerr.LedgerFenced)
	if all := ReadAll(t, s, "a", "s"); len(all) != 2 {
		t.Fatalf("%d entries, want 2", len(all))
	}
}

func batch(t *testing.T, s ledger.Store) {
	a, b := Must(t, s, opening("a", "s1")), Must(t, s, opening("a", "s2"))
	Must(t, s, activation("a", "s1"))
	outcomes := s.Commit(t.Context(), []ledger.Write{
		Record(t, "a", a, note("fenced")),
		Record(t, "a", b, note("good")),
		ledger.Append{Tenant: "a", On: b},
		opening("a", "s1"),
		ledger.Activate{Tenant: "no tenant", ID: "s"},
		opening("a", "s3"),
	})
	want := []vakerr.Code{vakerr.LedgerFenced, "", vakerr.InvalidRequest, vakerr.SessionExists, vakerr.InvalidRequest, ""}
	for i, out := range outcomes {
		wantCode(t, out.Err, want[i])
	}
	if len(ReadAll(t, s, "a", "s2")) != 2 || len(ReadAll(t, s, "a", "s1")) != 2 || len(ReadAll(t, s, "a", "s3")) != 1 {
		t.Fatal("the batch did not write exactly its good writes")
	}
}

func dependentBatch(t *testing.T, s ledger.Store) {
	_, opened, err := opening("a", "s").Record()
	if err != nil {
		t.Fatal(err)
	}
	first := Record(t, "a", opened, note("one"), note("two"))
	second := Record(t, "a", first.Last(), note("three"))
	for i, out := range s.Commit(t.Context(), []ledger.Write{opening("a", "s"), first, second, second}) {
		wantCode(t, out.Err, []vakerr.Code{"", "", "", vakerr.LedgerFenced}[i])
	}
	if all := ReadAll(t, s, "a", "s"); len(all) != 4 || all[3].Hash != second.Last().Hash {
		t.Fatalf("%d entries, want the 4 of the batch", len(all))
	}
}

// fencingBatch takes a session over between appends that follow each other.
func fencingBatch(t *testing.T, s ledger.Store) {
	on := Must(t, s, opening("a", "s"))
	var writes []ledger.Write
	for range 3 {
		w := Record(t, "a", on, note("of the first"))
		writes, on = append(writes, w), w.Last()
	}
	_, taken, err := activation("a", "s").Record(on)
	if err != nil {
		t.Fatal(err)
	}
	writes = append(writes, activation("a", "s"), Record(t, "a", on, note("too late")), Record(t, "a", taken, note("of the second")))
	for i, out := range s.Commit(t.Context(), writes) {
		wantCode(t, out.Err, []vakerr.Code{"", "", "", "", vakerr.LedgerFenced, ""}[i])
	}
	all := ReadAll(t, s, "a", "s")
	if err := ledger.Verify("a", "s", all); err != nil || len(all) != 6 {
		t.Fatalf("%d entries, want 6: %v", len(all), err)
	}
	info, err := s.Session(t.Context(), "a", "s")
	if err != nil || info.Head.Hash != all[5].Hash {
		t.Fatalf("the session ends at %+v, %v", info.Head, err)
	}
}

func otherTenant(t *testing.T, s ledger.Store) {
	head := Must(t, s, opening("a", "MINE"))
	probe := func(id ledger.SessionID) []string {
		_, session := s.Session(t.Context(), "b", id)
		_, read := s.Read(t.Context(), "b", id, 1, 10)
		_, _, find := s.FindOperation(t.Context(), "b", id, "op")
		query, _ := ledger.ParseQuery("x")
		_, found := s.Search(t.Context(), "b", id, query, 1)
		on := head
		on.Session = id
		written := s.Commit(t.Context(), []ledger.Write{activation("b", id), Record(t, "b", on, note("x"))})
		var texts []string
		for _, err := range []error{session, read, find, found, written[0].Err, written[1].Err} {
			wantCode(t, err, vakerr.SessionNotFound)
			texts = append(texts, strings.ReplaceAll(err.Error()+vakerr.From(err).Remedy, string(id), "ID"))
		}
		return texts
	}
	if diff := cmp.Diff(probe("GONE"), probe("MINE")); diff != "" {
		t.Fatalf("a session of another tenant differs from a missing one (-missing +other):\n%s", diff)
	}
	// No id is one of foreign text, and none is repeated into an error.
	if _, err := s.Session(t.Context(), "a", "x\nforged"); vakerr.CodeOf(err) != vakerr.SessionNotFound || strings.Contains(err.Error(), "forged") {
		t.Fatalf("an impossible id: %v", err)
	}
	// The id is free for the other tenant, and the two records have nothing in common.
	if other := Must(t, s, opening("b", "MINE")); other.Hash == head.Hash {
		t.Fatal("two tenants' sessions of one id have one chain")
	}
	Must(t, s, Record(t, "a", head, note("still mine")))
	if len(ReadAll(t, s, "a", "MINE")) != 2 || len(ReadAll(t, s, "b", "MINE")) != 1 {
		t.Fatal("the records of two tenants were mixed")
	}
}

func closed(t *testing.T, s ledger.Store) {
	head := Must(t, s, Record(t, "a", Must(t, s, opening("a", "s")), note("work"), ledger.SessionClosed{Reason: "done"}))
	refused(t, s, Record(t, "a", head, note("more")), vakerr.SessionClosed)
	refused(t, s, activation("a", "s"), vakerr.SessionClosed)
	refused(t, s, opening("a", "s"), vakerr.SessionExists)
	info, err := s.Session(t.Context(), "a", "s")
	if err != nil || info.State != ledger.StateClosed || info.Head != head {
		t.Fatalf("session %+v, %v: want it closed at %+v", info, err, head)
	}
	if len(ReadAll(t, s, "a", "s")) != 3 {
		t.Fatal("a closed session's record must stay")
	}
}

func operations(t *testing.T, s ledger.Store) {
	head := Must(t, s, opening("a", "s"))
	e, next, err := head.Next(At, "call-1", note("effect"))
	if err != nil {
		t.Fatal(err)
	}
	w := ledger.Append{Tenant: "a", On: head, Entries: []ledger.Entry{e}}
	Must(t, s, w)
	found, ok, err := s.FindOperation(t.Context(), "a", "s", "call-1")
	if err != nil || !ok || found.Hash != e.Hash {
		t.Fatalf("found %+v, %v, %v", found, ok, err)
	}
	for _, absent := range []string{"call-2", ""} {
		if _, ok, err := s.FindOperation(t.Context(), "a", "s", absent); ok || err != nil {
			t.Fatalf("operation %q: %v, %v; want none", absent, ok, err)
		}
	}
	refused(t, s, w, vakerr.LedgerFenced) // a repeated write is stale first of all
	again, _, err := next.Next(At, "call-1", note("effect"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s, ledger.Append{Tenant: "a", On: next, Entries: []ledger.Entry{again}}, vakerr.InvalidRequest)
	Must(t, s, Record(t, "a", next, note("next")))
	other := Must(t, s, opening("a", "s2"))
	same, _, _ := other.Next(At, "call-1", note("another session's"))
	Must(t, s, ledger.Append{Tenant: "a", On: other, Entries: []ledger.Entry{same}})
}

func boundedReads(t *testing.T, s ledger.Store) {
	head := Must(t, s, opening("a", "s"))
	const large = 20
	for range large {
		head = Must(t, s, Record(t, "a", head, note(strings.Repeat("x", ledger.MaxBody-100))))
	}
	for limit, want := range map[int]int{3: 3, 0: large + 1} {
		all, err := s.Read(t.Context(), "a", "s", 1, limit)
		if err != nil || len(all) > want || limit == 3 && len(all) != 3 {
			t.Fatalf("Read(limit %d) gave %d entries, %v", limit, len(all), err)
		}
		if size := len(all) * ledger.MaxBody; size > ledger.MaxReadBytes+2*ledger.MaxBody {
			t.Fatalf("Read gave %d bytes, over the bound", size)
		}
	}
	if len(ReadAll(t, s, "a", "s")) != large+1 {
		t.Fatal("reading on from where a read stopped did not give everything")
	}
	for _, from := range []uint64{large + 2, 1 << 63} {
		if all, err := s.Read(t.Context(), "a", "s", from, 10); err != nil || len(all) != 0 {
			t.Fatalf("Read(from %d) = %d entries, %v; want none", from, len(all), err)
		}
	}
}

func search(t *testing.T, s ledger.Store) {
	head := Must(t, s, Record(t, "a", Must(t, s, opening("a", "s")), note("Fix the <parser>"), note("parser FIXED"), note("lunch")))
	for text, want := range map[string][]uint64{
		"parser": {3, 2}, "fix": {3, 2}, "PARSER fixed": {3}, "<parser>": {2}, "supper": nil, "turn_ended": {4, 3, 2}, "reason": nil,
	} {
		q, err := ledger.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Search(t.Context(), "a", "s", q, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, e := range found {
			got = append(got, e.Seq)
		}
		if !cmp.Equal(got, want) {
			t.Errorf("Search(%q) = %v, want %v", text, got, want)
		}
	}
	q, _ := ledger.ParseQuery("parser")
	if found, err := s.Search(t.Context(), "a", "s", q, 1); err != nil || len(found) != 1 || found[0].Seq != head.Seq-1 {
		t.Fatalf("Search(limit 1) = %v, %v", found, err)
	}
}

func pages(t *testing.T, s ledger.Store) {
	ids := []ledger.SessionID{"A", "Z", "a", "a.b", "b"}
	for _, i := range []int{3, 0, 4, 1, 2} {
		Must(t, s, opening("a", ids[i]))
		Must(t, s, opening("b", ids[i]+"-b"))
	}
	var got []ledger.SessionID
	for page := (ledger.Page{Limit: 2}); ; {
		some, err := s.Sessions(t.Context(), "a", page)
		if err != nil || len(some) > 2 {
			t.Fatalf("%d sessions, %v", len(some), err)
		}
		if len(some) == 0 {
			break
		}
		for _, info := range some {
			got, page.After = append(got, info.ID), info.ID
			one, err := s.Session(t.Context(), "a", info.ID)
			if err != nil || !cmp.Equal(one, info) {
				t.Fatalf("the page says %+v, the session %+v, %v", info, one, err)
			}
		}
	}
	if !cmp.Equal(got, ids) {
		t.Fatalf("pages gave %v, want %v", got, ids)
	}
}

func state(t *testing.T, s ledger.Store) {
	want := func(tenant, key, value string) {
		t.Helper()
		got, ok, err := s.State(t.Context(), tenant, key)
		if err != nil || string(got) != value || ok != (value != "") {
			t.Fatalf("state %s of %s = %q, %v, %v; want %q", key, tenant, got, ok, err, value)
		}
	}
	Must(t, s, ledger.Put{Tenant: "a", Key: "epoch", Value: []byte("1")})
	Must(t, s, ledger.Put{Tenant: "a", Key: "epoch", Value: []byte("2\x00\xff")})
	Must(t, s, ledger.Put{Tenant: "b", Key: "epoch", Value: []byte("7")})
	Must(t, s, ledger.Put{Tenant: "a", Key: "server~x", Value: make([]byte, ledger.MaxStateValue)})
	refused(t, s, ledger.Put{Tenant: "a", Key: "large", Value: make([]byte, ledger.MaxStateValue+1)}, vakerr.TooLarge)
	want("a", "epoch", "2\x00\xff")
	want("b", "epoch", "7")
	want("a", "large", "")
	for prefix, keys := range map[string][]string{"": {"epoch", "server~x"}, "server": {"server~x"}, "x": nil} {
		if got, err := s.StateKeys(t.Context(), "a", prefix); err != nil || !cmp.Equal(got, keys) {
			t.Fatalf("keys under %q: %v, %v; want %v", prefix, got, err, keys)
		}
	}
	Must(t, s, ledger.Put{Tenant: "a", Key: "epoch"})
	Must(t, s, ledger.Put{Tenant: "a", Key: "epoch"})
	want("a", "epoch", "")
	want("b", "epoch", "7")
}

func closedStore(t *testing.T, s ledger.Store) {
	head := Must(t, s, opening("a", "s"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, s, Record(t, "a", head, note("x")), vakerr.LedgerUnavailable)
	_, err := s.Session(t.Context(), "a", "s")
	wantCode(t, err, vakerr.LedgerUnavailable)
	_, err = s.StateKeys(t.Context(), "a", "")
	wantCode(t, err, vakerr.LedgerUnavailable)
	if err := s.Close(); err != nil {
		t.Fatalf("closing twice: %v", err)
	}
}

// sameInfo compares what two stores know; a nil map of attributes equals an empty one.
var sameInfo = cmpopts.EquateEmpty()
