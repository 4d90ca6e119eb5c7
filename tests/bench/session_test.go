package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/turn"
)

// BenchmarkDispatchBuiltin is a call of the built-in tool read in an open turn, from the door and back.
func BenchmarkDispatchBuiltin(b *testing.B) {
	w := newWorld(b, "", 0)
	w.write("a.txt", "hello\n")
	id := w.open("").GetSession().GetSessionId()
	begun := ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: id}).GetTurnId()
	var calls sample
	b.ReportAllocs()
	for b.Loop() {
		calls.time(func() {
			r := ask[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{
				SessionId: id, TurnId: begun, Name: "read", ArgumentsJson: json.RawMessage(`{"path":"a.txt"}`),
			})
			if r.GetRefusal() != nil || r.GetFailed() {
				b.Fatal(r)
			}
		})
	}
	calls.report(b, "")
}

// BenchmarkBeginTurn is a turn without calls among 1,000 skills, begun and ended. It reads the workspace first, as every
// turn does; BenchmarkReload/quiet is that part.
func BenchmarkBeginTurn(b *testing.B) {
	w := newWorld(b, "", 1000)
	id := w.open("").GetSession().GetSessionId()
	var begin sample
	b.ReportAllocs()
	for b.Loop() {
		var begun *sessionv1.BeginTurnResult
		begin.time(func() { begun = ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: id}) })
		ask[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: id, TurnId: begun.GetTurnId()})
	}
	begin.report(b, "begin-")
}

// BenchmarkAdmission is what the first turn of an epoch of 1,000 capabilities costs a kind of caller, with everything
// rendered from it, and what every later turn costs.
func BenchmarkAdmission(b *testing.B) {
	view := capabilities(b, 1000)
	caller := dispatch.Caller{Channel: "api"}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fresh := *view
			if _, err := new(dispatch.Admissions).For(&fresh, caller).Everything(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("known", func(b *testing.B) {
		var shared dispatch.Admissions
		b.ReportAllocs()
		for b.Loop() {
			if _, err := shared.For(view, caller).Everything(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("admit", func(b *testing.B) {
		in := turn.AdmitInput{View: view, Channel: view.Policy.Channel("api"), Engine: view.Policy.Engine}
		b.ReportAllocs()
		for b.Loop() {
			turn.Admit(in)
		}
	})
}

// BenchmarkLiveSessions is what an idle live session takes of the heap: fresh, and with one finished turn. Target: at
// most 8 KB. VAK_BENCH_LIVE sets how many are opened.
func BenchmarkLiveSessions(b *testing.B) {
	n := number(b, "VAK_BENCH_LIVE", 10_000)
	for _, row := range []struct {
		name string
		turn bool
	}{{"fresh", false}, {"one-turn", true}} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				w := newWorld(b, "", 50)
				ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: w.open("").GetSession().GetSessionId()})
				before, stacks := heap(), runtime.NumGoroutine()
				ids := w.openMany(n)
				if row.turn {
					w.each(n, func(i int) {
						begun := ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: ids[i]})
						ask[*sessionv1.EndTurnResult](w, &sessionv1.EndTurn{SessionId: ids[i], TurnId: begun.GetTurnId()})
					})
				}
				w.settle()
				b.ReportMetric(float64(heap()-before)/float64(n), "B/session")
				b.ReportMetric(float64(runtime.NumGoroutine()-stacks), "goroutines")
				w.stop()
			}
		})
	}
}

// settle returns when what was submitted to the ledger so far is on the disk: a closed session is, and writes keep
// their order.
func (w *world) settle() {
	w.Helper()
	last := w.open("").GetSession().GetSessionId()
	ask[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: last})
}

// BenchmarkPassivation opens 100,000 sessions, waits until all have left memory, reopens them and compares the heads:
// opened, passivated and activated are three entries. VAK_BENCH_SESSIONS sets how many.
func BenchmarkPassivation(b *testing.B) {
	n := number(b, "VAK_BENCH_SESSIONS", 100_000)
	for b.Loop() {
		w := newWorld(b, "[sessions]\nidle_ttl = \"2s\"\n", 0)
		before := heap()
		begun := time.Now()
		ids := w.openMany(n)
		b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "opened/s")
		begun = time.Now()
		w.passivated(n)
		b.ReportMetric(time.Since(begun).Seconds(), "until-passivated-s")
		b.ReportMetric(float64(heap()-before)/float64(n), "passivated-B/session")
		begun = time.Now()
		w.each(n, func(i int) {
			if r := w.open(ids[i]); !r.GetResumed() || r.GetSession().GetHead() != 3 {
				b.Errorf("session %s came back as %v", ids[i], r)
			}
		})
		b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "reopened/s")
		b.ReportMetric(float64(databaseSize(w))/float64(n), "disk-B/session")
		w.stop()
	}
}

// passivated returns when n sessions are there and none of them is in memory.
func (w *world) passivated(n int) {
	w.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for asleep := 0; asleep < n; {
		<-look.C
		asleep = 0
		for after := ""; ; {
			page := ask[*sessionv1.ListSessionsResult](w, &sessionv1.ListSessions{After: after, Limit: 1000})
			for _, s := range page.GetSessions() {
				if s.GetState() == "passivated" {
					asleep++
				}
			}
			if after = page.GetNext(); after == "" || page.GetSessions()[0].GetState() == "live" {
				break
			}
		}
	}
}

func databaseSize(w *world) (bytes int64) {
	files, err := os.ReadDir(w.host.DataDir())
	w.must(err)
	for _, f := range files {
		if info, err := os.Stat(filepath.Join(w.host.DataDir(), f.Name())); err == nil && strings.Contains(f.Name(), ".db") {
			bytes += info.Size()
		}
	}
	return bytes
}

// everything is a policy that allows all.
func everything(b *testing.B) *policy.Current {
	b.Helper()
	engine, problems := policy.CompileEngine(policy.Host{}, policy.PermissionRules{Mode: "full-access"})
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	return &policy.Current{Engine: engine}
}
