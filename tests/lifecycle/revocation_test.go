package lifecycle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V97, V99, V100, V126 (I6): 5,000 calls wait in 20 sessions for 20 busy servers when an operator revokes. Not one of them
// reaches a server after the answer, in turns whose epoch still lists everything; the calls that run are cancelled where
// the operator asks for it.
func TestRevocationStopsWhatIsQueued(t *testing.T) {
	const sessions, each = 20, 250
	w := newWorld(t, nil)
	servers := make([]fault, sessions)
	for i := range servers {
		servers[i] = w.fault(fmt.Sprintf("s%02d", i), nil, "max_in_flight = 1")
	}
	w.write("vak.toml", toml(configs(servers)...))
	turns := make([]*aTurn, sessions)
	for i, a := range w.openMany(sessions) {
		turns[i] = a.begin()
	}
	answers := make([]answer, sessions*each)
	done := make(chan struct{})
	go func() {
		defer close(done)
		parallel(len(answers), func(i int) {
			answers[i] = turns[i%sessions].mcp(servers[i%sessions].name, "sleep", object{"ms": 600_000})
		})
	}()
	for i := range servers {
		eventually(t, "one call runs at each server and the others wait", func() bool {
			return servers[i].called() == 1 && turns[i].session().GetHead() >= 3+each
		})
	}

	w.revoke("mcp:s00", false)
	w.revoke("tool:mcp", true)
	<-done
	for i, got := range answers {
		if i%sessions != 0 {
			refused(t, got.err, vakerr.CapabilityRevoked, "tool:mcp", "the audit failed")
		} else if got.err == nil {
			t.Errorf("a call of the revoked server was answered: %s", got.text)
		}
		if t.Failed() {
			break
		}
	}
	for _, s := range servers {
		if n := s.called(); n != 1 {
			t.Errorf("V100: %d calls reached %s, of which one before the revocation", n, s.name)
		}
	}
	refused(t, turns[1].mcp("s01", "echo", nil).err, vakerr.CapabilityRevoked, "tool:mcp")
	eventually(t, "the open turn's ledger tells both revocations", func() bool {
		return len(recorded[ledger.CapabilityRevoked](turns[1].agent)) == 2
	})
}

// V97, V100: writes that wait for the disk, or for one another, are stopped as well: when the revocation is answered, at
// most the one that is being made is still made.
func TestRevocationStopsQueuedWrites(t *testing.T) {
	const sessions, each = 8, 250
	w := newWorld(t, nil)
	turns := make([]*aTurn, sessions)
	for i, a := range w.openMany(sessions) {
		turns[i] = a.begin()
	}
	w.must(os.Mkdir(w.path("out"), 0o700))
	written := func() int {
		files, err := os.ReadDir(w.path("out"))
		w.must(err)
		return len(slices.DeleteFunc(files, func(f os.DirEntry) bool { return !strings.HasSuffix(f.Name(), ".txt") }))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		parallel(sessions*each, func(i int) {
			turns[i%sessions].call("write", object{"path": fmt.Sprintf("out/%d.txt", i), "content": "x"})
		})
	}()
	eventually(t, "writes are being made", func() bool { return written() > 20 })
	w.revoke("tool:write", false)
	after := written()
	<-done
	if late := written() - after; late > 1 {
		t.Errorf("%d writes were made after the revocation of all, %d before it", late, after)
	}
	if after == sessions*each {
		t.Error("the revocation came too late to stop anything")
	}
}

// V97, V100: sessions that call without a pause never get a call through that began after the answer of a revocation, of
// a built-in tool, a skill and a server alike, however often it is revoked and restored.
func TestRevocationUnderFire(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello."), "a.txt": "text"})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	for id, call := range map[string]func(u *aTurn) answer{
		"tool:read":   func(u *aTurn) answer { return u.call("read", object{"path": "a.txt"}) },
		"skill:greet": func(u *aTurn) answer { return u.call("skill", object{"name": "greet"}) },
		"mcp:s":       func(u *aTurn) answer { return u.mcp("s", "echo", object{"text": "text"}) },
	} {
		t.Run(id, func(t *testing.T) {
			w := *w
			w.TB = t
			turns := make([]*aTurn, 8)
			for i, a := range w.openMany(len(turns)) {
				turns[i] = a.begin()
				turns[i].want(call(turns[i]))
			}
			fire := newFire(turns, call)
			defer fire.end()
			for range 8 {
				before := fire.served.Load()
				eventually(t, "calls get through", func() bool { return fire.served.Load() > before })
				w.revoke(id, false)
				fire.revoked.Add(1) // odd: in force
				refusals := fire.refusals.Load()
				eventually(t, "calls are refused", func() bool { return fire.refusals.Load() > refusals })
				fire.revoked.Add(1)
				w.restore(id)
			}
			if n := fire.leaked.Load(); n > 0 {
				t.Errorf("V97: %d calls that began after a revocation ran", n)
			}
		})
	}
}

// fire is turns that call without a pause.
type fire struct {
	revoked                  atomic.Int64 // odd between the answer of a revocation and the restoration
	served, refusals, leaked atomic.Int64
	quit                     atomic.Bool
	done                     chan struct{}
}

func newFire(turns []*aTurn, call func(*aTurn) answer) *fire {
	f := &fire{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		parallel(len(turns), func(i int) {
			for !f.quit.Load() {
				f.shoot(turns[i], call)
			}
		})
	}()
	return f
}

func (f *fire) shoot(u *aTurn, call func(*aTurn) answer) {
	before := f.revoked.Load()
	got := call(u)
	switch {
	case got.err != nil:
		f.refusals.Add(1)
	case before%2 == 1 && f.revoked.Load() == before:
		f.leaked.Add(1)
	default:
		f.served.Add(1)
	}
}

func (f *fire) end() {
	f.quit.Store(true)
	<-f.done
}

// V102, V103, V110: a revocation is in the next epoch, as retired with the reason, survives a restart, and is taken back
// by a restoration, which publishes again; that alike for a built-in tool, a skill and a server.
func TestRevocationIsPublishedAndKept(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	w.reload()
	ids := []string{"tool:glob", "skill:greet", "mcp:s"}
	a := w.open()
	a.begin().end()
	for _, id := range ids {
		before := w.epoch()
		r := w.revoke(id, false)
		if !r.GetDeclared() || capability.Epoch(r.GetEpoch()) <= before {
			t.Errorf("V103: revoking %s answered %v in epoch %d", id, r, before)
		}
	}
	blocked := func(when string) {
		t.Helper()
		for _, id := range ids {
			if row := w.row(id); row == nil || row.Usable || row.Status != "removed: the audit failed" || !strings.Contains(row.Remedy, "restore "+id) {
				t.Errorf("%s the row of %s is %+v", when, id, row)
			}
		}
		u := a.begin()
		defer u.end()
		refused(t, u.call("glob", object{"pattern": "*"}).err, vakerr.CapabilityRevoked, "tool:glob")
		refused(t, u.mcp("s", "echo", nil).err, vakerr.CapabilityRevoked, "mcp:s")
		if got := u.call("skill", object{"name": "greet"}); got.err == nil {
			t.Errorf("%s the revoked skill was loaded", when)
		}
		for _, id := range ids {
			if !strings.Contains(u.GetNotice(), "- "+id+": the audit failed") {
				t.Errorf("%s the model is not told of %s: %q", when, id, u.GetNotice())
			}
		}
	}
	blocked("after the revocation")
	w.restart()
	blocked("after the restart")
	if n := s.started(); n != 0 {
		t.Errorf("a revoked server was started %d times", n)
	}
	for _, id := range ids {
		before := w.epoch()
		if r := w.restore(id); !r.GetWasRevoked() || capability.Epoch(r.GetEpoch()) <= before {
			t.Errorf("V102: restoring %s answered %v in epoch %d", id, r, before)
		}
		if row := w.row(id); row == nil || !row.Usable {
			t.Errorf("V102: after the restoration the row of %s is %+v", id, row)
		}
	}
	u := a.begin()
	u.want(u.call("glob", object{"pattern": "*"}))
	u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
	u.want(u.mcp("s", "echo", object{"text": "again"}), "again")
}

// V97: calls that run are cancelled where the operator asks for it, and may finish where not.
func TestRevocationAndRunningCalls(t *testing.T) {
	for name, cancel := range map[string]bool{"cancelled": true, "finished": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			s := w.fault("s", nil)
			w.write("vak.toml", toml(s.config))
			u := w.open().begin()
			result := make(chan answer, 1)
			ms := 100
			if cancel {
				ms = 600_000
			}
			go func() { result <- u.mcp("s", "sleep", object{"ms": ms}) }()
			eventually(t, "the call runs", func() bool { return s.called() == 1 })
			w.revoke("mcp:s", cancel)
			got := <-result
			if cancel {
				refused(t, got.err, vakerr.CapabilityRevoked, "while the call ran")
			} else {
				u.want(got, "slept")
			}
			eventually(t, "the revoked server runs no more", func() bool { return len(children(t)) == 0 })
		})
	}
}
