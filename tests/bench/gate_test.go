package bench

import (
	"strconv"
	"testing"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// called is what a call of a server's tool is checked for.
var called = []capability.ID{{Kind: capability.KindTool, Name: "mcp"}, {Kind: capability.KindMCP, Name: "github"}}

// revocations are n of other capabilities.
func revocations(n int) capability.Revocations {
	all := make(capability.Revocations, n)
	for i := range n {
		all[capability.ID{Kind: capability.KindSkill, Name: strconv.Itoa(i)}] = "for the benchmark"
	}
	return all
}

// BenchmarkGate is check and commit of one dispatch. Target: at most 100 ns, no allocation.
func BenchmarkGate(b *testing.B) {
	for _, n := range []int{0, 100} {
		gate := turn.NewGate(turn.View{Revoked: revocations(n)})
		pass := func(shard uint32) {
			p := gate.Enter(shard)
			if p.Refuse(called) != nil {
				b.Error("refused")
			}
			p.Leave()
		}
		b.Run("revoked-"+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pass(1)
			}
		})
		b.Run("parallel-revoked-"+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for shard := uint32(0); pb.Next(); shard++ {
					pass(shard)
				}
			})
		})
	}
}

// BenchmarkGatePublish is what a revocation waits for at an idle gate, the view included. Target: at most 10 µs.
func BenchmarkGatePublish(b *testing.B) {
	gate := turn.NewGate(turn.View{})
	b.ReportAllocs()
	for b.Loop() {
		gate.Publish(turn.View{Revoked: capability.Revocations{called[1]: "for the benchmark"}})
	}
}

// BenchmarkRevoke is a revocation from the operator's question to the answer, durable on the disk and published as an
// epoch, and the restoration likewise. In force it is long before: see BenchmarkGatePublish.
func BenchmarkRevoke(b *testing.B) {
	w := newWorld(b, "", 10)
	var revoke, restore sample
	b.ReportAllocs()
	for b.Loop() {
		revoke.time(func() {
			ask[*registryv1.RevokeResult](w, &registryv1.Revoke{Id: "skill:skill-0001", Reason: "for the benchmark"})
		})
		restore.time(func() { ask[*registryv1.RestoreResult](w, &registryv1.Restore{Id: "skill:skill-0001"}) })
	}
	revoke.report(b, "revoke-")
	restore.report(b, "restore-")
}
