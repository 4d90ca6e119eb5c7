package lifecycle

import (
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V3, V84, V85, V86, V87, V101, V106, V126: a skill that is edited while sessions live is used at each one's next
// turn, told once; a turn in flight keeps its view to its end.
func TestEditReachesEverySession(t *testing.T) {
	for name, edit := range map[string]func(w *world, path, text string){"in place": (*world).write, "by rename": (*world).replace} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
			agents := w.openMany(100)
			turns := make([]*aTurn, len(agents))
			for i, a := range agents {
				turns[i] = a.begin()
				if i%2 == 1 {
					turns[i].end()
				}
			}

			edit(w, skillFile("greet"), skill("greet", "Say good evening."))
			w.write(skillFile("part"), skill("part", "Say farewell."))
			if r := w.reload(); !r.GetChanged() {
				t.Fatal("the edit did not move the epoch")
			}
			for i, u := range turns {
				if i%2 == 0 {
					u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
					if got := u.call("skill", object{"name": "part"}); got.err == nil {
						t.Errorf("V101: a skill that was added meanwhile is callable in the turn: %s", got.text)
					}
					u.end()
				}
			}
			for _, a := range agents {
				told := a.begin()
				checkTold(t, told)
				told.end()
				if again := a.begin(); again.GetNotice() != "" || changes(again.GetDelta()) > 0 || again.GetEpoch() != told.GetEpoch() {
					t.Fatalf("V87: the change is told again: %q %v", again.GetNotice(), again.GetDelta())
				}
			}
			checkRecorded(t, agents[0])
			w.verify()
		})
	}
}

// checkTold holds a turn to what the edit of TestEditReachesEverySession did.
func checkTold(t *testing.T, u *aTurn) {
	t.Helper()
	if d := u.GetDelta(); !slices.Equal(d.GetUpdated(), []string{"skill:greet"}) || !slices.Equal(d.GetAdded(), []string{"skill:part"}) || changes(d) != 2 {
		t.Errorf("the delta is %v", d)
	}
	for _, id := range []string{"skill:greet", "skill:part"} {
		if n := strings.Count(u.GetNotice(), id); n != 1 {
			t.Errorf("V87: %s is announced %d times: %q", id, n, u.GetNotice())
		}
	}
	u.want(u.call("skill", object{"name": "greet"}), "Say good evening.")
	u.want(u.call("skill", object{"name": "part"}), "Say farewell.")
}

func changes(d *commonv1.Delta) int {
	return len(d.GetAdded()) + len(d.GetUpdated()) + len(d.GetRemoved())
}

// checkRecorded holds a ledger to what the model was told.
func checkRecorded(t *testing.T, a *agent) {
	t.Helper()
	changes := recorded[ledger.EpochChanged](a)
	if len(changes) != 1 {
		t.Fatalf("V86: the ledger holds %d changes of the epoch, want 1", len(changes))
	}
	if d := changes[0].Delta; len(d.Added) != 1 || d.Added[0].String() != "skill:part" || len(d.Updated) != 1 || d.Updated[0].String() != "skill:greet" {
		t.Errorf("V86: the ledger names another delta: %v", d)
	}
}

// V84, V85: whatever happens to a workspace, a turn goes on with what it began with, all of it.
func TestOpenTurnKeepsItsTools(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("greet"): skill("greet", "Say hello."), "commands/hi.md": "Greet $ARGUMENTS.",
	})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	w.remove("skills")
	w.remove("commands")
	w.write("vak.toml", settings)
	w.reload()
	if w.row("skill:greet") != nil || w.row("mcp:s") != nil {
		t.Fatal("what was removed is still in the report")
	}
	u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
	u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
	u.end()
	next := u.begin()
	refused(t, next.mcp("s", "echo", nil).err, vakerr.CapabilityRemoved, "mcp:s")
}

// V96: what is removed at its source is gone at the next turn, and the model is told once.
func TestRemovalIsAnnounced(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("greet"): skill("greet", "Say hello."), skillFile("stay"): skill("stay", "Stay.")})
	a := w.open()
	a.begin().end()
	w.remove("skills/greet")
	u := a.begin()
	if d := u.GetDelta(); !slices.Equal(d.GetRemoved(), []string{"skill:greet"}) || changes(d) != 1 {
		t.Errorf("the delta is %v", d)
	}
	if strings.Count(u.GetNotice(), "skill:greet") != 1 || strings.Contains(u.GetPromptSection(), "greet") {
		t.Errorf("the removal is not announced once: %q\n%s", u.GetNotice(), u.GetPromptSection())
	}
	if got := u.call("skill", object{"name": "greet"}); got.err == nil {
		t.Errorf("a removed skill was loaded: %s", got.text)
	}
	u.want(u.call("skill", object{"name": "stay"}), "Stay.")
	u.end()
	if again := a.begin(); again.GetNotice() != "" {
		t.Errorf("the removal is told again: %q", again.GetNotice())
	}
}

// V72, V75: with every hint dropped, a change is there after a tick, though nobody asks for it.
func TestChangeWithoutHints(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", strings.Replace(settings, "1h", "20ms", 1))
	w.start(host.Options{Watch: false})
	w.write(skillFile("greet"), skill("greet", "Say hello."))
	eventually(t, "a tick finds the skill", func() bool { return w.row("skill:greet") != nil })
	w.remove("skills")
	eventually(t, "a tick finds that the skill is gone", func() bool { return w.row("skill:greet") == nil })
}

// V74: with the watch, an edit is seen long before the tick, which is an hour away here.
func TestChangeByHint(t *testing.T) {
	w := newWorldWith(t, host.Options{Watch: true}, map[string]string{skillFile("greet"): skill("greet", "Say hello.")})
	w.write(skillFile("part"), skill("part", "Say farewell."))
	eventually(t, "a hint finds the new folder", func() bool { return w.row("skill:part") != nil })
	report, _ := w.report()
	if how := report.Loop.Watching; how != "notify" {
		t.Errorf("the workspace is not watched, but looked at by %s", how)
	}
	before := report.Epoch
	w.replace(skillFile("part"), skill("part", "Say nothing."))
	eventually(t, "a hint finds the renamed file", func() bool { return w.epoch() > before })
}

// V76, V88, V214: passes over a quiet world do not move the epoch, nor do writes that change nothing.
func TestQuietWorldKeepsItsEpoch(t *testing.T) {
	files := map[string]string{
		skillFile("greet"): skill("greet", "Say hello."), "commands/hi.md": "Greet.", "skills/broken/SKILL.md": "no frontmatter",
	}
	w := newWorld(t, files)
	s, down := w.fault("s", nil), w.fault("down", []string{"-exit-now", "1"})
	w.write("vak.toml", toml(s.config, down.config, "[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n"))
	u := w.open().begin()
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	u.mcp("down", "echo", nil)
	u.end()
	eventually(t, "both observations are published", func() bool {
		w.reload()
		s, down := w.state("s"), w.state("down")
		return s.GetTools() > 0 && down.GetFailure() != ""
	})
	before, passes := w.epoch(), w.passes()
	for range 25 {
		for path, text := range files {
			w.replace(path, text)
		}
		if r := w.reload(); r.GetChanged() {
			t.Fatal("a pass over a quiet world changed something")
		}
	}
	if after := w.epoch(); after != before || w.passes() < passes+25 {
		t.Errorf("the epoch moved from %d to %d in %d quiet passes", before, after, w.passes()-passes)
	}
}

func (w *world) passes() uint64 {
	w.Helper()
	report, _ := w.report()
	return report.Loop.Passes
}

// V5, V6: one loop keeps all kinds current, and one report describes them, at one epoch; there are five.
func TestAllKindsAreKeptCurrent(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write(skillFile("greet"), skill("greet", "Say hello."))
	w.write("commands/hi.md", "Greet.")
	w.write("vak.toml", toml(s.config, hook("stop", "", "true")))
	w.reload()
	ids := []string{"tool:read", "skill:greet", "mcp:s", "command:hi", "hook:stop/true"}
	for _, id := range ids {
		if row := w.row(id); row == nil || !row.Usable {
			t.Errorf("the row of %s is %+v", id, row)
		}
	}
	report, _ := w.report()
	kinds := map[string]bool{}
	for _, row := range report.Capabilities {
		kinds[row.Kind.String()] = true
	}
	if len(kinds) != 5 || report.Loop.Epoch != report.Epoch {
		t.Errorf("the report of epoch %d, after a pass at %d, knows the kinds %v", report.Epoch, report.Loop.Epoch, kinds)
	}
	w.remove("skills")
	w.remove("commands")
	w.write("vak.toml", settings)
	w.reload()
	for _, id := range ids[1:] {
		if w.row(id) != nil {
			t.Errorf("%s was removed and is in the report", id)
		}
	}
}

// V97, V99: a permission that is withdrawn counts at once, in turns that began with it, and is no part of the epoch.
func TestPolicyNarrowsAnOpenTurn(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "text", skillFile("greet"): skill("greet", "Say hello.")})
	u := w.open().begin()
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	u.want(u.call("write", object{"path": "b.txt", "content": "x"}))
	w.write("vak.toml", strings.Replace(settings, "[permissions]", "[permissions]\ndeny = [\"write\"]", 1)+
		"[channels.api]\nskills = { deny = [\"greet\"] }\n")
	w.reload()
	refused(t, u.call("write", object{"path": "b.txt", "content": "y"}).err, vakerr.PermissionDenied, "write")
	refused(t, u.call("skill", object{"name": "greet"}).err, vakerr.ChannelDenied, "skill:greet")
	u.want(u.call("read", object{"path": "b.txt"}), "x")
	w.write("vak.toml", settings)
	w.reload()
	u.want(u.call("write", object{"path": "b.txt", "content": "z"}))
	if epoch := w.epoch(); uint64(epoch) != u.GetEpoch() {
		t.Errorf("policy moved the epoch from %d to %d", u.GetEpoch(), epoch)
	}
}

// A tool that a rule or a channel switches off is offered no longer to a session that lives, and one that is switched on is
// offered; clients are told both times, though no epoch moves.
func TestSwitchedToolsAreListedAnew(t *testing.T) {
	w := newWorld(t, nil)
	a := w.open()
	heard := make(chan struct{}, 16)
	cancel, err := w.door.Subscribe("default", func() { heard <- struct{}{} })
	w.must(err)
	defer cancel()
	offered := func() bool {
		return strings.Contains(string(ask[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: a.id}).GetToolsJson()), `"name":"write"`)
	}
	for _, step := range []struct {
		rules string
		want  bool
	}{
		{"", true},
		{"[permissions]\ndeny = [\"write\"]\n", false},
		{"", true},
		{"[channels.api]\ntools = { deny = [\"write\"] }\n", false},
		{"", true},
	} {
		if step.rules == "" {
			w.write("vak.toml", settings)
		} else if strings.HasPrefix(step.rules, "[permissions]") {
			w.write("vak.toml", strings.Replace(settings, "[permissions]\n", step.rules, 1))
		} else {
			w.write("vak.toml", settings+step.rules)
		}
		before := offered()
		w.reload()
		if got := offered(); got != step.want {
			t.Errorf("%q: write is offered: %t", step.rules, got)
		}
		if before != step.want {
			select {
			case <-heard:
			case <-t.Context().Done():
				t.Fatalf("%q: nobody was told", step.rules)
			}
		}
	}
}
