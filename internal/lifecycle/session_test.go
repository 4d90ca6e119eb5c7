package lifecycle

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func is(err error, code vakerr.Code) bool { return errors.Is(err, vakerr.New(code, "")) }

// V84: an explicit turn is open from its begin to its end, whatever its calls do, and no second one beside it.
func TestExplicitTurn(t *testing.T) {
	var s Session
	s, err := s.Begin("t1")
	if err != nil || s.Turn() != "t1" || s.Implicit() || s.Quiet() {
		t.Fatalf("begin: %v, %+v", err, s)
	}
	if _, err := s.Begin("t2"); !is(err, vakerr.TurnOpen) {
		t.Errorf("a second turn: %v", err)
	}
	if s, err = s.Burst("b1").Call("t1"); err != nil || s.Turn() != "t1" {
		t.Fatalf("call: %v, turn %q", err, s.Turn())
	}
	s, ended := s.Finished()
	if ended || s.Turn() != "t1" || s.Calls() != 1 {
		t.Errorf("the last call ended an explicit turn: %+v", s)
	}
	if _, err := s.End("t9"); !is(err, vakerr.TurnNotFound) {
		t.Errorf("end of an unknown turn: %v", err)
	}
	if s, err = s.End("t1"); err != nil || !s.Quiet() {
		t.Errorf("end: %v, %+v", err, s)
	}
	if _, err := s.End("t1"); !is(err, vakerr.TurnEnded) {
		t.Errorf("a second end: %v", err)
	}
	if _, err := s.Call("t1"); !is(err, vakerr.TurnEnded) {
		t.Errorf("a call of an ended turn: %v", err)
	}
	if _, err := s.Call("t9"); !is(err, vakerr.TurnNotFound) {
		t.Errorf("a call of an unknown turn: %v", err)
	}
}

// A burst of calls is one turn, from the first until none is in flight.
func TestBurst(t *testing.T) {
	var s Session
	if _, err := s.Call(""); !is(err, vakerr.TurnNotFound) {
		t.Errorf("a call of no turn: %v", err)
	}
	s, err := s.Burst("b1").Call("")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Burst("b2").Call(""); err != nil || s.Turn() != "b1" || !s.Implicit() || s.Calls() != 2 {
		t.Fatalf("burst: %v, %+v", err, s)
	}
	if _, err := s.Begin("t1"); !is(err, vakerr.TurnOpen) {
		t.Errorf("an explicit turn beside a burst: %v", err)
	}
	if _, err := s.End("b1"); !is(err, vakerr.TurnNotFound) {
		t.Errorf("a burst was ended by hand: %v", err)
	}
	s, ended := s.Finished()
	if ended {
		t.Error("a burst ended before its last call")
	}
	if s, ended = s.Finished(); !ended || !s.Quiet() {
		t.Errorf("a burst did not end with its last call: %+v", s)
	}
	if s.Burst("b3").Turn() != "b3" {
		t.Error("the next call opens no turn")
	}
}

// A closed session takes nothing more.
func TestClosed(t *testing.T) {
	s, _ := Session{}.Begin("t1")
	s = s.Close()
	if _, err := s.Begin("t2"); !is(err, vakerr.SessionClosed) {
		t.Errorf("begin: %v", err)
	}
	if _, err := s.Burst("b").Call(""); !is(err, vakerr.SessionClosed) {
		t.Errorf("call: %v", err)
	}
	if _, err := s.End("t1"); !is(err, vakerr.SessionClosed) {
		t.Errorf("end: %v", err)
	}
}

// Over any events: a turn's id does not change while it is open, a session with calls in flight or a turn is not quiet,
// an ended turn takes no call, no value is changed by a step, and memory of ended turns is bounded.
func TestSessionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Session
		inFlight, turns := 0, 0
		ended := map[string]bool{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			before, rendered := s, fmt.Sprintf("%+v", s)
			turns++
			id := fmt.Sprintf("t%d", turns)
			named := rapid.SampledFrom([]string{"", s.Turn(), id, fmt.Sprintf("t%d", max(1, turns-2))}).Draw(t, "named")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				next, err := s.Begin(id)
				if (err == nil) != (s.Turn() == "") {
					t.Fatalf("begin beside %q: %v", s.Turn(), err)
				}
				s = next
			case 1, 2:
				if named == "" {
					s = s.Burst(id)
				}
				next, err := s.Call(named)
				switch {
				case err == nil:
					inFlight++
					if named != "" && (ended[named] || named != next.Turn()) || next.Turn() != s.Turn() {
						t.Fatalf("a call of %q joined %q", named, next.Turn())
					}
				case next.Turn() != s.Turn() || named == "":
					t.Fatalf("a refused call changed the turn, or an unnamed one was refused: %v", err)
				}
				s = next
			case 3:
				if inFlight > 0 {
					inFlight--
				}
				next, over := s.Finished()
				if over != (before.Implicit() && inFlight == 0) {
					t.Fatalf("finished with %d in flight: over %v", inFlight, over)
				}
				s = next
			case 4:
				s, _ = s.End(named)
			}
			if before.Turn() != "" && s.Turn() != before.Turn() {
				ended[before.Turn()] = true
				if s.Turn() != "" {
					t.Fatalf("turn %q became %q", before.Turn(), s.Turn())
				}
			}
			if s.InFlight() != inFlight || s.Quiet() != (inFlight == 0 && s.Turn() == "") {
				t.Fatalf("%d in flight: %+v", inFlight, s)
			}
			if fmt.Sprintf("%+v", before) != rendered || len(s.ended) > maxEnded {
				t.Fatalf("a value was changed, or %d turns are remembered", len(s.ended))
			}
		}
	})
}
