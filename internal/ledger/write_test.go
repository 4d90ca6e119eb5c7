package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestNames(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "0f9c-41": true, "user@host:1+2=3~x.y_z": true, strings.Repeat("a", MaxSessionID): true,
		"": false, strings.Repeat("a", MaxSessionID+1): false, "-x": false, ".": false, "..": false, "a/b": false, "a\\b": false,
		"a b": false, "a\n": false, "ä": false, "a\x00": false, "a%2f": false, "a'b": false, "~": false,
	} {
		if err := ValidateSessionID(SessionID(id)); (err == nil) != good {
			t.Errorf("ValidateSessionID(%q) = %v, want good %v", id, err, good)
		}
	}
	if ValidateTenant("default") != nil || ValidateTenant("../x") == nil || ValidateTenant(strings.Repeat("t", MaxTenant+1)) == nil {
		t.Error("ValidateTenant does not hold the bounds")
	}
}

// FuzzValidateSessionID: an accepted id is safe in a path, a URL, a log line and a shell, and no refusal repeats it.
func FuzzValidateSessionID(f *testing.F) {
	for _, seed := range []string{"a", "..", "a/b", "x\r\ny", "%2e", "$(id)", "-rf"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		err := ValidateSessionID(SessionID(id))
		if err == nil {
			if strings.ContainsAny(id, "/\\%?#&\"'`$;<>|*(){}[]!\x00\r\n\t ") || strings.HasPrefix(id, "-") || strings.HasPrefix(id, ".") {
				t.Fatalf("%q was accepted", id)
			}
			return
		}
		if vakerr.CodeOf(err) != vakerr.InvalidRequest || len(id) > 30 && strings.Contains(err.Error(), id) {
			t.Fatalf("%q: %v", id, err)
		}
	})
}

func TestAppendCheck(t *testing.T) {
	all := chainOf(t, 4)
	on := Head{"s", 0, 1, Genesis("tenant", "s")}
	made := func(bodies ...Body) []Entry {
		head := on
		var entries []Entry
		for _, body := range bodies {
			e, next, err := head.Next(at, "op", body)
			if err != nil {
				t.Fatal(err)
			}
			entries, head = append(entries, e), next
		}
		return entries
	}
	edited := func(edit func(*Entry)) []Entry {
		entries := append([]Entry{}, all[:2]...)
		edit(&entries[0])
		entries[0].Hash = Chain(entries[0].Prev, entries[0])
		return entries[:1]
	}
	many := make([]Entry, MaxEntries+1)
	for name, c := range map[string]struct {
		entries []Entry
		want    vakerr.Code
	}{
		"sound":             {all[:4], ""},
		"none":              {nil, vakerr.InvalidRequest},
		"too many":          {many, vakerr.InvalidRequest},
		"a gap":             {[]Entry{all[0], all[2]}, vakerr.InvalidRequest},
		"not on the head":   {all[1:3], vakerr.InvalidRequest},
		"another epoch":     {chainOf(t, 5), vakerr.InvalidRequest},
		"one operation":     {made(TurnEnded{}, TurnEnded{}), vakerr.InvalidRequest},
		"an opening":        {made(SessionOpened{}), vakerr.InvalidRequest},
		"an activation":     {made(SessionActivated{}), vakerr.InvalidRequest},
		"closing":           {made(SessionClosed{}), ""},
		"unknown kind":      {edited(func(e *Entry) { e.Kind = "later" }), vakerr.InvalidRequest},
		"a body with space": {edited(func(e *Entry) { e.Body = []byte(`{ }`) }), vakerr.InvalidRequest},
		"a body of a list":  {edited(func(e *Entry) { e.Body = []byte(`[]`) }), vakerr.InvalidRequest},
		"no body":           {edited(func(e *Entry) { e.Body = nil }), vakerr.InvalidRequest},
		"a local time":      {edited(func(e *Entry) { e.At = at.In(time.FixedZone("x", 3600)) }), vakerr.InvalidRequest},
		"nanoseconds":       {edited(func(e *Entry) { e.At = at.Add(1) }), vakerr.InvalidRequest},
	} {
		if err := (Append{"tenant", on, c.entries}).Check(); vakerr.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	closesEarly := made(SessionClosed{})
	e, _, _ := on.after(closesEarly[0]).Next(at, "", TurnEnded{})
	if err := (Append{"tenant", on, append(closesEarly, e)}).Check(); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("an entry behind session_closed: %v", err)
	}
	if err := (Append{"no tenant", on, all[:1]}).Check(); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("a bad tenant: %v", err)
	}
}

func TestOpenCheck(t *testing.T) {
	many := map[string]string{}
	for i := range MaxAttributes + 1 {
		many["k"+strings.Repeat("x", i)] = "v"
	}
	for name, c := range map[string]struct {
		edit func(*Open)
		want vakerr.Code
	}{
		"sound":              {func(*Open) {}, ""},
		"many attributes":    {func(w *Open) { w.Attributes = many }, vakerr.TooMany},
		"a bad key":          {func(w *Open) { w.Attributes = map[string]string{"a b": ""} }, vakerr.InvalidRequest},
		"a large attribute":  {func(w *Open) { w.Attributes = map[string]string{"a": strings.Repeat("v", 1025)} }, vakerr.TooLarge},
		"a long owner":       {func(w *Open) { w.Owner = strings.Repeat("o", MaxOwner+1) }, vakerr.TooLarge},
		"no id":              {func(w *Open) { w.ID = "" }, vakerr.InvalidRequest},
		"a time before 1970": {func(w *Open) { w.At = time.Time{} }, vakerr.InvalidRequest},
	} {
		w := Open{Tenant: "t", ID: "s", Owner: "o", At: at.Local(), Attributes: map[string]string{"a": "b c"}}
		c.edit(&w)
		if err := w.Check(); vakerr.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestUnknownIsKnownAsSuch(t *testing.T) {
	cause := errors.New("disk")
	err := Unknown(cause)
	if !IsUnknown(err) || !errors.Is(err, cause) || vakerr.CodeOf(err) != vakerr.LedgerUnavailable || IsUnknown(NotFound("s")) {
		t.Errorf("Unknown(cause) = %v", err)
	}
}

func TestParseQueryBounds(t *testing.T) {
	for text, want := range map[string]vakerr.Code{
		"a b": "", " \t": vakerr.InvalidRequest, strings.Repeat("x", MaxQuery+1): vakerr.TooLarge,
		strings.Repeat("x ", MaxQueryTerms+1): vakerr.TooMany,
	} {
		if _, err := ParseQuery(text); vakerr.CodeOf(err) != want {
			t.Errorf("ParseQuery(%.20q) = %v, want %q", text, err, want)
		}
	}
	if (Query{}).Matches(chainOf(t, 1)[0]) {
		t.Error("the empty query matches")
	}
}
