package childproc

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// roleEnv makes the test binary play one of the roles below instead of running tests.
const roleEnv = "VAK_CHILDPROC_ROLE"

func TestMain(m *testing.M) {
	if role, ok := os.LookupEnv(roleEnv); ok {
		roles[role]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var roles = map[string]func(){
	// cat echoes lines until stdin ends.
	"cat": func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(in.Text())
		}
	},
	// deaf ignores the end of stdin and SIGTERM.
	"deaf": func() {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		select {}
	},
	// polite ignores the end of stdin and says goodbye on SIGTERM.
	"polite": func() {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		fmt.Fprintln(os.Stderr, "goodbye")
		os.Exit(7)
	},
	// flush ends with stdin, and writes more to stderr than a pipe holds before it does.
	"flush": func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
		fmt.Fprint(os.Stderr, strings.Repeat("x", 1<<20), "state saved")
	},
	// daemon starts a child with a grandchild through this package, prints their pids and waits to be killed.
	"daemon": func() {
		p, err := Start(Spec{
			Command: "/bin/sh", Args: []string{"-c", "sleep 1000 & echo $!; exec sleep 1000"},
			Env: Environment(nil), GroupDir: os.Getenv("VAK_CHILDPROC_DIR"),
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		var grandchild int
		_, _ = fmt.Fscan(p.Stdout(), &grandchild)
		fmt.Println(p.PID(), grandchild)
		select {}
	},
}

func role(name string, more ...string) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Owner: "test", Command: self, Env: append(Environment(more), roleEnv+"="+name)}
}

func shell(script string) Spec {
	return Spec{Owner: "test", Command: "sh", Args: []string{"-c", script}, Env: Environment(nil)}
}

func mustStart(t *testing.T, s Spec) *Process {
	t.Helper()
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		p.closePipes()
	})
	return p
}

func readLine(t *testing.T, p *Process) string {
	t.Helper()
	// A line at a time and a byte at a time, so that nothing is lost to a buffer.
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := p.Stdout().Read(b); err != nil {
			t.Fatalf("reading a line: %v after %q; stderr %q", err, line, p.StderrTail())
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// watchPID returns a function that reports whether the process has exited, waiting up to d for it. It holds a pidfd, so a
// reused pid cannot fool it.
func watchPID(t *testing.T, pid int) func(d time.Duration) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("pid %d: %v", pid, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func(d time.Duration) bool {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(d.Milliseconds()))
			if err != unix.EINTR {
				return n > 0
			}
		}
	}
}
