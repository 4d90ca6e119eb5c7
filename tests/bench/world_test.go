// Package bench measures what the program promises to be quick at, over a real host, real files and real processes.
//
// Nothing here is a test: no figure fails anything, because a busy machine would. `make bench` runs it; the targets stand
// beside each benchmark. Figures are compared within one run only. Where a benchmark repeats a whole scenario, its own
// metrics count, not ns/op.
package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	faulttest.Cleanup()
	os.Exit(code)
}

// settings precede every vak.toml: nothing asks, and nothing happens by the clock.
const settings = "[permissions]\nmode = \"full-access\"\n[reconcile]\ntick = \"1h\"\n"

// world is a workspace with a host on it.
type world struct {
	*testing.B
	workspace string
	host      *host.Host
	door      protocol.Door
}

// newWorld starts a host on a workspace whose vak.toml is settings and config, with skills skills.
func newWorld(b *testing.B, config string, skills int) *world {
	b.Helper()
	w := &world{B: b, workspace: b.TempDir()}
	w.write("vak.toml", settings+config)
	w.writeSkills(skills)
	var err error
	if w.host, err = host.Start(b.Context(), host.Options{Workspace: w.workspace, Data: b.TempDir(), Version: "bench"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.stop)
	w.door = w.host.Door()
	if err := w.host.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	return w
}

// stop may be called again.
func (w *world) stop() {
	w.must(w.host.Stop(context.WithoutCancel(w.Context())))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) write(name, text string) (path string) {
	w.Helper()
	path = filepath.Join(w.workspace, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o700))
	w.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// writeSkills writes n skills, of a minute ago: what was written just now is read again at each pass, as its time tells
// nothing yet.
func (w *world) writeSkills(n int) {
	w.Helper()
	old := time.Now().Add(-time.Minute)
	for i := range n {
		w.must(os.Chtimes(w.writeSkill(i, "1"), old, old))
	}
}

// writeSkill writes the i-th skill and returns the path of its file; another revision makes it another one.
func (w *world) writeSkill(i int, revision string) (path string) {
	w.Helper()
	return w.write(fmt.Sprintf("skills/skill-%04d/SKILL.md", i), fmt.Sprintf(
		"---\nname: skill-%04d\ndescription: Tells how to do the thing of number %d, revision %s.\n---\nDo it.\n", i, i, revision))
}

// ask fails the benchmark on an error. It may be called from any goroutine of it.
func ask[R proto.Message](w *world, command proto.Message) R {
	w.Helper()
	result, err := protocol.Call[R](w.Context(), w.door, command)
	if err != nil {
		w.Error(err)
		runtime.Goexit()
	}
	return result
}

func (w *world) open(id string) *sessionv1.OpenSessionResult {
	w.Helper()
	return ask[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: id})
}

// openers is how many sessions are opened at a time, so that they share commits as those of many clients do.
const openers = 256

// each runs f for 0 to n-1 on many goroutines and returns when all are done.
func (w *world) each(n int, f func(i int)) {
	w.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(openers, n) {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < n; i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	all.Wait()
	if w.Failed() {
		w.FailNow()
	}
}

// openMany opens n sessions and returns their ids.
func (w *world) openMany(n int) []string {
	w.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("s-%06d", i)
	}
	w.each(n, func(i int) { w.open(ids[i]) })
	return ids
}

// heap is what is in use on the heap, in bytes, after two collections: the first empties pools into their victims.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sample is the durations of many runs of one thing.
type sample []time.Duration

func (s *sample) time(f func()) {
	begun := time.Now()
	f()
	*s = append(*s, time.Since(begun))
}

// at is the quantile q, in nanoseconds.
func (s sample) at(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[int(q*float64(len(sorted)-1))].Nanoseconds())
}

// report adds the median and the 99th percentile as metrics, behind name.
func (s sample) report(b *testing.B, name string) {
	b.ReportMetric(s.at(0.5), name+"p50-ns")
	b.ReportMetric(s.at(0.99), name+"p99-ns")
}

// number is an environment variable that scales a scenario, or preset.
func number(b *testing.B, name string, preset int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s=%q is no number of sessions", name, text)
	}
	return n
}
