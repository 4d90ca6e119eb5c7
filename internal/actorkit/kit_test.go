package actorkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/actorkit/actortest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do has an actor of type doer run a function in its Receive and answer with what that returns.
type do func(c *actorkit.Context) any

// urgent is a do that overtakes.
type urgent do

func (urgent) ControlMessage() {}

// doer runs what it is told and sends everything it receives, apart from do and urgent, to its log.
type doer struct{ log func(string) }

func (d doer) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case do:
		c.Reply(m(c))
	case urgent:
		c.Reply(m(c))
	case actorkit.ChildStopped:
		d.note(fmt.Sprintf("ChildStopped %s %v", m.Name, m.Reason))
	default:
		d.note(fmt.Sprintf("%T %v", msg, msg))
	}
}

func (d doer) note(s string) {
	if d.log != nil {
		d.log(s)
	}
}

func props(log func(string)) actorkit.Props {
	return actorkit.Props{Kind: "doer", New: func() actorkit.Actor { return doer{log} }}
}

// journal collects notes of several actors; reading it before everything has come to rest is a race by intent.
type journal chan string

func newJournal() journal { return make(journal, 10000) }

func (j journal) log(s string) { j <- s }

// from logs under a name, without the Started every actor begins with.
func (j journal) from(name string) func(string) {
	return func(s string) {
		if s != "actorkit.Started {}" {
			j <- name + ": " + s
		}
	}
}

func (j journal) all() []string {
	var notes []string
	for {
		select {
		case s := <-j:
			notes = append(notes, s)
		default:
			return notes
		}
	}
}

func newSystem(t testing.TB) *actorkit.System {
	t.Helper()
	return actortest.NewSystem(t, actorkit.Options{})
}

func spawn(t testing.TB, s *actorkit.System, name string, p actorkit.Props) actorkit.Ref {
	t.Helper()
	r, err := s.Spawn(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// in runs f in the actor's Receive and waits for it.
func in(t testing.TB, r actorkit.Ref, f func(c *actorkit.Context)) {
	t.Helper()
	if _, err := ask(t, r, do(func(c *actorkit.Context) any { f(c); return "done" })); err != nil {
		t.Fatal(err)
	}
}

// spawnChild spawns p below parent, from within.
func spawnChild(t testing.TB, parent actorkit.Ref, name string, p actorkit.Props) (child actorkit.Ref) {
	t.Helper()
	in(t, parent, func(c *actorkit.Context) {
		var err error
		if child, err = c.Spawn(name, p); err != nil {
			t.Error(err)
		}
	})
	return child
}

func tell(t testing.TB, r actorkit.Ref, msg any) {
	t.Helper()
	if err := r.Tell(msg); err != nil {
		t.Fatal(err)
	}
}

func ask(t testing.TB, r actorkit.Ref, msg any) (any, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return actorkit.Ask[any](ctx, r, msg)
}

func wantCode(t testing.TB, err error, want vakerr.Code) {
	t.Helper()
	var e *vakerr.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("error %v, want code %s", err, want)
	}
}
