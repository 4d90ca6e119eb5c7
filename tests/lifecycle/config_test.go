package lifecycle

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// load calls a server at a steady rate until it is stopped, and keeps the first errors.
type load struct {
	stop  chan struct{}
	group sync.WaitGroup

	mu     sync.Mutex // guards the next two
	calls  int
	errors []string
}

// newLoad makes 50 calls a second, each a turn of its own.
func newLoad(a *agent, server string) *load {
	l := &load{stop: make(chan struct{})}
	l.group.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-tick.C:
				l.group.Go(func() { l.call(a.loose(), server, fmt.Sprint("call ", n)) })
			}
		}
	})
	return l
}

func (l *load) call(u *aTurn, server, text string) {
	got := u.mcp(server, "echo", object{"text": text})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if got.err != nil || got.text != text {
		l.errors = append(l.errors, got.String())
	}
}

// end stops the load and fails the test when a call failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.group.Wait()
	if len(l.errors) > 0 {
		t.Errorf("%d of %d calls to the unchanged server failed: %s", len(l.errors), l.calls, l.errors[0])
	}
	if l.calls == 0 {
		t.Error("there was no load")
	}
}

// V1, V94, V95, V96, V213: a server is added to, changed in and removed from vak.toml while another one is called 50 times
// a second: it can be called within half a second without a restart, the calls of the other all succeed, and from the
// epoch of the removal on nothing is served.
func TestServersChangeUnderLoad(t *testing.T) {
	w := newWorldWith(t, host.Options{Watch: true}, nil)
	steady := w.fault("steady", nil)
	w.write("vak.toml", toml(steady.config))
	w.reload()
	a := w.open()
	warm := a.loose()
	warm.want(warm.mcp("steady", "echo", object{"text": "warm"}), "warm")
	l := newLoad(a, "steady")

	var took []time.Duration
	b := w.open()
	u := b.loose()
	for round, edit := range []func(w *world, path, text string){(*world).write, (*world).replace, (*world).write, (*world).replace} {
		name := fmt.Sprint("extra", round)
		extra := w.fault(name, nil)
		changed := w.fault(name, []string{"-tools", "1"})
		for _, step := range []struct{ entry, tool string }{{extra.config, "counter"}, {changed.config, "plain0000"}} {
			begun := time.Now()
			edit(w, "vak.toml", toml(steady.config, step.entry))
			eventually(t, "the server can be called: "+step.tool, func() bool { return u.mcp(name, step.tool, nil).err == nil })
			took = append(took, time.Since(begun))
		}
		edit(w, "vak.toml", toml(steady.config))
		eventually(t, "the removal is published", func() bool { return w.row("mcp:"+name) == nil })
		served := extra.called()
		for range 20 {
			refused(t, u.mcp(name, "counter", nil).err, vakerr.CapabilityRemoved, "mcp:"+name)
		}
		if n := extra.called(); n != served {
			t.Errorf("%d calls were served after the removal", n-served)
		}
		eventually(t, "no process of a removed server is left", func() bool { return len(children(t)) == 1 })
	}
	l.end(t)
	t.Logf("callable after %v", took)
	// A busy machine adds what it likes to some of them; what the product waits for is in each.
	if best := slices.Min(took); best > 500*time.Millisecond {
		t.Errorf("a changed server could be called after %s at best, want at most 500ms", best)
	}
	if n := steady.started(); n != 1 {
		t.Errorf("the unchanged server was started %d times", n)
	}
}

// A file that is caught half written takes nothing away: an unreadable vak.toml changes no server until it can be read.
func TestUnreadableConfigKeepsServers(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.loose()
	w.reload()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	w.write("vak.toml", toml(s.config)+"[mcp.servers.half")
	problems := w.reload().GetProblems()
	if len(problems) == 0 || problems[0].GetPath() != "vak.toml" || problems[0].GetLine() == 0 {
		t.Errorf("the broken file is no finding with its line: %v", problems)
	}
	if w.row("mcp:s") == nil {
		t.Error("a broken vak.toml took a server away")
	}
	w.write("vak.toml", toml(s.config))
	w.reload()
	u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
	if n := s.started(); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
}
