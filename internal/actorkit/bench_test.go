package actorkit_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/vak-actors/vak-actors/internal/actorkit"
)

// still is an actor that does nothing, without state.
type still struct{}

func (still) Receive(c *actorkit.Context, msg any) {
	switch m := msg.(type) {
	case do:
		c.Reply(m(c))
	case int:
		c.Reply(msg)
	case *sync.WaitGroup:
		m.Done()
	}
}

var stillProps = actorkit.Props{Kind: "still", New: func() actorkit.Actor { return still{} }}

// brood spawns n children of one parent.
func brood(tb testing.TB, s *actorkit.System, n int) []actorkit.Ref {
	children := make([]actorkit.Ref, n)
	in(tb, spawn(tb, s, "parent", stillProps), func(c *actorkit.Context) {
		for i := range children {
			var err error
			if children[i], err = c.Spawn("session-"+strconv.Itoa(i), stillProps); err != nil {
				tb.Error(err)
			}
		}
	})
	return children
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// idleBytes is the heap cost of one of n idle children, with its share of the registry, its context and what its parent
// keeps about it.
func idleBytes(tb testing.TB, n int) float64 {
	s := newSystem(tb)
	before := heapInUse()
	children := brood(tb, s, n)
	for _, r := range children[max(0, n-100):] {
		if _, err := ask(tb, r, 1); err != nil {
			tb.Fatal(err)
		}
	}
	cost := float64(heapInUse()-before) / float64(n)
	runtime.KeepAlive(children)
	return cost
}

func BenchmarkIdleActor(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(idleBytes(b, 100_000), "B/actor")
	}
}

// An idle actor must stay small: a million sessions are a promise.
func TestIdleActorIsSmall(t *testing.T) {
	if got := idleBytes(t, 20_000); got > 1500 {
		t.Errorf("an idle actor costs %.0f bytes, want at most 1500", got)
	}
}

func BenchmarkSpawn(b *testing.B) {
	s := newSystem(b)
	parent := spawn(b, s, "parent", stillProps)
	b.ReportAllocs()
	in(b, parent, func(c *actorkit.Context) {
		for b.Loop() {
			if _, err := c.Spawn("child", stillProps); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkTell(b *testing.B) {
	s := newSystem(b)
	p := stillProps
	p.Mailbox = 1 << 30
	r := spawn(b, s, "r", p)
	msg := any("x")
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Tell(msg); err != nil {
			b.Fatal(err)
		}
	}
	in(b, r, func(*actorkit.Context) {})
}

func BenchmarkAsk(b *testing.B) {
	s := newSystem(b)
	r := spawn(b, s, "r", stillProps)
	ctx := b.Context()
	msg := any(7)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := actorkit.Ask[int](ctx, r, msg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPingPong measures a round trip between two actors, without an asking goroutine.
func BenchmarkPingPong(b *testing.B) {
	s := newSystem(b)
	done := make(chan struct{})
	rounds := 0
	pong := spawn(b, s, "pong", actorkit.Props{New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			if to, ok := msg.(actorkit.Ref); ok {
				c.Tell(to, 1)
			}
		})
	}})
	ping := spawn(b, s, "ping", actorkit.Props{New: func() actorkit.Actor {
		return actorkit.Func(func(c *actorkit.Context, msg any) {
			n, ok := msg.(int)
			if !ok {
				return
			}
			if rounds += n; rounds > b.N {
				close(done)
				return
			}
			c.Tell(pong, c.Self())
		})
	}})
	b.ReportAllocs()
	tell(b, ping, 1)
	<-done
}

// BenchmarkBroadcast tells 10,000 idle actors and waits until all have handled it.
func BenchmarkBroadcast(b *testing.B) {
	const n = 10_000
	children := brood(b, newSystem(b), n)
	b.ReportAllocs()
	for b.Loop() {
		var all sync.WaitGroup
		all.Add(n)
		for _, r := range children {
			if err := r.Tell(&all); err != nil {
				b.Fatal(err)
			}
		}
		all.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/actor")
}
