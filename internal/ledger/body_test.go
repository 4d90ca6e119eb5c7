package ledger

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var (
	tool    = capability.ID{Kind: capability.KindTool, Name: "read"}
	server  = capability.ID{Kind: capability.KindMCP, Name: "git"}
	failure = Failure{vakerr.ServerDied, "server git exited", "look at its log"}
)

// bodies has one full body of every kind.
var bodies = []Body{
	SessionOpened{"node-1", map[string]string{"agent": "a"}},
	SessionActivated{"node-2"},
	TurnBegan{"t1", 7, "d1", "chat", "i1"},
	EpochChanged{7, 8, "d2", capability.Delta{Added: []capability.ID{tool}, Updated: []capability.ID{server}, Removed: []capability.ID{tool}}},
	InterfaceStored{"i1", json.RawMessage(`{"system":"x"}`)},
	CallStarted{"t1", "c1", server, "git/status", "d3", json.RawMessage(`{"a":[1]}`), true},
	CallFinished{"t1", "c1", CallFailed, "d4", 12, json.RawMessage(`"r"`), 1500, &failure},
	CallRefused{"t1", "c2", tool, "read", failure},
	CallRefused{Turn: "t1", Call: "c3", Address: "reed", Error: failure},
	TurnEnded{"t1", "timeout"},
	CapabilityRevoked{tool, "operator"},
	HookRan{"t1", "c1", capability.ID{Kind: capability.KindHook, Name: "h"}, "pre-tool-use", "block", 12, &failure},
	CommandExpanded{"t1", capability.ID{Kind: capability.KindCommand, Name: "fix"}, "d5"},
	SessionPassivated{"idle"},
	SessionClosed{"done"},
}

func TestBodiesRoundTrip(t *testing.T) {
	head := Origin("tenant", "s")
	head.Epoch = 1
	seen := map[Kind]bool{}
	for _, body := range bodies {
		e, next, err := head.Next(at, "", body)
		if err != nil {
			t.Fatalf("%T: %v", body, err)
		}
		back, err := DecodeBody(e)
		if diff := cmp.Diff(body, back); diff != "" || err != nil {
			t.Errorf("%T, %v (-before +after):\n%s", body, err, diff)
		}
		head, seen[e.Kind] = next, true
	}
	for kind := range decoders {
		if !seen[kind] {
			t.Errorf("no body of kind %s was tried", kind)
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
		"no JSON":             {"", CallStarted{Capability: tool, Arguments: json.RawMessage(`{`)}, vakerr.InvalidRequest},
		"bytes that are no UTF-8": {
			"", CallStarted{Capability: tool, Arguments: json.RawMessage("\"\xff\"")}, vakerr.InvalidRequest,
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
	for _, body := range bodies {
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
