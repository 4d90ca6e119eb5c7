package bench

import (
	"os"
	"strconv"
	"testing"
	"time"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// scan is one pass of a scanner over a workspace.
func scan(b *testing.B, s *declare.Scanner, workspace string) declare.Result {
	b.Helper()
	root, err := os.OpenRoot(workspace)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	r, err := s.Scan(root.FS(), time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// capabilities is a view of an epoch of n skills.
func capabilities(b *testing.B, n int) *turn.View {
	b.Helper()
	w := &world{B: b, workspace: b.TempDir()}
	w.writeSkills(n)
	set, err := capability.NewSet(scan(b, declare.NewScanner(declare.Options{}), w.workspace).Declarations, nil)
	if err != nil {
		b.Fatal(err)
	}
	return &turn.View{
		Snapshot: capability.Snapshot{Epoch: 1, Set: set}, Policy: everything(b), History: capability.NewHistory(nil),
	}
}

// BenchmarkScan is one reading of 2,000 skills from the disk: the first, and a later one that finds nothing new. Target:
// a quiet one in at most 20 ms.
func BenchmarkScan(b *testing.B) {
	w := &world{B: b, workspace: b.TempDir()}
	w.writeSkills(2000)
	check := func(b *testing.B, r declare.Result) {
		if len(r.Declarations) != 2000 || len(r.Problems) > 0 {
			b.Fatalf("%d declarations, %d problems", len(r.Declarations), len(r.Problems))
		}
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check(b, scan(b, declare.NewScanner(declare.Options{}), w.workspace))
		}
	})
	b.Run("quiet", func(b *testing.B) {
		s := declare.NewScanner(declare.Options{})
		scan(b, s, w.workspace)
		b.ReportAllocs()
		for b.Loop() {
			check(b, scan(b, s, w.workspace))
		}
	})
}

// BenchmarkReload is a whole pass over 2,000 skills, from the question to the answer: the reading, and the comparison
// with the current set. Target: a quiet one in at most 20 ms.
func BenchmarkReload(b *testing.B) {
	w := newWorld(b, "", 2000)
	b.Run("quiet", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if ask[*registryv1.ReloadResult](w, &registryv1.Reload{}).GetChanged() {
				b.Fatal("the epoch moved")
			}
		}
	})
}

// BenchmarkPublish is one edited skill among 1,000 while 10,000 sessions live, from the question whether there is
// anything new to the answer that the epoch is published. VAK_BENCH_LIVE sets how many sessions live.
func BenchmarkPublish(b *testing.B) {
	w := newWorld(b, "", 1000)
	ids := w.openMany(number(b, "VAK_BENCH_LIVE", 10_000))
	w.settle()
	begun := heap()
	var publish, next sample
	revision := 1
	b.ReportAllocs()
	for b.Loop() {
		revision++
		w.writeSkill(7, strconv.Itoa(revision))
		publish.time(func() {
			if !ask[*registryv1.ReloadResult](w, &registryv1.Reload{}).GetChanged() {
				b.Fatal("the epoch did not move")
			}
		})
	}
	publish.report(b, "")
	b.ReportMetric(float64(heap()-begun)/1024, "heap-growth-KiB")
	for _, id := range ids[:100] {
		next.time(func() { ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: id}) })
	}
	next.report(b, "next-turn-")
}
