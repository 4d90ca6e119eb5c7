package lifecycle

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V127, V128: a session with direct-write paths writes and edits below them and nowhere else, whatever rules and mode say
// and wherever links lead, after a restart too; what is no direct write is not concerned.
func TestWritePaths(t *testing.T) {
	for name, permissions := range map[string]string{
		"allowed by a rule": "[permissions]\nmode = \"workspace-write\"\nallow = [\"write\", \"edit\", \"mcp(*/*)\"]\n",
		"allowed by mode":   "[permissions]\nmode = \"full-access\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"docs/a.md": "one", "src/a.go": "one"})
			w.must(os.Symlink("../src", w.path("docs/out")))
			w.must(os.Symlink("../src/a.go", w.path("docs/a.go")))
			s := w.fault("s", nil)
			w.write("vak.toml", permissions+"[reconcile]\ntick = \"1h\"\n"+s.config)
			a := w.openWith(&sessionv1.OpenSession{WritePaths: []string{"docs", "CHANGELOG.md"}})
			for _, interruption := range []func(){func() {}, w.restart} {
				interruption()
				u := a.begin()
				u.want(u.call("write", object{"path": "docs/new/b.md", "content": "x"}))
				u.want(u.call("write", object{"path": w.path("CHANGELOG.md"), "content": "x"}))
				u.want(u.call("edit", object{"path": "docs/a.md", "old_string": "one", "new_string": "two"}))
				w.write("docs/a.md", "one")
				for _, path := range []string{"src/b.go", "docs/../src/b.go", "docs2/b", w.path("src/b.go"), "docs/out/b.go", "docs/a.go", "vak.toml"} {
					got := u.call("write", object{"path": path, "content": "two"})
					if code := vakerr.CodeOf(got.err); code != vakerr.PermissionDenied && code != vakerr.PathEscapes {
						t.Errorf("write %s: %v", path, got)
					}
				}
				for _, path := range []string{"src/a.go", "docs/out/a.go", "docs/a.go"} {
					if got := u.call("edit", object{"path": path, "old_string": "one", "new_string": "two"}); vakerr.CodeOf(got.err) != vakerr.PermissionDenied {
						t.Errorf("edit %s: %v", path, got)
					}
				}
				u.want(u.mcp("s", "write", nil)) // of a server: it answers for itself
				u.end()
			}
			text, err := os.ReadFile(w.path("src/a.go"))
			w.must(err)
			if left, err := os.ReadDir(w.path("src")); err != nil || len(left) != 1 || string(text) != "one" {
				t.Errorf("something was written outside of the paths: %v, %q", left, text)
			}
		})
	}
}

// V128: the paths are judged before rules and mode are, so that nobody is asked for what is refused anyhow.
func TestWritePathsComeFirst(t *testing.T) {
	w := newWorld(t, nil)
	for _, permissions := range []string{
		"deny = [\"write(src/**)\"]\nmode = \"full-access\"", "ask = [\"write(src/**)\"]", "deny = [\"edit\"]",
	} {
		w.write("vak.toml", "[permissions]\n"+permissions+"\n[reconcile]\ntick = \"1h\"\n")
		u := w.openWith(&sessionv1.OpenSession{WritePaths: []string{"docs"}, Attended: true}).begin()
		refused(t, u.call("write", object{"path": "src/a", "content": "x"}).err, vakerr.PermissionDenied, "may not write")
	}
}

// hire opens a worker of an open turn.
func (u *aTurn) hire(m *sessionv1.OpenSession, tools ...string) *agent {
	u.Helper()
	m.Worker = &sessionv1.Worker{ParentSessionId: u.id, ParentTurnId: u.GetTurnId(), Tools: tools, ReadOnly: m.GetWorker().GetReadOnly()}
	return u.openWith(m)
}

// V124: over a real host, twelve workers of one turn, which are spread over its directories, stay on the epoch of that turn
// through edits, hear of a revocation at once, and end with the turn.
func TestWorkers(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "hello", skillFile("old"): skill("old", "The old body.")})
	a := w.openWith(&sessionv1.OpenSession{WritePaths: []string{"docs"}})
	u := a.begin()
	workers := make([]*aTurn, 12)
	for i := range workers {
		workers[i] = u.hire(&sessionv1.OpenSession{}, "read", "write", "skill").loose()
	}
	w.write(skillFile("old"), skill("old", "The new body."))
	w.write(skillFile("new"), skill("new", "Another one."))
	w.reload()
	if capability.Epoch(u.GetEpoch()) >= w.epoch() {
		t.Fatal("the epoch has not moved")
	}
	for _, x := range workers {
		x.want(x.call("read", object{"path": "a.txt"}), "hello")
		x.want(x.call("skill", object{"name": "old"}), "The old body.")
		x.want(x.call("write", object{"path": "docs/a", "content": "x"}))
		refused(t, x.call("skill", object{"name": "new"}).err, vakerr.CapabilityNotAdmitted)
		refused(t, x.call("glob", object{"pattern": "*"}).err, vakerr.UnknownTool)
		refused(t, x.call("write", object{"path": "a.txt", "content": "x"}).err, vakerr.PermissionDenied)
		begun := x.begin()
		if begun.GetEpoch() != u.GetEpoch() || begun.GetSetDigest() != u.GetSetDigest() {
			t.Errorf("an explicit turn of a worker is bound to epoch %d, not %d", begun.GetEpoch(), u.GetEpoch())
		}
		begun.end()
	}
	w.revoke("skill:old", false)
	for _, x := range workers {
		refused(t, x.call("skill", object{"name": "old"}).err, vakerr.CapabilityRevoked)
	}
	u.end()
	for _, x := range workers {
		err := x.call("read", object{"path": "a.txt"}).err
		if code := vakerr.CodeOf(err); code != vakerr.TurnEnded && code != vakerr.SessionClosed {
			t.Errorf("a worker goes on after the turn: %v", err)
		}
	}
	eventually(t, "every worker is closed", func() bool {
		return !slices.ContainsFunc(workers, func(x *aTurn) bool { return x.session().GetState() != "closed" })
	})
	w.verify()
}

// V124: while workers come and call, their parent's turn ends. No call that begins after the end has been answered runs, and
// none of them is left open.
func TestWorkersUnderFire(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "hello"})
	a := w.open()
	for range 10 {
		u := a.begin()
		var ended atomic.Bool
		var made atomic.Int32
		var all sync.WaitGroup
		workers := make([]*agent, 8)
		for i := range workers {
			all.Go(func() {
				r, err := try[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{
					Worker: &sessionv1.Worker{ParentSessionId: u.id, ParentTurnId: u.GetTurnId()},
				})
				if err != nil {
					if vakerr.CodeOf(err) != vakerr.TurnEnded {
						t.Error(err)
					}
					return
				}
				workers[i] = &agent{w, r.GetSession().GetSessionId()}
				for {
					over := ended.Load()
					got := workers[i].loose().call("read", object{"path": "a.txt"})
					made.Add(1)
					if got.err == nil && over {
						t.Error("a call ran after the turn had ended")
					}
					if got.err != nil || over {
						return
					}
				}
			})
		}
		eventually(t, "workers call", func() bool { return made.Load() > 40 })
		u.end()
		ended.Store(true)
		all.Wait()
		eventually(t, "every worker is closed", func() bool {
			return !slices.ContainsFunc(workers, func(x *agent) bool { return x != nil && x.session().GetState() != "closed" })
		})
	}
	w.verify()
}

// V124: a worker that reads only, and one with a channel of its own, can do less than their parent and never more; policy
// that is tightened meanwhile holds for them as for everybody.
func TestWorkersNarrow(t *testing.T) {
	const channel = "[channels.helper.tools]\ndeny = [\"grep\"]\n"
	w := newWorld(t, map[string]string{"a.txt": "hello", "vak.toml": settings + channel})
	s := w.fault("s", nil)
	w.write("vak.toml", settings+channel+s.config)
	a := w.open()
	u := a.begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	u.end()
	u = a.learned("echo")
	reader := u.hire(&sessionv1.OpenSession{Worker: &sessionv1.Worker{ReadOnly: true}}).loose()
	helper := u.hire(&sessionv1.OpenSession{Channel: "helper"}).loose()
	single := u.hire(&sessionv1.OpenSession{}, "s/echo").loose()
	reader.want(reader.call("grep", object{"pattern": "hello"}), "a.txt")
	if err := reader.call("write", object{"path": "b", "content": "x"}).err; err == nil {
		t.Error("a worker that reads only has written")
	}
	if err := reader.mcp("s", "write", nil).err; err == nil {
		t.Error("a worker that reads only has had a server write")
	}
	refused(t, helper.call("grep", object{"pattern": "hello"}).err, vakerr.UnknownTool)
	helper.want(helper.call("read", object{"path": "a.txt"}), "hello")
	single.want(single.call("s__echo", object{"text": "two"}), "two")
	refused(t, single.mcp("s", "write", nil).err, vakerr.UnknownTool)
	refused(t, single.call("read", object{"path": "a.txt"}).err, vakerr.UnknownTool)

	w.write("vak.toml", settings+"[channels.helper.tools]\ndeny = [\"grep\", \"read\"]\n"+s.config)
	w.reload()
	refused(t, helper.call("read", object{"path": "a.txt"}).err, vakerr.ChannelDenied)
	u.want(u.call("read", object{"path": "a.txt"}), "hello")
}

// V124: nobody answers approvals for a worker, though somebody does for its parent: what would ask is refused at once.
func TestWorkersAreUnattended(t *testing.T) {
	w := newWorld(t, map[string]string{"vak.toml": "[permissions]\nask = [\"write(secret/**)\"]\n[reconcile]\ntick = \"1h\"\n"})
	u := w.openWith(&sessionv1.OpenSession{Attended: true}).begin()
	x := u.hire(&sessionv1.OpenSession{}).loose()
	x.want(x.call("write", object{"path": "a", "content": "x"}))
	refused(t, x.call("write", object{"path": "secret/a", "content": "x"}).err, vakerr.ApprovalRequired)
	if _, err := try[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: x.id, Attended: true}); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("the worker became attended: %v", err)
	}
}

// V124: the commands of a prompt are calls of the shell, which a worker has to be given like any tool.
func TestPromptsOfWorkers(t *testing.T) {
	w := newWorld(t, map[string]string{"commands/where.md": "It is !`echo here`.\n"})
	u := w.open().begin()
	for _, c := range []struct {
		open  *sessionv1.OpenSession
		tools []string
		want  vakerr.Code
	}{
		{&sessionv1.OpenSession{}, nil, ""},
		{&sessionv1.OpenSession{}, []string{"where", "bash"}, ""},
		{&sessionv1.OpenSession{}, []string{"where", "read"}, vakerr.ChannelDenied},
	} {
		x := u.hire(c.open, c.tools...)
		r, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: x.id, Prompt: "/where"})
		if vakerr.CodeOf(err) != c.want || err == nil && r.GetPrompt() != "It is here.\n" {
			t.Errorf("a worker with %v: %q, %v", c.tools, r.GetPrompt(), err)
		}
	}
}

// A worker outlives nothing: after a restart there is no turn it could serve.
func TestWorkersAndRestart(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "hello"})
	x := w.open().begin().hire(&sessionv1.OpenSession{}).loose()
	x.want(x.call("read", object{"path": "a.txt"}), "hello")
	w.restart()
	err := x.call("read", object{"path": "a.txt"}).err
	if code := vakerr.CodeOf(err); code != vakerr.TurnEnded && code != vakerr.SessionClosed {
		t.Errorf("it goes on: %v", err)
	}
	eventually(t, "the worker is closed", func() bool { return x.session().GetState() == "closed" })
	w.verify()
}
