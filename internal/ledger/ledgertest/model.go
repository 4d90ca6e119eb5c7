package ledgertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/ledger"
)

// model runs random batches against a store and Memory and compares every answer, and in the end everything stored.
func model(t *testing.T, open func(testing.TB) ledger.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		m := machine{t: t, rt: rt, store: open(t), heads: map[string][]ledger.Head{}}
		defer m.store.Close()
		rt.Repeat(map[string]func(*rapid.T){"commit": m.commit, "find": m.find})
		m.compareAll()
	})
}

type machine struct {
	t      *testing.T
	rt     *rapid.T
	store  ledger.Store
	memory Memory
	heads  map[string][]ledger.Head // every head a tenant's writers ever held, stale ones too
	clock  int64
}

var (
	tenants    = rapid.SampledFrom([]string{"a", "b"})
	sessionIDs = rapid.SampledFrom([]ledger.SessionID{"s1", "s2", "s3"})
	operation  = rapid.SampledFrom([]string{"", "", "", "op1", "op2"})
)

// write draws one write; later ones of a batch may stand on the heads that earlier ones will leave.
func (m *machine) write(rt *rapid.T) ledger.Write {
	tenant, id := tenants.Draw(rt, "tenant"), sessionIDs.Draw(rt, "id")
	m.clock++
	at := At.Add(time.Duration(m.clock) * time.Microsecond)
	switch rapid.IntRange(0, 9).Draw(rt, "kind") {
	case 0, 1:
		w := ledger.Open{Tenant: tenant, ID: id, Owner: "o", At: at}
		if _, head, err := w.Record(); err == nil {
			m.heads[tenant] = append(m.heads[tenant], head)
		}
		return w
	case 2:
		return ledger.Activate{Tenant: tenant, ID: id, Owner: fmt.Sprint("o", m.clock), At: at}
	case 3:
		return ledger.Put{Tenant: tenant, Key: string(id), Value: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "value")}
	}
	return m.append(rt, tenant, id, at)
}

func (m *machine) append(rt *rapid.T, tenant string, id ledger.SessionID, at time.Time) ledger.Write {
	known := append([]ledger.Head{ledger.Origin(tenant, id)}, m.heads[tenant]...)
	// The newest heads are the likeliest to be good, so they are drawn more often.
	back := min(rapid.IntRange(0, 3).Draw(rt, "back"), len(known)-1)
	on := known[len(known)-1-back]
	w := ledger.Append{Tenant: tenant, On: on}
	for range rapid.IntRange(1, 3).Draw(rt, "entries") {
		body := note(rapid.StringN(0, 8, 16).Draw(rt, "text"))
		if rapid.IntRange(0, 30).Draw(rt, "close") == 0 {
			body = ledger.SessionClosed{}
		}
		e, next, err := on.Next(at, operation.Draw(rt, "operation"), body)
		if err != nil {
			rt.Fatal(err)
		}
		w.Entries, on = append(w.Entries, e), next
	}
	if rapid.IntRange(0, 20).Draw(rt, "damage") == 0 {
		w.Entries[0].Hash[0]++
	}
	m.heads[tenant] = append(m.heads[tenant], on)
	return w
}

func (m *machine) commit(rt *rapid.T) {
	var writes []ledger.Write
	for range rapid.IntRange(1, 5).Draw(rt, "writes") {
		writes = append(writes, m.write(rt))
	}
	got, want := m.store.Commit(m.t.Context(), writes), m.memory.Commit(m.t.Context(), writes)
	for i, w := range writes {
		if got[i].Head != want[i].Head || fmt.Sprint(got[i].Err) != fmt.Sprint(want[i].Err) {
			rt.Fatalf("write %d, %+v:\n got %+v\nwant %+v", i, w, got[i], want[i])
		}
		if want[i].Err == nil && want[i].Head.Seq > 0 {
			tenant := tenantOf(w)
			m.heads[tenant] = append(m.heads[tenant], want[i].Head)
		}
	}
}

func tenantOf(w ledger.Write) string {
	switch w := w.(type) {
	case ledger.Open:
		return w.Tenant
	case ledger.Activate:
		return w.Tenant
	case ledger.Append:
		return w.Tenant
	}
	return ""
}

func (m *machine) find(rt *rapid.T) {
	tenant, id, op := tenants.Draw(rt, "tenant"), sessionIDs.Draw(rt, "id"), operation.Draw(rt, "operation")
	got, gotOK, gotErr := m.store.FindOperation(m.t.Context(), tenant, id, op)
	want, wantOK, wantErr := m.memory.FindOperation(m.t.Context(), tenant, id, op)
	if gotOK != wantOK || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !cmp.Equal(got, want) {
		rt.Fatalf("operation %q of %s: got %+v, %v, want %+v, %v", op, id, got, gotErr, want, wantErr)
	}
}

func (m *machine) compareAll() {
	ctx := m.t.Context()
	for _, tenant := range []string{"a", "b", "c"} {
		want, _ := m.memory.Sessions(ctx, tenant, ledger.Page{})
		got, err := m.store.Sessions(ctx, tenant, ledger.Page{})
		if diff := cmp.Diff(want, got, sameInfo); diff != "" || err != nil {
			m.rt.Fatalf("sessions of %s, %v (-want +got):\n%s", tenant, err, diff)
		}
		for _, info := range want {
			entries := ReadAll(m.t, &m.memory, tenant, info.ID)
			if diff := cmp.Diff(entries, ReadAll(m.t, m.store, tenant, info.ID)); diff != "" {
				m.rt.Fatalf("entries of %s (-want +got):\n%s", info.ID, diff)
			}
		}
		keys, _ := m.memory.StateKeys(ctx, tenant, "")
		gotKeys, err := m.store.StateKeys(ctx, tenant, "")
		if err != nil || !cmp.Equal(keys, gotKeys) {
			m.rt.Fatalf("keys %v, %v, want %v", gotKeys, err, keys)
		}
		for _, key := range keys {
			wantValue, _, _ := m.memory.State(ctx, tenant, key)
			gotValue, _, err := m.store.State(ctx, tenant, key)
			if err != nil || string(gotValue) != string(wantValue) {
				m.rt.Fatalf("state %s = %q, %v, want %q", key, gotValue, err, wantValue)
			}
		}
	}
}
