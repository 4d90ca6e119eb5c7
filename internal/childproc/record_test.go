package childproc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A daemon that is killed leaves no direct child, and the next one sweeps up the grandchildren.
func TestKilledDaemon(t *testing.T) {
	dir := t.TempDir()
	daemon := mustStart(t, role("daemon", "VAK_CHILDPROC_DIR="+dir))
	var child, grandchild int
	if line := readLine(t, daemon); line != "" {
		if _, err := fmt.Sscan(line, &child, &grandchild); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	childExited, grandchildExited := watchPID(t, child), watchPID(t, grandchild)

	if killed, err := ReapLeftovers(dir); err != nil || len(killed) != 0 {
		t.Fatalf("the daemon lives, and yet %v was killed (%v)", killed, err)
	}
	daemon.Kill()
	<-daemon.Done()
	if !childExited(patience) {
		t.Fatal("the direct child outlives a killed daemon")
	}
	if grandchildExited(0) {
		t.Fatal("the grandchild died by itself: this test shows nothing")
	}

	killed, err := ReapLeftovers(dir)
	if err != nil || len(killed) != 1 || killed[0].PID != child {
		t.Fatalf("ReapLeftovers = %+v, %v; want the group of %d", killed, err, child)
	}
	if !grandchildExited(patience) {
		t.Fatal("the grandchild is still there")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("records left: %v", left)
	}
}

func TestRecordLivesAsLongAsTheChild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "groups")
	s := role("cat")
	s.GroupDir = dir
	p := mustStart(t, s)
	r, err := readRecord(recordPath(dir, p.PID()))
	if err != nil || r.PID != p.PID() || r.Owner != "test" || !r.groupLives() || !r.daemonLives() {
		t.Fatalf("record %+v, %v", r, err)
	}
	if err := p.Stop(t.Context(), Grace{Stdin: patience}); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("records left: %v", left)
	}
}

func TestRecordThatCannotBeWrittenFailsTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, before := role("cat"), Count()
	s.GroupDir = filepath.Join(file, "groups")
	if p, err := Start(s); err == nil {
		p.Kill()
		t.Fatal("started without a record")
	}
	if Count() != before {
		t.Fatal("the child is still there")
	}
}

// A record whose pid belongs to another process by now must not cost that process its life.
func TestStaleRecordsAreHarmless(t *testing.T) {
	p := mustStart(t, role("cat"))
	child, err := readStat(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	good := GroupRecord{
		PID: p.PID(), PGID: p.PID(), Session: child.session, Start: child.start, Boot: bootID(),
		DaemonPID: 1 << 30, DaemonStart: 1,
	}
	if !good.groupLives() {
		t.Fatal("the unchanged record must match, else this test shows nothing")
	}
	for name, change := range map[string]func(*GroupRecord){
		"another start": func(r *GroupRecord) { r.Start-- },
		"another boot":  func(r *GroupRecord) { r.Boot = "00000000-0000-0000-0000-000000000000" },
		"every process": func(r *GroupRecord) { r.PID, r.PGID = -1, -1 },
		"our own group": func(r *GroupRecord) { r.PID, r.PGID = 0, 0 },
		"init":          func(r *GroupRecord) { r.PID, r.PGID = 1, 1 },
		"another group": func(r *GroupRecord) { r.PGID = os.Getpid() },
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			change(&r)
			dir := t.TempDir()
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(recordPath(dir, p.PID()), data, 0o600); err != nil {
				t.Fatal(err)
			}
			if killed, err := ReapLeftovers(dir); err != nil || len(killed) != 0 {
				t.Fatalf("killed %+v, %v", killed, err)
			}
			fmt.Fprintln(p.Stdin(), name)
			if got := readLine(t, p); got != name {
				t.Fatalf("the stranger is dead: %q", got)
			}
		})
	}
}

func TestReapLeftoversIgnoresWhatIsNoRecord(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1.json", "note.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"pid":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if killed, err := ReapLeftovers(dir); err != nil || killed != nil {
		t.Fatalf("%v, %v", killed, err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 1 || left[0].Name() != "note.txt" {
		t.Fatalf("left %v: a torn record goes, a foreign file stays", left)
	}
	if killed, err := ReapLeftovers(filepath.Join(dir, "none")); err != nil || killed != nil {
		t.Fatalf("missing folder: %v, %v", killed, err)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) R (b) S 1 7 8 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"
	got, err := parseStat([]byte(line))
	if err != nil || got != (stat{group: 7, session: 8, start: 12345}) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "42", "42 (x) S 1", "42 (x) S 1 a 8 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) must fail", bad)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"pid":42,"pgid":42,"session":1,"start":5,"boot":"b"}`))
	f.Add([]byte(`{"pid":-1,"pgid":-1,"start":5,"boot":"b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRecord(data)
		if err == nil && (r.PGID <= 1 || r.PID != r.PGID) {
			t.Fatalf("a record that addresses group %d was accepted", r.PGID)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (x) S 1 7 8 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseStat(data) })
}
