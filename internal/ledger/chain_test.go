package ledger

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// chainOf makes a valid record of n entries, a new epoch at every fourth.
func chainOf(t rapid.TB, n int) []Entry {
	head := Origin("tenant", "s")
	var all []Entry
	for i := range n {
		head.Epoch = uint64(1 + i/4)
		e, next, err := head.Next(at.Add(time.Duration(i)*time.Second), "", TurnEnded{Turn: "t", Reason: strings.Repeat("r", i)})
		if err != nil {
			t.Fatal(err)
		}
		all, head = append(all, e), next
	}
	return all
}

// The encoding is a stored format: these sums change only together with the domain strings.
func TestTheEncodingIsStable(t *testing.T) {
	if got, want := Genesis("tenant", "s").String(), "668da3fa47c8aa06be2e7182febc5af2c1ba0652fb64497c0034b4f24b24d0b6"; got != want {
		t.Errorf("Genesis = %s, want %s", got, want)
	}
	e := Entry{Session: "s", Seq: 7, Epoch: 3, At: at, Kind: KindCallStarted, Operation: "op", Body: json.RawMessage(`{"a":1}`)}
	if got, want := Chain(Hash{1, 2, 3}, e).String(), "370d50b6e14bcc0930f651a7d6c21d38774957636da7bc5701c075b79a52913a"; got != want {
		t.Errorf("Chain = %s, want %s", got, want)
	}
}

// V93: whatever is changed, removed, added or moved in a record shows, and the first broken sequence is named.
func TestVerifyFindsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := chainOf(t, rapid.IntRange(2, 12).Draw(t, "entries"))
		if err := Verify("tenant", "s", all); err != nil {
			t.Fatalf("a sound chain: %v", err)
		}
		i := rapid.IntRange(0, len(all)-2).Draw(t, "at")
		change := rapid.SampledFrom(changes).Draw(t, "change")
		broken := change.do(append([]Entry{}, all...), i)
		err := vakerr.From(Verify("tenant", "s", broken))
		if err == nil || err.Code != vakerr.LedgerCorrupt {
			t.Fatalf("%s at %d: %v, want ledger_corrupt", change.name, i+1, err)
		}
		want := all[i].Seq + change.later
		if named := vakerr.New(vakerr.LedgerCorrupt, "session s is broken at sequence %d: ", want); !strings.HasPrefix(err.Reason, named.Reason) {
			t.Fatalf("%s at %d: %q, want sequence %d", change.name, i+1, err.Reason, want)
		}
	})
}

var changes = []struct {
	name  string
	later uint64 // how many entries after the changed one the damage shows
	do    func(all []Entry, i int) []Entry
}{
	{"body", 0, func(all []Entry, i int) []Entry { all[i].Body = json.RawMessage(`{}`); return all }},
	{"time", 0, func(all []Entry, i int) []Entry { all[i].At = all[i].At.Add(time.Microsecond); return all }},
	{"kind", 0, func(all []Entry, i int) []Entry { all[i].Kind = KindTurnBegan; return all }},
	{"operation", 0, func(all []Entry, i int) []Entry { all[i].Operation = "x"; return all }},
	{"epoch", 0, func(all []Entry, i int) []Entry { all[i].Epoch++; return all }},
	{"session", 0, func(all []Entry, i int) []Entry { all[i].Session = "other"; return all }},
	{"sequence", 0, func(all []Entry, i int) []Entry { all[i].Seq++; return all }},
	{"previous", 0, func(all []Entry, i int) []Entry { all[i].Prev[9]++; return all }},
	{"hash", 0, func(all []Entry, i int) []Entry { all[i].Hash[9]++; return all }},
	{"removal", 0, func(all []Entry, i int) []Entry { return append(all[:i:i], all[i+1:]...) }},
	{"repetition", 1, func(all []Entry, i int) []Entry { return append(all[:i+1:i+1], all[i:]...) }},
	{"exchange", 0, func(all []Entry, i int) []Entry { all[i], all[i+1] = all[i+1], all[i]; return all }},
	{"rewritten with a fitting hash", 1, func(all []Entry, i int) []Entry {
		all[i].Body = json.RawMessage(`{}`)
		all[i].Hash = Chain(all[i].Prev, all[i])
		return all
	}},
}

func TestVerifyBindsTenantAndSession(t *testing.T) {
	all := chainOf(t, 3)
	for _, err := range []error{Verify("other", "s", all), Verify("tenant", "other", all)} {
		if vakerr.CodeOf(err) != vakerr.LedgerCorrupt {
			t.Errorf("a record moved elsewhere: %v, want ledger_corrupt", err)
		}
	}
}

func TestVerifyRefusesAnEpochThatFalls(t *testing.T) {
	head := Origin("tenant", "s")
	for _, epoch := range []uint64{2, 1} {
		head.Epoch = epoch
		e, next, err := head.Next(at, "", TurnEnded{Turn: "t"})
		if err != nil {
			t.Fatal(err)
		}
		v := ResumeVerifier(Head{"s", e.Seq - 1, 2, e.Prev})
		if err := v.Next(e); (err == nil) != (epoch == 2) {
			t.Errorf("an entry of epoch %d after one of epoch 2: %v", epoch, err)
		}
		head = next
	}
	if zero, _, _ := Origin("tenant", "s").Next(at, "", TurnEnded{}); Verify("tenant", "s", []Entry{zero}) == nil {
		t.Error("an entry of epoch 0 passed")
	}
}

func TestVerifierFindsACutTail(t *testing.T) {
	all := chainOf(t, 5)
	stored := Origin("tenant", "s").after(all[4])
	for n := range 6 {
		v := NewVerifier("tenant", "s")
		for _, e := range all[:n] {
			if err := v.Next(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.End(stored); (err == nil) != (n == 5) {
			t.Errorf("the first %d of 5 entries: %v", n, err)
		}
		if n > 0 && v.Head() != Origin("tenant", "s").after(all[n-1]) {
			t.Errorf("after %d entries the head is %+v", n, v.Head())
		}
	}
}

// An exported record verifies elsewhere: JSON keeps every byte that is hashed.
func TestEntriesSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := Origin("tenant", "s")
		head.Epoch = 1
		when := time.UnixMicro(rapid.Int64Range(0, 1e16).Draw(t, "at"))
		e, _, err := head.Next(when, "op", CallStarted{
			Address:   rapid.String().Draw(t, "text"),
			Arguments: json.RawMessage(`{ "<&>": "` + "\u2028" + `" }`),
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Entry
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Fatalf("the entry changed on its way (-before +after):\n%s", diff)
		}
		if err := Verify("tenant", "s", []Entry{back}); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkChain(b *testing.B) {
	all := chainOf(b, 600)
	b.ReportAllocs()
	for b.Loop() {
		Chain(all[599].Prev, all[599])
	}
}
