package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// process is a line of /proc.
type process struct {
	pid, parent int
	state       byte // Z: it has ended, and its parent has not been told
	name        string
}

func (p process) String() string { return fmt.Sprintf("%d (%s, %c)", p.pid, p.name, p.state) }

func readProcess(pid int) (process, bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false
	}
	head, rest, found := bytes.Cut(data, []byte(") "))
	_, name, _ := bytes.Cut(head, []byte("("))
	fields := bytes.Fields(rest)
	if !found || len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return process{pid, parent, fields[0][0], string(name)}, err == nil
}

// runs reports whether a process executes; one that only waits to be reaped does not.
func runs(pid int) bool {
	p, found := readProcess(pid)
	return found && p.state != 'Z'
}

// children are the child processes of this one, zombies included.
func children(t testing.TB) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, found := readProcess(pid); found && p.parent == os.Getpid() {
			all = append(all, p)
		}
	}
	return all
}

func wantChildren(t testing.TB, n int, after string) {
	t.Helper()
	if all := children(t); len(all) != n {
		t.Errorf("after %s there are %d children, want %d: %v", after, len(all), n, all)
	}
}

// fault is a fault server that a world declares.
type fault struct {
	testing.TB
	name   string
	starts string // path of its log of starts
	calls  string // path of its log of calls
	config string // its entry of vak.toml
}

// fault declares a server. Lines follow its entry in vak.toml.
func (w *world) fault(name string, flags []string, lines ...string) fault {
	w.Helper()
	f := fault{TB: w.TB, name: name, starts: w.outside(name + ".starts"), calls: w.outside(name + ".calls")}
	command, args := faulttest.Command(w.TB, append([]string{"-start-log", f.starts, "-call-log", f.calls}, flags...)...)
	f.config = serverEntry(name, command, args, lines...)
	return f
}

func serverEntry(name, command string, args []string, lines ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return fmt.Sprintf("[mcp.servers.%s]\ncommand = %q\nargs = [%s]\n%s\n",
		name, command, strings.Join(quoted, ", "), strings.Join(lines, "\n"))
}

// toml is a vak.toml that declares these servers.
func toml(entries ...string) string { return settings + strings.Join(entries, "\n") }

func configs(servers []fault) []string {
	all := make([]string, len(servers))
	for i := range servers {
		all[i] = servers[i].config
	}
	return all
}

// pids are the processes it ever was, in order of their starts.
func (f fault) pids() []int {
	f.Helper()
	lines := faulttest.Lines(f.TB, f.starts)
	all := make([]int, len(lines))
	for i, line := range lines {
		pid, err := strconv.Atoi(line)
		if err != nil {
			f.Fatal(err)
		}
		all[i] = pid
	}
	return all
}

// started is how often it was started.
func (f fault) started() int { f.Helper(); return len(f.pids()) }

// called is how many calls reached it.
func (f fault) called() int { f.Helper(); return len(faulttest.Lines(f.TB, f.calls)) }

// kill kills its newest process with SIGKILL and returns when the last of its threads has ended, and no later.
func (f fault) kill() {
	f.Helper()
	pids := f.pids()
	last := pids[len(pids)-1]
	if err := syscall.Kill(last, syscall.SIGKILL); err != nil {
		f.Fatal(err)
	}
	err := unix.Waitid(unix.P_PID, last, nil, unix.WEXITED|unix.WNOWAIT, nil)
	if err != nil && !errors.Is(err, unix.ECHILD) { // its parent, which is this process, may have been faster
		f.Fatal(err)
	}
}
