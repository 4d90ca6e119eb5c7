package lifecycle

import (
	"slices"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Session decides what a session may do next: which turn a call belongs to, when a turn begins and ends, when the
// session may be put to sleep. It is a value; every step returns the next one. The zero value is an open session without
// a turn.
//
// A turn is explicit (Begin to End) or implicit: a burst of calls that name no turn. An implicit turn binds the
// epoch current at its first call and ends when the last call in flight has finished, so that a protocol without turns
// still sees no set change under a burst.
type Session struct {
	turn     string // id of the open turn; empty: none
	implicit bool
	calls    int // calls of the open turn so far
	inFlight int // calls begun and not finished
	closed   bool
	ended    []string // ids of the last ended turns, oldest first
}

// maxEnded bounds how many ended turns are remembered, only to tell "ended" from "never was".
const maxEnded = 8

// Turn is the open turn; empty when there is none.
func (s Session) Turn() string { return s.turn }

// Implicit reports whether the open turn is a burst.
func (s Session) Implicit() bool { return s.implicit }

// Calls is the number of calls of the open turn so far.
func (s Session) Calls() int { return s.calls }

// InFlight is the number of calls begun and not finished.
func (s Session) InFlight() int { return s.inFlight }

// Quiet reports whether the session may be put to sleep: nothing is open and nothing runs.
func (s Session) Quiet() bool { return s.turn == "" && s.inFlight == 0 }

// Closed reports whether the session has ended for good.
func (s Session) Closed() bool { return s.closed }

// Begin opens an explicit turn. Errors: session_closed, turn_open.
func (s Session) Begin(id string) (Session, error) {
	switch {
	case s.closed:
		return s, closedError()
	case s.turn != "" && s.implicit:
		return s, vakerr.New(vakerr.TurnOpen, "calls without a turn are in flight in this session").
			WithRemedy("wait for their results, or use a session for each way of calling")
	case s.turn != "":
		return s, vakerr.New(vakerr.TurnOpen, "turn %s of this session is still open", s.turn).
			WithRemedy("end it first")
	}
	s.turn, s.implicit, s.calls = id, false, 0
	return s, nil
}

// Burst opens an implicit turn for a call that names none while none is open.
func (s Session) Burst(id string) Session {
	if s.closed || s.turn != "" {
		return s
	}
	s.turn, s.implicit, s.calls = id, true, 0
	return s
}

// Call begins a call of turn; an empty turn joins the open one. Errors: session_closed, turn_ended, turn_not_found.
func (s Session) Call(turn string) (Session, error) {
	switch {
	case s.closed:
		return s, closedError()
	case turn == "" && s.turn != "", turn != "" && turn == s.turn:
	case slices.Contains(s.ended, turn):
		return s, vakerr.New(vakerr.TurnEnded, "turn %s has ended", turn).WithRemedy("begin a new turn")
	default:
		return s, vakerr.New(vakerr.TurnNotFound, "this session has no open turn %.80q", turn).
			WithRemedy("begin a turn, and use the id it returns")
	}
	s.calls++
	s.inFlight++
	return s, nil
}

// Finished notes the end of a call and reports whether that ends the implicit turn.
func (s Session) Finished() (next Session, ended bool) {
	if s.inFlight > 0 {
		s.inFlight--
	}
	if s.inFlight == 0 && s.implicit {
		return s.endTurn(), true
	}
	return s, false
}

// End closes an explicit turn. Errors: session_closed, turn_ended, turn_not_found.
func (s Session) End(turn string) (Session, error) {
	switch {
	case s.closed:
		return s, closedError()
	case turn != "" && turn == s.turn && !s.implicit:
		return s.endTurn(), nil
	case slices.Contains(s.ended, turn):
		return s, vakerr.New(vakerr.TurnEnded, "turn %s has ended already", turn)
	}
	return s, vakerr.New(vakerr.TurnNotFound, "this session has no open turn %.80q", turn).
		WithRemedy("end the turn that begin returned")
}

// Abandon takes back a turn that could not be bound.
func (s Session) Abandon() Session { return s.endTurn() }

// Close ends the session for good, with whatever is open.
func (s Session) Close() Session {
	s = s.endTurn()
	s.closed = true
	return s
}

func (s Session) endTurn() Session {
	if s.turn == "" {
		return s
	}
	kept := s.ended
	if len(kept) >= maxEnded {
		kept = kept[1:]
	}
	s.ended = append(slices.Clone(kept), s.turn)
	s.turn, s.implicit, s.calls = "", false, 0
	return s
}

func closedError() error {
	return vakerr.New(vakerr.SessionClosed, "the session is closed").WithRemedy("open a new session")
}
