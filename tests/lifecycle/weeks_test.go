package lifecycle

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V105, V107, V108, V109: a daemon that has seen ten thousand edits is no bigger than one that has seen
// a thousand: not its heap, its goroutines, its children. Sessions hold turns, servers come and go and are killed, what is
// revoked is restored, while the edits go on.
func TestTenThousandEditsLeaveItFlat(t *testing.T) {
	const edits, warm = 10_000, 1_000
	w := newWorld(t, map[string]string{skillFile("stay"): skill("stay", "Stay.")})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	agents := w.openMany(20)
	turns := make([]*aTurn, len(agents))
	for i, a := range agents {
		turns[i] = a.begin()
	}
	var before usage
	for n := range edits {
		w.write(skillFile("edited"), skill("edited", fmt.Sprintf("Body %d. %4000d", n, n)))
		if n%10 == 9 {
			w.write(skillFile(fmt.Sprint("short-lived-", n)), skill(fmt.Sprint("short-lived-", n), "Soon gone."))
			w.remove(fmt.Sprint("skills/short-lived-", n-10))
		}
		if n%500 == 499 {
			w.comeAndGo(s, n)
		}
		i := n % len(agents)
		turns[i].end()
		turns[i] = agents[i].begin() // freshens, as a reload does
		if n == warm-1 {
			before = measure(t)
		}
	}
	turns[0].want(turns[0].call("skill", object{"name": "edited"}), "Body ")
	after := measure(t)
	t.Logf("%v after %d edits, %v after %d", before, warm, after, edits)
	if after.heap > before.heap+before.heap/4+2<<20 {
		t.Errorf("V108: the heap grew from %d to %d KiB", before.heap>>10, after.heap>>10)
	}
	const parked = 64 // workers of the actor system that may wait for work
	if after.goroutines > before.goroutines+parked {
		t.Errorf("V108: the goroutines grew from %d to %d", before.goroutines, after.goroutines)
	}
	if after.children > before.children {
		t.Errorf("V108: the children grew from %d to %d", before.children, after.children)
	}
	if report, _ := w.report(); len(report.Capabilities) > 20 {
		t.Errorf("V107: %d capabilities are in the report, also such that are long gone", len(report.Capabilities))
	}
	w.verify()
}

// comeAndGo declares a server of its own name, uses it, takes it away and kills another.
func (w *world) comeAndGo(s fault, n int) {
	w.Helper()
	guest := w.fault(fmt.Sprint("guest", n), nil)
	w.write("vak.toml", toml(s.config, guest.config))
	a := w.open()
	u := a.begin()
	u.want(u.mcp(guest.name, "echo", object{"text": "hello"}), "hello")
	u.want(u.mcp("s", "echo", object{"text": "hello"}), "hello")
	u.end()
	s.kill()
	w.revoke("skill:edited", false)
	refused(w.TB, u.loose().call("skill", object{"name": "edited"}).err, vakerr.CapabilityRevoked)
	w.restore("skill:edited")
	w.write("vak.toml", toml(s.config))
	w.reload()
	eventually(w.TB, "the guest and the killed server are gone", func() bool { return len(children(w.TB)) == 0 })
}

// usage is what a daemon takes of a machine.
type usage struct {
	heap                 uint64 // bytes, live
	goroutines, children int
}

func (u usage) String() string {
	return fmt.Sprintf("%d KiB, %d goroutines, %d children", u.heap>>10, u.goroutines, u.children)
}

func measure(t *testing.T) usage {
	t.Helper()
	for range 3 {
		runtime.GC() // finalizers and pools take more than one
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{m.HeapAlloc, runtime.NumGoroutine(), len(children(t))}
}
