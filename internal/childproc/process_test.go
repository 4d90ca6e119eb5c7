package childproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
	"golang.org/x/sys/unix"
)

const patience = 20 * time.Second

func TestEchoAndListing(t *testing.T) {
	before := Count()
	p := mustStart(t, role("cat"))
	fmt.Fprintln(p.Stdin(), "hello")
	if got := readLine(t, p); got != "hello" {
		t.Fatalf("echo = %q", got)
	}
	var listed Child
	for _, c := range Live() {
		if c.PID == p.PID() {
			listed = c
		}
	}
	if Count() != before+1 || listed.Owner != "test" || listed.Started.IsZero() {
		t.Fatalf("Count() = %d, before %d; listed %+v", Count(), before, listed)
	}
	if err := p.Stop(t.Context(), Grace{Stdin: patience}); err != nil {
		t.Fatal(err)
	}
	if Count() != before || p.Exit() != (Exit{}) {
		t.Fatalf("after Stop: Count() = %d, before %d; exit %v", Count(), before, p.Exit())
	}
}

// V68: PATH plus the declared entries, and nothing the daemon's own environment holds.
func TestEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Setenv("VAK_DAEMON_SECRET", "leak")
	s := Spec{Command: "env", Env: Environment([]string{"DECLARED=yes"})}
	r, err := Run(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "PATH=" + os.Getenv("PATH") + "\nDECLARED=yes\n"
	if string(r.Stdout) != want {
		t.Fatalf("environment of the child:\n%s\nwant:\n%s", r.Stdout, want)
	}
	s = Spec{Command: "/usr/bin/env"}
	if r, err = Run(t.Context(), s, nil); err != nil || len(r.Stdout) != 0 {
		t.Fatalf("with no environment the child sees %q, %v", r.Stdout, err)
	}
}

// The pipes of a child must be blocking ones: most runtimes do not expect EAGAIN on stdin.
func TestChildPipesBlock(t *testing.T) {
	r, err := Run(t.Context(), shell(`cat /proc/self/fdinfo/0 /proc/self/fdinfo/2`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(r.Stdout)) {
		if value, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(value), 8, 64)
			if err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Fatalf("flags %s, %v: the child's end is non-blocking", value, err)
			}
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		spec   Spec
		reason string
	}{
		"empty":          {Spec{}, "no command"},
		"not on PATH":    {Spec{Command: "vak-no-such-command", Env: Environment(nil)}, "no such command on PATH"},
		"PATH of Env":    {Spec{Command: "sh", Env: []string{"PATH=" + dir}}, "no such command on PATH"},
		"missing file":   {Spec{Command: "/no/such/file"}, "does not exist"},
		"not executable": {Spec{Command: write("plain", "x", 0o600)}, "may not be executed"},
		"folder":         {Spec{Command: dir}, "is a folder"},
		"no interpreter": {Spec{Command: write("script", "#!/no/such/interpreter\n", 0o700)}, "interpreter"},
		"no format":      {Spec{Command: write("noformat", "\x00\x01\x02", 0o700)}, "no program for this machine"},
		"missing folder": {Spec{Command: "/bin/sh", Dir: filepath.Join(dir, "gone")}, "working folder"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.spec.Args = []string{"--token=hunter2"}
			_, err := Start(tt.spec)
			e := vakerr.From(err)
			if e == nil || e.Code != vakerr.ProcessStartFailed || e.Remedy == "" {
				t.Fatalf("error %v, remedy %q", err, e.Remedy)
			}
			if !strings.Contains(e.Reason, tt.reason) || !strings.Contains(e.Reason, tt.spec.Command) {
				t.Errorf("reason %q: wants %q and the command", e.Reason, tt.reason)
			}
			if strings.Contains(e.Reason+e.Remedy, "hunter2") {
				t.Errorf("the error shows arguments: %v", e)
			}
		})
	}
}

func TestRelativeCommandCountsFromDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool.sh"), []byte("#!/bin/sh\npwd\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Spec{Command: "./tool.sh", Dir: dir, Env: Environment(nil)}, nil)
	if err != nil || strings.TrimSpace(string(r.Stdout)) != dir {
		t.Fatalf("pwd = %q, %v; want %s", r.Stdout, err, dir)
	}
}

// V69: a relative command with a path part resolves against the workspace if that file exists.
func TestResolveCommand(t *testing.T) {
	ws := t.TempDir()
	if err := os.MkdirAll(filepath.Join(ws, "bin", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "bin", "srv"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"bin/srv":    filepath.Join(ws, "bin", "srv"),
		"./bin/srv":  filepath.Join(ws, "bin", "srv"),
		"bin/other":  "bin/other",
		"bin/folder": "bin/folder",
		"srv":        "srv",
		"/bin/sh":    "/bin/sh",
	} {
		if got := ResolveCommand(ws, in); got != want {
			t.Errorf("ResolveCommand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestExitIsSeenAndNamed(t *testing.T) {
	for script, want := range map[string]string{"exit 3": "exit status 3", "kill -9 $$": "signal: killed"} {
		p := mustStart(t, shell(script))
		<-p.Done()
		if got := p.Exit().String(); got != want {
			t.Errorf("%s: exit %q, want %q", script, got, want)
		}
		if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: pid %d is still there (%v): a zombie", script, p.PID(), err)
		}
	}
}

func TestStopSequence(t *testing.T) {
	t.Run("stdin close is enough, and stderr is drained to the end", func(t *testing.T) {
		p := mustStart(t, role("flush"))
		if err := p.Stop(t.Context(), Grace{Stdin: patience}); err != nil {
			t.Fatal(err)
		}
		if p.Exit() != (Exit{}) || !bytes.HasSuffix(p.StderrTail(), []byte("state saved")) {
			t.Fatalf("exit %v, stderr ends %q", p.Exit(), p.StderrTail()[max(0, len(p.StderrTail())-20):])
		}
		if n := len(p.StderrTail()); n != DefaultStderrLimit {
			t.Fatalf("%d bytes of stderr kept, want %d", n, DefaultStderrLimit)
		}
	})
	t.Run("SIGTERM follows", func(t *testing.T) {
		p := mustStart(t, role("polite"))
		readLine(t, p)
		if err := p.Stop(t.Context(), Grace{Stdin: -1, Term: patience}); err != nil {
			t.Fatal(err)
		}
		if p.Exit().Code != 7 || string(p.StderrTail()) != "goodbye\n" {
			t.Fatalf("exit %v, stderr %q", p.Exit(), p.StderrTail())
		}
	})
	t.Run("SIGKILL ends the deaf", func(t *testing.T) {
		p := mustStart(t, role("deaf"))
		readLine(t, p)
		if err := p.Stop(t.Context(), Grace{Stdin: -1, Term: -1}); err != nil {
			t.Fatal(err)
		}
		if p.Exit().Signal != syscall.SIGKILL {
			t.Fatalf("exit %v", p.Exit())
		}
	})
	t.Run("the end of ctx cuts the graces short", func(t *testing.T) {
		p := mustStart(t, role("deaf"))
		readLine(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		if err := p.Stop(ctx, Grace{Stdin: patience, Term: patience}); err != nil || time.Since(begun) > patience {
			t.Fatalf("Stop took %s, %v", time.Since(begun), err)
		}
	})
}

func TestStragglersOfTheGroupDie(t *testing.T) {
	p := mustStart(t, shell("sleep 1000 & echo $!; read line"))
	grandchild, err := strconv.Atoi(readLine(t, p))
	if err != nil {
		t.Fatal(err)
	}
	exited := watchPID(t, grandchild)
	if exited(0) {
		t.Fatal("the grandchild is gone too early")
	}
	if err := p.Stop(t.Context(), Grace{}); err != nil {
		t.Fatal(err)
	}
	if !exited(patience) {
		t.Fatalf("grandchild %d outlives its group's leader", grandchild)
	}
}

// The parent-death signal belongs to the forking thread. If Start forked on the caller's thread, the end of that thread
// would kill the child.
func TestEndOfTheCallersThreadIsNoDeathSignal(t *testing.T) {
	var p *Process
	var tid int
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		tid = unix.Gettid()
		p, err = Start(role("cat"))
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	defer func() { p.Kill(); <-p.Done(); p.closePipes() }()
	if tid != os.Getpid() { // the main thread is parked, never ended
		for deadline := time.Now().Add(patience); ; runtime.Gosched() {
			if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid)); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the thread does not end")
			}
		}
	}
	fmt.Fprintln(p.Stdin(), "alive")
	if got := readLine(t, p); got != "alive" {
		t.Fatalf("echo = %q", got)
	}
}

func TestRing(t *testing.T) {
	r := newRing(5)
	for _, step := range []struct{ in, want string }{
		{"ab", "ab"}, {"cd", "abcd"}, {"ef", "bcdef"}, {"", "bcdef"}, {"0123456789", "56789"}, {"xyz", "89xyz"},
	} {
		if n, err := r.Write([]byte(step.in)); n != len(step.in) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", step.in, n, err)
		}
		if got := string(r.bytes()); got != step.want {
			t.Fatalf("after %q: %q, want %q", step.in, got, step.want)
		}
	}
}
