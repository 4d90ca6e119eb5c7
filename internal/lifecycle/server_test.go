package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/backoff"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// world is what surrounds a machine: the connections and demands there really are.
type world struct {
	t         *rapid.T
	server    Server
	config    ServerConfig
	now       time.Time
	live      map[uint64]bool // connections that are starting, up or closing
	open      map[DemandID]bool
	granted   map[uint64]int // demands on each connection
	next      DemandID
	catalogs  map[string]bool // names that some connection listed
	failedAt  time.Time
	failures  int
	published *capability.Observation
}

// V40, V42, V49-V53, V55-V57, V130, V131: whatever happens in whatever order, one demand has one answer, there is one
// connection at most and only a demand starts it, no failure becomes a name, and nothing is published twice.
func TestServerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := ServerConfig{Name: "s", IdleTTL: time.Minute, MaxInFlight: 2, MaxWaiting: 4, Backoff: backoff.Policy{Initial: time.Second, Max: 8 * time.Second}}
		w := &world{
			t: t, config: config, server: NewServer(config, nil), now: epoch0,
			live: map[uint64]bool{}, open: map[DemandID]bool{}, granted: map[uint64]int{}, catalogs: map[string]bool{},
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pass")) * time.Second)
			w.step(w.draw())
			for at, due := w.server.Wake(); due && !w.now.Before(at); at, due = w.server.Wake() {
				before := w.server
				w.step(Tick{})
				if after, still := w.server.Wake(); still && after.Equal(at) && before.Waiting() == w.server.Waiting() {
					t.Fatalf("a Tick at its time leaves the machine as it was: %s", w.server.Phase())
				}
			}
		}
	})
}

// draw makes up an event, late and impossible ones too.
func (w *world) draw() ServerEvent {
	t := w.t
	generation := w.server.Generation() - min(w.server.Generation(), uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(t, "late")))
	switch rapid.IntRange(0, 12).Draw(t, "event") {
	case 0, 1, 2, 3:
		w.next++
		w.open[w.next] = true
		d := Demand{ID: w.next, List: rapid.Bool().Draw(t, "list"), Again: rapid.Bool().Draw(t, "again")}
		if rapid.Bool().Draw(t, "hurry") {
			d.Deadline = w.now.Add(2 * time.Second)
		}
		return d
	case 4:
		id := DemandID(rapid.Uint64Range(1, uint64(w.next)+1).Draw(t, "id"))
		if slices.ContainsFunc(w.server.waiting, func(x waiter) bool { return x.ID == id }) {
			delete(w.open, id)
		}
		return Withdraw{id}
	case 5:
		if w.granted[generation] > 0 {
			w.granted[generation]--
		}
		return Released{generation, rapid.Bool().Draw(t, "answered")}
	case 6:
		return Started{Generation: generation, Catalog: w.catalog()}
	case 7:
		if generation == w.server.Generation() && w.server.Phase() == Starting {
			w.gone(generation)
			w.failed()
		}
		if generation == w.server.Generation() && w.server.Phase() == Stopping {
			w.gone(generation)
		}
		return StartFailed{Generation: generation, Reason: "failure-" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cause")}
	case 8:
		w.gone(generation)
		return Died{Generation: generation, Reason: "failure-died"}
	case 9:
		if w.server.Phase() == Stopping && generation == w.server.Generation() {
			w.gone(generation)
		}
		return Closed{generation}
	case 10:
		return ListChanged{generation}
	case 11:
		if rapid.Bool().Draw(t, "fails") {
			return Listed{Generation: generation, Failure: "failure-list"}
		}
		return Listed{Generation: generation, Catalog: w.catalog()}
	}
	if rapid.Bool().Draw(t, "stop") {
		return Stop{Reason: "r", Drain: rapid.Bool().Draw(t, "drain")}
	}
	w.failures, w.failedAt, w.published = 0, time.Time{}, nil
	return ConfigChanged{w.config}
}

func (w *world) catalog() []capability.ObservedTool {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(w.t, "catalog")
	slices.Sort(names)
	for _, n := range names {
		w.catalogs[n] = true
	}
	return observedTools(names)
}

func (w *world) gone(generation uint64) {
	delete(w.live, generation)
	w.granted[generation] = 0
}

func (w *world) failed() { w.failures++; w.failedAt = w.now }

func (w *world) step(e ServerEvent) {
	before, rendered := w.server, fmt.Sprintf("%+v", w.server)
	wasWaiting := len(before.waiting)
	next, effects := w.server.Step(e, w.now)
	if fmt.Sprintf("%+v", before) != rendered {
		w.t.Fatalf("%T changed the value it was stepped from", e)
	}
	_, isDemand := e.(Demand)
	w.server = next
	for _, effect := range effects {
		w.effect(effect, e, isDemand || wasWaiting > 0)
	}
	w.check(e, before.Phase())
}

func (w *world) effect(effect ServerEffect, cause ServerEvent, wanted bool) {
	t := w.t
	switch x := effect.(type) {
	case Start:
		switch {
		case !wanted:
			t.Fatalf("V131: %T started a server that nobody wants", cause)
		case len(w.live) > 0:
			t.Fatalf("%T started a second connection beside %v", cause, w.live)
		case w.failures > 0 && w.now.Before(w.failedAt.Add(w.config.Backoff.Delay(w.failures, 0))) && !isStop(cause):
			t.Fatalf("V50: %T started within the backoff", cause)
		}
		w.live[x.Generation] = true
	case Close:
		w.granted[x.Generation] = 0
		if !w.live[x.Generation] {
			t.Fatalf("%T closes a connection there is not", cause)
		}
	case List:
		if !w.live[x.Generation] {
			t.Fatalf("%T lists on a connection there is not", cause)
		}
	case Grant:
		w.granted[x.Generation] += len(x.IDs)
		if !w.live[x.Generation] || w.granted[x.Generation] > w.config.MaxInFlight {
			t.Fatalf("%T grants %v on %d: live %v, %d in flight", cause, x.IDs, x.Generation, w.live, w.granted[x.Generation])
		}
		w.answer(x.IDs)
	case Refuse:
		w.answer(x.IDs)
		if x.Err.Remedy == "" {
			t.Fatalf("refused without a remedy: %v", x.Err)
		}
		if x.Err.Code == vakerr.ServerBackingOff && (x.Err.RetryAfter <= 0 || !strings.Contains(x.Err.Reason, " s") || !strings.Contains(x.Err.Reason, "failure-")) {
			t.Fatalf("V53: %v, retry after %v", x.Err, x.Err.RetryAfter)
		}
	case Observe:
		if equalObservations(w.published, x.Observation) {
			t.Fatalf("V57: %T published the same again", cause)
		}
		w.published = x.Observation
		if x.Observation == nil {
			return
		}
		for _, tool := range x.Observation.Catalog {
			if !w.catalogs[tool.Name] {
				t.Fatalf("V49: %q was never listed", tool.Name)
			}
		}
	}
}

// isStop: an operator's stop ends a wait, too; the next demand tries.
func isStop(e ServerEvent) bool { _, ok := e.(Stop); return ok }

func (w *world) answer(ids []DemandID) {
	for _, id := range ids {
		if !w.open[id] {
			w.t.Fatalf("demand %d is answered twice, or after it was withdrawn", id)
		}
		delete(w.open, id)
	}
}

func (w *world) check(e ServerEvent, before ServerPhase) {
	t, s := w.t, w.server
	if _, stopped := e.(Stop); stopped {
		w.failures = 0 // see isStop
	}
	if _, started := e.(Started); started && s.Phase() == Ready {
		w.failures = 0
	}
	if _, died := e.(Died); died && before != BackingOff && s.Phase() == BackingOff {
		w.failures, _ = s.Failures()
		w.failedAt = w.now
	}
	if s.Waiting() != len(w.open) || s.Waiting() > w.config.MaxWaiting {
		t.Fatalf("after %T %d demands wait, %d have no answer", e, s.Waiting(), len(w.open))
	}
	if (s.Phase() == Cold || s.Phase() == Idle || s.Phase() == BackingOff) && s.Waiting() > 0 {
		t.Fatalf("after %T demands wait for a server that is %s", e, s.Phase())
	}
	if s.Phase() == Ready && s.InFlight() != w.granted[s.Generation()] {
		t.Fatalf("after %T %d in flight, %d granted", e, s.InFlight(), w.granted[s.Generation()])
	}
}
