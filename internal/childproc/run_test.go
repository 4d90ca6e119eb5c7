package childproc

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestRun(t *testing.T) {
	t.Run("input, output, status", func(t *testing.T) {
		r, err := Run(t.Context(), shell("cat; echo oops >&2; exit 2"), []byte("given"))
		if err != nil || string(r.Stdout) != "given" || string(r.Stderr) != "oops\n" || r.ExitCode != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.TimedOut || r.Truncated {
			t.Fatalf("%+v", r)
		}
	})
	t.Run("more output than is captured", func(t *testing.T) {
		s := shell("head -c 3000000 /dev/zero; echo end >&2")
		r, err := Run(t.Context(), s, nil)
		if err != nil || len(r.Stdout) != DefaultStdoutLimit || !r.Truncated || r.ExitCode != 0 {
			t.Fatalf("%d bytes, truncated %t, exit %d, %v", len(r.Stdout), r.Truncated, r.ExitCode, err)
		}
	})
	t.Run("input nobody reads", func(t *testing.T) {
		r, err := Run(t.Context(), shell("exit 0"), bytes.Repeat([]byte("x"), 1<<20))
		if err != nil || r.ExitCode != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
	t.Run("a background child in the group does not hold the result", func(t *testing.T) {
		r, err := Run(t.Context(), shell("sleep 1000 & echo $!"), nil)
		if err != nil || r.Took > patience {
			t.Fatalf("%+v, %v", r, err)
		}
		if pid, _ := strconv.Atoi(strings.TrimSpace(string(r.Stdout))); pid == 0 {
			t.Fatalf("stdout %q", r.Stdout)
		}
	})
	t.Run("nor does one that left the group", func(t *testing.T) {
		r, err := Run(t.Context(), shell("setsid sleep 3 & echo out"), nil)
		if err != nil || string(r.Stdout) != "out\n" {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

func TestRunKillsTheGroup(t *testing.T) {
	script := "sleep 1000 & echo $! >&2; echo started; wait"
	t.Run("on the deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		r, err := Run(ctx, shell(script), nil)
		if err != nil || !r.TimedOut || r.ExitCode != -1 || string(r.Stdout) != "started\n" {
			t.Fatalf("%+v, %v", r, err)
		}
		gone(t, r.Stderr)
	})
	t.Run("on cancel", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		// Not a deadline: the parent is canceled by hand while the child runs.
		ctx, stop := context.WithCancel(ctx)
		timer := time.AfterFunc(300*time.Millisecond, stop)
		defer timer.Stop()
		r, err := Run(ctx, shell(script), nil)
		if vakerr.CodeOf(err) != vakerr.Canceled || r.TimedOut {
			t.Fatalf("%+v, %v", r, err)
		}
		gone(t, r.Stderr)
	})
}

// gone fails if the process whose pid was printed is still alive.
func gone(t *testing.T, printed []byte) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(string(printed)))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := readStat(pid); err == nil && !exitedOrZombie(t, pid) {
		t.Fatalf("process %d of group %d is still alive", pid, s.group)
	}
}

func exitedOrZombie(t *testing.T, pid int) bool { return watchPID(t, pid)(patience) }
