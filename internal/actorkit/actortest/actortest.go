// Package actortest helps to test actors: a System that is shut down with the test, and a probe that records messages.
//
// It works inside testing/synctest bubbles, where all waits are in virtual time, and outside. It asserts nothing by
// itself but what its names say. Packages that use it still need goleak.VerifyTestMain for goroutines that are not the
// System's; those of the System have ended when Shutdown returned without an error.
package actortest

import (
	"context"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/actorkit"
)

// NewSystem makes a System that is shut down when the test ends, before its bubble ends. The test fails when an actor or
// effect does not stop within a minute.
func NewSystem(t testing.TB, o actorkit.Options) *actorkit.System {
	t.Helper()
	s := actorkit.NewSystem(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown of the actor system: %v", err)
		}
		if live := s.Stats().Live; live != 0 {
			t.Errorf("%d actors live after the shutdown", live)
		}
	})
	return s
}

// Received is one message a Probe got.
type Received struct {
	Msg     any
	Replier actorkit.Replier // of the ask it came in; does nothing for a Tell
}

// Probe is an actor that records what it is sent, except its own lifecycle messages.
type Probe struct {
	actorkit.Ref
	received chan Received
}

// probeBuffer is how many messages a Probe holds; what comes beyond makes the test fail.
const probeBuffer = 4096

// NewProbe starts a probe as a root actor of s.
func NewProbe(t testing.TB, s *actorkit.System) *Probe {
	t.Helper()
	p := &Probe{received: make(chan Received, probeBuffer)}
	ref, err := s.Spawn("probe", actorkit.Props{Kind: "probe", New: func() actorkit.Actor { return p.recorder(t) }, Mailbox: probeBuffer})
	if err != nil {
		t.Fatal(err)
	}
	p.Ref = ref
	return p
}

func (p *Probe) recorder(t testing.TB) actorkit.Func {
	return func(c *actorkit.Context, msg any) {
		switch msg.(type) {
		case actorkit.Started, actorkit.Stopping, actorkit.Stopped:
			return
		}
		select {
		case p.received <- Received{msg, c.Replier()}:
		default:
			t.Errorf("probe %v is full, a %T was dropped", p.Ref, msg)
		}
	}
}

// Next returns the oldest message not yet taken, waiting up to d for it.
func (p *Probe) Next(t testing.TB, d time.Duration) Received {
	t.Helper()
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case r := <-p.received:
		return r
	case <-timeout.C:
		t.Fatalf("probe: no message within %v", d)
		return Received{}
	}
}

// Expect returns the oldest message not yet taken, waiting up to d for it. Anything but an M fails the test.
func Expect[M any](t testing.TB, p *Probe, d time.Duration) M {
	t.Helper()
	return as[M](t, p.Next(t, d).Msg)
}

// ExpectAsk is Expect for a message that wants an answer.
func ExpectAsk[M any](t testing.TB, p *Probe, d time.Duration) (M, actorkit.Replier) {
	t.Helper()
	r := p.Next(t, d)
	if !r.Replier.Wanted() {
		t.Fatalf("probe: %#v came without an asker", r.Msg)
	}
	return as[M](t, r.Msg), r.Replier
}

// ExpectNone fails the test when a message comes within d.
func (p *Probe) ExpectNone(t testing.TB, d time.Duration) {
	t.Helper()
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case r := <-p.received:
		t.Fatalf("probe: got a %T %+v, want nothing", r.Msg, r.Msg)
	case <-timeout.C:
	}
}

func as[M any](t testing.TB, msg any) M {
	t.Helper()
	m, ok := msg.(M)
	if !ok {
		t.Fatalf("probe: got a %T %+v, want a %T", msg, msg, m)
	}
	return m
}
