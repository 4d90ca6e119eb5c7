package lifecycle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V4, V21, V86, V87, V89, V92, V93: a session outlives its daemon, however it ends: id, history and chain are there, and
// what changed meanwhile is told once.
func TestSessionOutlivesItsDaemon(t *testing.T) {
	for name, end := range map[string]func(*daemon){"in order": (*daemon).stop, "by kill -9": (*daemon).kill} {
		t.Run(name, func(t *testing.T) {
			w := emptyWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
			d := w.daemon()
			a := w.openWith(&sessionv1.OpenSession{SessionId: "long-lived", Attributes: map[string]string{"who": "me"}})
			for range 3 {
				u := a.begin()
				u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
				u.end()
			}
			eventually(t, "three turns are on the disk", func() bool { return len(recorded[ledger.TurnEnded](a)) == 3 })
			before, epoch := a.record(), w.epoch()
			end(d)

			w.write(skillFile("part"), skill("part", "Say farewell."))
			w.daemon()
			if s := a.session(); s.GetState() != "passivated" || s.GetAttributes()["who"] != "me" || s.GetHead() == 0 {
				t.Errorf("after the restart the session is %v", s)
			}
			u := a.begin()
			if d := u.GetDelta(); !slices.Equal(d.GetAdded(), []string{"skill:part"}) || changes(d) != 1 {
				t.Errorf("after the restart the session is told %v", d)
			}
			if u.GetEpoch() != uint64(epoch)+1 {
				t.Errorf("V21: the restart led from epoch %d to %d", epoch, u.GetEpoch())
			}
			u.want(u.call("skill", object{"name": "part"}), "Say farewell.")
			u.end()
			if again := a.begin(); again.GetNotice() != "" {
				t.Errorf("the change is told again: %q", again.GetNotice())
			}
			eventually(t, "the fifth turn is on the disk", func() bool { return len(recorded[ledger.TurnBegan](a)) == 5 })
			after := a.record()
			if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
				t.Errorf("V93: the restart changed history (-before +after):\n%s", diff)
			}
			checkRebuilt(t, a)
			w.verify()
		})
	}
}

// checkRebuilt holds each turn of a record to what its model was shown.
func checkRebuilt(t *testing.T, a *agent) {
	t.Helper()
	shown := map[string]string{}
	for _, body := range a.record() {
		switch b := body.(type) {
		case ledger.InterfaceStored:
			if _, twice := shown[b.Digest]; twice {
				t.Errorf("V92: the interface %s is stored twice", b.Digest)
			}
			shown[b.Digest] = string(b.Interface)
		case ledger.TurnBegan:
			if b.CapabilityEpoch == 0 || b.SetDigest == "" || !strings.Contains(shown[b.Interface], "- greet: Says how to greet.") {
				t.Errorf("V89: what turn %s saw cannot be rebuilt: epoch %d, interface %.300q", b.Turn, b.CapabilityEpoch, shown[b.Interface])
			}
		}
	}
	if len(shown) != 2 {
		t.Errorf("V92: %d interfaces are stored for two that differ", len(shown))
	}
}

// A call that may change something is on the disk before the server hears of it, and one that only reads while it runs,
// so that a daemon killed at the worst moment has forgotten neither.
func TestCallsAreOnTheDiskBeforeTheKill(t *testing.T) {
	w := emptyWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	for i, c := range []struct{ tool, what string }{{"write", "a write"}, {"sleep", "a read"}} {
		d := w.daemon()
		a := w.open()
		u := a.begin()
		u.want(u.mcp("s", "echo", object{"text": "warm"}), "warm")
		u.end()
		u = a.learned("- s: add") // now the call is known to be read-only, or not
		before := s.called()
		result := make(chan answer, 1)
		go func() { result <- u.mcp("s", c.tool, object{"ms": 600_000}) }()
		eventually(t, "the server has heard of "+c.what, func() bool { return s.called() == before+1 })
		if i == 1 {
			eventually(t, "the read is on the disk while it runs", func() bool { return len(recorded[ledger.CallStarted](a)) == 2 })
		}
		d.kill()
		<-result
		d = w.daemon()
		started := recorded[ledger.CallStarted](a)
		if len(started) != 2 || !strings.Contains(string(started[1].Arguments), c.tool) {
			t.Errorf("after kill -9 the ledger has forgotten %s: %+v", c.what, started)
		}
		w.verify()
		d.stop()
	}
}

// A daemon that is killed leaves no server behind, and the next one ends what servers had started.
func TestKilledDaemonLeavesNoOrphan(t *testing.T) {
	w := emptyWorld(t, nil)
	s := w.fault("s", []string{"-deaf", "-grandchild"})
	w.write("vak.toml", toml(s.config))
	d := w.daemon()
	u := w.open().begin()
	got := u.mcp("s", "grandchild", nil)
	var grandchild int
	if _, err := fmt.Sscan(got.text, &grandchild); err != nil || !runs(grandchild) {
		t.Fatalf("there is no grandchild: %v", got)
	}
	d.kill()
	eventually(t, "the server dies with its daemon", func() bool { return !runs(s.pids()[0]) })
	w.daemon()
	eventually(t, "the next daemon ends the server's child", func() bool { return !runs(grandchild) })
	if n := s.started(); n != 1 {
		t.Errorf("the restart started the server: %d starts", n)
	}
}

// Two daemons never write one data folder: the second is told whose it is.
func TestSecondDaemonIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	_, err := host.Start(t.Context(), host.Options{Workspace: workspaceOf(w.folder), Data: dataOf(w.folder)})
	refused(t, err, vakerr.DataFolderLocked, fmt.Sprint("process ", os.Getpid()), dataOf(w.folder))
	a := w.open()
	a.begin().end() // the first one goes on
}

// V83: of many hosts that start at once on one folder, one runs; the others are refused and leave nothing behind.
func TestConcurrentStartsMakeOneHost(t *testing.T) {
	w := emptyWorld(t, nil)
	hosts, errs := make([]*host.Host, 6), make([]error, 6)
	parallel(len(hosts), func(i int) {
		hosts[i], errs[i] = host.Start(t.Context(), host.Options{Workspace: workspaceOf(w.folder), Data: dataOf(w.folder)})
	})
	running := 0
	for i, h := range hosts {
		if errs[i] != nil {
			refused(t, errs[i], vakerr.DataFolderLocked)
			continue
		}
		running++
		w.stopHost(h)
	}
	if running != 1 {
		t.Errorf("%d hosts run on one folder", running)
	}
}

// An idle session leaves memory and comes back as it was, when it is spoken to.
func TestIdleSessionIsPassivated(t *testing.T) {
	w := emptyWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
	w.write("vak.toml", toml("[sessions]\nidle_ttl = \"40ms\"\n"))
	w.start(host.Options{})
	a, busy := w.open(), w.open()
	u := a.begin()
	u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
	u.end()
	open := busy.begin()
	eventually(t, "the idle session is passivated", func() bool { return a.session().GetState() == "passivated" })
	w.write(skillFile("part"), skill("part", "Say farewell."))
	u = a.begin()
	if state := a.session().GetState(); state != "live" {
		t.Errorf("a session that was spoken to is %s", state)
	}
	if d := u.GetDelta(); !slices.Equal(d.GetAdded(), []string{"skill:part"}) {
		t.Errorf("the session came back without its past: %v", d)
	}
	u.end()
	if len(recorded[ledger.SessionPassivated](a)) == 0 || len(recorded[ledger.SessionActivated](a)) == 0 {
		t.Error("the ledger does not tell of the passivation and the return")
	}
	open.want(open.call("skill", object{"name": "greet"}), "Say hello.") // an open turn keeps its session
	w.verify()
}

// A session of another tenant is, to all appearances, none.
func TestTenantsAreIsolated(t *testing.T) {
	w := emptyWorld(t, map[string]string{"../other/" + skillFile("secret"): skill("secret", "Tell nobody.")})
	w.write("vak.toml", toml("[tenants.other]\nworkspace = \"../other\"\n"))
	w.start(host.Options{})
	theirs := ask[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{Tenant: "other"}).GetSession().GetSessionId()
	ask[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{Tenant: "other", SessionId: theirs})
	for what, act := range map[string]func(id string) error{
		"look": func(id string) error {
			_, err := try[*sessionv1.GetSessionResult](w, &sessionv1.GetSession{SessionId: id})
			return err
		},
		"begin": func(id string) error {
			_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: id})
			return err
		},
		"call": func(id string) error {
			_, err := try[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{SessionId: id, Name: "read"})
			return err
		},
		"close": func(id string) error {
			_, err := try[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: id})
			return err
		},
	} {
		foreign, none := act(theirs), act("s-nobody")
		refused(t, foreign, vakerr.SessionNotFound)
		if a, b := fmt.Sprint(foreign), strings.ReplaceAll(fmt.Sprint(none), "s-nobody", theirs); a != b {
			t.Errorf("%s: a session of another tenant differs from none:\n%s\n%s", what, a, b)
		}
	}
	if w.row("skill:secret") != nil {
		t.Error("the other tenant's skill is in this one's report")
	}
	mine := w.open()
	refused(t, mine.begin().call("skill", object{"name": "secret"}).err, vakerr.CapabilityNotAdmitted)
	_, err := try[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{Tenant: "nobody"})
	refused(t, err, vakerr.UnknownTenant, "nobody")
}
