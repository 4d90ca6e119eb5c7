package turn

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var (
	toolRead = capability.ID{Kind: capability.KindTool, Name: "read"}
	open     = View{}
	shut     = View{Revoked: capability.Revocations{toolRead: "drill"}}
)

// gate is what the stress test needs of a gate; the plain atomic pointer below is the other implementation.
type gate interface {
	publish(View)
	enter(shard uint32) (revoked bool, leave func())
}

type lockedGate struct{ *Gate }

func (g lockedGate) publish(v View) { g.Publish(v) }
func (g lockedGate) enter(shard uint32) (bool, func()) {
	p := g.Enter(shard)
	_, revoked := p.Revoked(toolRead)
	return revoked, p.Leave
}

type atomicGate struct{ view atomic.Pointer[View] }

func (g *atomicGate) publish(v View) { g.view.Store(&v) }
func (g *atomicGate) enter(uint32) (bool, func()) {
	_, revoked := g.view.Load().Revoked[toolRead]
	return revoked, func() {}
}

// stress revokes and restores while eight dispatchers dispatch. It counts the dispatches that started after a Publish
// of the revocation had returned, and stops early at the first when asked to.
func stress(g gate, revocations int, stopAtFirst bool) (dispatched, leaked int64) {
	var inForce, stop atomic.Bool
	var total, leaks atomic.Int64
	var wg sync.WaitGroup
	for worker := range uint32(8) {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				revoked, leave := g.enter(worker)
				if i%8 == 0 {
					runtime.Gosched() // the check was made; the commit comes when the scheduler pleases
				}
				if !revoked {
					if inForce.Load() {
						leaks.Add(1)
					}
					total.Add(1)
				}
				leave()
				if i%4 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for range revocations {
		g.publish(shut)
		inForce.Store(true)
		runtime.Gosched()
		inForce.Store(false)
		g.publish(open)
		if stopAtFirst && leaks.Load() > 0 {
			break
		}
	}
	stop.Store(true)
	wg.Wait()
	return total.Load(), leaks.Load()
}

// V97, V99, V100: when Publish of a revocation has returned, nothing is dispatched any more, however busy the gate is.
func TestNoDispatchAfterPublish(t *testing.T) {
	revocations := 10_000
	dispatched, leaked := stress(lockedGate{NewGate(open)}, revocations, false)
	if leaked != 0 {
		t.Errorf("%d of %d dispatches started after a revocation was published", leaked, dispatched)
	}
	if dispatched < int64(revocations)/10 {
		t.Errorf("only %d dispatches against %d revocations: the test did not press", dispatched, revocations)
	}
}

// The stress above can see the fault it is there for: with a plain atomic pointer it finds leaks.
func TestStressSeesLeaksOfAPlainPointer(t *testing.T) {
	g := &atomicGate{}
	g.publish(open)
	if _, leaked := stress(g, 100_000, true); leaked == 0 {
		t.Error("the stress found no leak in a gate that has one")
	}
}

// Publish waits for a dispatcher that is between its check and its commit, on whatever shard it is, and for nothing else.
func TestPublishWaitsForThoseInside(t *testing.T) {
	for _, shard := range []uint32{0, 1, gateShards - 1, gateShards + 5} {
		g := NewGate(open)
		pass := g.Enter(shard)
		done := make(chan struct{})
		go func() { g.Publish(shut); close(done) }()
		for g.View().Revoked == nil {
			runtime.Gosched()
		}
		select {
		case <-done:
			t.Fatalf("Publish returned while shard %d was between check and commit", shard)
		default:
		}
		if _, revoked := pass.Revoked(toolRead); revoked {
			t.Fatal("a pass changed its view")
		}
		pass.Leave()
		<-done
		again := g.Enter(shard)
		if reason, revoked := again.Revoked(toolRead); !revoked || reason != "drill" {
			t.Fatalf("after Publish: %q, %v", reason, revoked)
		}
		again.Leave()
	}
}

// V104: reading what is revoked never waits, not even for a publication that waits itself.
func TestViewNeverWaits(t *testing.T) {
	g := NewGate(open)
	pass := g.Enter(3)
	done := make(chan struct{})
	go func() { g.Publish(shut); close(done) }()
	for g.View().Revoked[toolRead] != "drill" {
		runtime.Gosched()
	}
	pass.Leave()
	<-done
}

func TestRefuse(t *testing.T) {
	g := NewGate(shut)
	p := g.Enter(0)
	defer p.Leave()
	if err := p.Refuse([]capability.ID{{Kind: capability.KindTool, Name: "write"}}); err != nil {
		t.Errorf("refused what is not revoked: %v", err)
	}
	err := p.Refuse([]capability.ID{{Kind: capability.KindTool, Name: "write"}, toolRead})
	if !errors.Is(err, vakerr.New(vakerr.CapabilityRevoked, "")) || err.Error() != "capability_revoked: tool:read was revoked: drill" {
		t.Errorf("Refuse = %v", err)
	}
}

func TestGateAllocatesNothing(t *testing.T) {
	g := NewGate(benchView())
	ids := []capability.ID{toolRead, {Kind: capability.KindMCP, Name: "git"}}
	if n := testing.AllocsPerRun(1000, func() {
		p := g.Enter(3)
		if p.Refuse(ids) == nil {
			p.Leave()
		}
	}); n != 0 {
		t.Errorf("a dispatch allocates %v times at the gate", n)
	}
}

func benchView() View {
	revoked := capability.Revocations{}
	for i := range 1000 {
		revoked[capability.ID{Kind: capability.KindTool, Name: fmt.Sprintf("tool-%d", i)}] = "reason"
	}
	return View{Revoked: revoked}
}

func BenchmarkGateSingle(b *testing.B) {
	g := NewGate(benchView())
	b.ReportAllocs()
	for b.Loop() {
		p := g.Enter(3)
		if _, revoked := p.Revoked(toolRead); revoked {
			b.Fatal("revoked")
		}
		p.Leave()
	}
}

func BenchmarkGateParallel(b *testing.B) {
	g := NewGate(benchView())
	var next atomic.Uint32
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		own := next.Add(1)
		for pb.Next() {
			p := g.Enter(own)
			if _, revoked := p.Revoked(toolRead); revoked {
				b.Error("revoked")
			}
			p.Leave()
		}
	})
}

func BenchmarkGatePublish(b *testing.B) {
	g := NewGate(open)
	v := benchView()
	b.ReportAllocs()
	for b.Loop() {
		g.Publish(v)
	}
}
