package ledger

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// bodies has, for every kind, a body with a value in each of its fields.
func bodies(t testing.TB) []Body {
	var all []Body
	for kind, decode := range decoders {
		empty, err := decode(json.RawMessage(`{}`))
		if err != nil || empty.Kind() != kind {
			t.Fatalf("kind %s decodes as %T, %v", kind, empty, err)
		}
		full := reflect.New(reflect.TypeOf(empty)).Elem()
		fill(t, full)
		all = append(all, full.Interface().(Body))
	}
	return append(all, CallRefused{Turn: "t", Call: "c", Address: "reed", Error: Failure{Code: vakerr.UnknownTool, Reason: "r"}})
}

// fill gives v, and all that it holds, values that are not zero.
func fill(t testing.TB, v reflect.Value) {
	switch v.Interface().(type) {
	case capability.ID:
		v.Set(reflect.ValueOf(capability.ID{Kind: capability.KindMCP, Name: "git"}))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":[1]}`)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	default:
		t.Fatalf("a body has a field of type %s, which nobody fills", v.Type())
	}
}

func TestBodiesRoundTrip(t *testing.T) {
	head := Origin("tenant", "s")
	head.Epoch = 1
	for _, body := range bodies(t) {
		e, _, err := head.Next(at, "", body)
		if err != nil {
			t.Fatalf("%T: %v", body, err)
		}
		back, err := DecodeBody(e)
		if diff := cmp.Diff(body, back); diff != "" || err != nil {
			t.Errorf("%T, %v (-before +after):\n%s", body, err, diff)
		}
	}
}

func TestNextRefuses(t *testing.T) {
	head := Origin("tenant", "s")
	head.Epoch = 1
	for name, c := range map[string]struct {
		operation string
		body      Body
		want      vakerr.Code
	}{
		"a large body":        {"", TurnEnded{Reason: strings.Repeat("x", MaxBody)}, vakerr.TooLarge},
		"a long operation":    {strings.Repeat("o", MaxOperation+1), TurnEnded{}, vakerr.TooLarge},
		"a hostile operation": {"op\n", TurnEnded{}, vakerr.InvalidRequest},
		"no JSON":             {"", CallStarted{Arguments: json.RawMessage(`{`)}, vakerr.InvalidRequest},
		"bytes that are no UTF-8": {
			"", CallStarted{Arguments: json.RawMessage("\"\xff\"")}, vakerr.InvalidRequest,
		},
	} {
		if _, after, err := head.Next(at, c.operation, c.body); vakerr.CodeOf(err) != c.want || after != head {
			t.Errorf("%s: %v, want %s and the head unmoved", name, err, c.want)
		}
	}
}

func TestDecodeBodyRefuses(t *testing.T) {
	for name, e := range map[string]Entry{
		"an unknown kind": {Session: "s", Seq: 4, Kind: "later", Body: json.RawMessage(`{}`)},
		"a wrong type":    {Session: "s", Seq: 4, Kind: KindTurnBegan, Body: json.RawMessage(`{"turn":1}`)},
		"no body":         {Session: "s", Seq: 4, Kind: KindTurnBegan},
	} {
		_, err := DecodeBody(e)
		if vakerr.CodeOf(err) != vakerr.LedgerCorrupt || !strings.Contains(err.Error(), "sequence 4") {
			t.Errorf("%s: %v, want ledger_corrupt at sequence 4", name, err)
		}
	}
}

func TestFailureOfHidesForeignText(t *testing.T) {
	if f := FailureOf(errors.New("password=hunter2")); f.Code != vakerr.Internal || strings.Contains(f.Reason+f.Remedy, "hunter2") {
		t.Errorf("FailureOf(foreign) = %+v", f)
	}
}

// FuzzDecodeBody: whatever a body holds, decoding ends in a value or in ledger_corrupt, and a value encodes again.
func FuzzDecodeBody(f *testing.F) {
	for _, body := range bodies(f) {
		raw, err := json.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body.Kind()), raw)
	}
	f.Fuzz(func(t *testing.T, kind string, raw []byte) {
		body, err := DecodeBody(Entry{Session: "s", Seq: 1, Kind: Kind(kind), Body: raw})
		if err != nil {
			if vakerr.CodeOf(err) != vakerr.LedgerCorrupt {
				t.Fatalf("%v is not ledger_corrupt", err)
			}
			return
		}
		if body.Kind() != Kind(kind) {
			t.Fatalf("a %s decoded as a %s", kind, body.Kind())
		}
	})
}

// FuzzEntry: an entry from outside that passes the check keeps its hash through JSON.
func FuzzEntry(f *testing.F) {
	for _, e := range chainOf(f, 3) {
		text, _ := json.Marshal(e)
		f.Add(text)
	}
	f.Add([]byte(`{"session":"s","at":"2026-03-01T12:00:00+02:00","body":{ "a":1 },"hash":"00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e Entry
		if json.Unmarshal(text, &e) != nil || e.check() != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Entry
		if err := json.Unmarshal(again, &back); err != nil || Chain(e.Prev, e) != Chain(back.Prev, back) {
			t.Fatalf("%s became %s, %v: another hash", text, again, err)
		}
	})
}
