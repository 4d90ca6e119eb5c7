package mcpio

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// A server that cannot start fails the start at once, with its own last words.
func TestStartFailures(t *testing.T) {
	tests := map[string]struct {
		flags  []string
		reason []string
	}{
		"exits at once":         {[]string{"-exit-now", "2"}, []string{"exit status 2", "API_KEY is required"}},
		"dies on initialize":    {[]string{"-die-on", "initialize"}, []string{"exit status 3", "cannot handle initialize"}},
		"refuses to initialize": {[]string{"-error-on", "initialize"}, []string{"backend is down"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			_, err := Dial(t.Context(), server(t, tt.flags...), Handlers{})
			e := wantCode(t, err, vakerr.ServerStartFailed)
			for _, want := range tt.reason {
				if !strings.Contains(e.Reason, want) {
					t.Errorf("reason %q has no %q", e.Reason, want)
				}
			}
			if e.Remedy == "" || time.Since(begun) > DefaultStartTimeout/2 {
				t.Errorf("remedy %q after %s", e.Remedy, time.Since(begun))
			}
		})
	}
	t.Run("no such command", func(t *testing.T) {
		_, err := Dial(t.Context(), Spec{Name: "x", Command: "vak-no-such-command"}, Handlers{})
		if e := wantCode(t, err, vakerr.ServerStartFailed); !strings.Contains(e.Reason, "vak-no-such-command") {
			t.Fatalf("reason %q", e.Reason)
		}
	})
	if n := childproc.Count(); n != 0 {
		t.Fatalf("%d children left", n)
	}
}

// The context of Dial bounds the greeting, never the life of the process.
func TestDialContextDoesNotEndTheServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Dial(ctx, server(t), Handlers{})
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if got := mustCall(t, c, "echo", `{"text":"x"}`); got != "x" {
		t.Fatalf("echo = %q", got)
	}
}

func TestDeathInMidCall(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	others := make(chan error, 3)
	for range cap(others) {
		go func() {
			_, err := call(t, c, "sleep", `{"ms":60000}`)
			others <- err
		}()
	}
	for c.Info().InFlight < cap(others) {
		runtime.Gosched()
	}
	begun := time.Now()
	_, err := call(t, c, "crash", "")
	e := wantCode(t, err, vakerr.OutcomeUnknown)
	if !strings.Contains(e.Reason, "exit status 3") || !strings.Contains(e.Reason, "out of luck") {
		t.Fatalf("reason %q", e.Reason)
	}
	for range cap(others) {
		if err := <-others; vakerr.CodeOf(err) != vakerr.OutcomeUnknown && vakerr.CodeOf(err) != vakerr.ServerDied {
			t.Fatalf("another call in flight: %v", err)
		}
	}
	if d := time.Since(begun); d > 5*time.Second {
		t.Fatalf("the death was seen after %s", d)
	}
	// After the death nothing is sent any more, so the outcome is known: nothing happened.
	_, err = call(t, c, "write", "")
	wantCode(t, err, vakerr.ServerDied)
	wantCode(t, c.Err(), vakerr.ServerDied)
}

func TestDeathOnListHasNoUnknownOutcome(t *testing.T) {
	c := dial(t, server(t, "-die-on", "tools/list"), Handlers{})
	_, err := c.ListTools(t.Context())
	wantCode(t, err, vakerr.ServerDied)
}

// V58: a connection whose process is dead is known to be dead before it is used again.
func TestAlive(t *testing.T) {
	t.Run("living", func(t *testing.T) {
		if err := dial(t, server(t), Handlers{}).Alive(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("exited between two calls", func(t *testing.T) {
		c := dial(t, server(t, "-exit-after", "1"), Handlers{})
		mustCall(t, c, "echo", `{"text":"x"}`)
		waitDone(t, c)
		e := wantCode(t, c.Alive(t.Context()), vakerr.ServerDied)
		if !strings.Contains(e.Reason, "exit status 0") {
			t.Fatalf("reason %q", e.Reason)
		}
	})
	t.Run("killed from outside", func(t *testing.T) {
		c := dial(t, server(t), Handlers{})
		if err := syscall.Kill(c.Info().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitDone(t, c)
		wantCode(t, c.Alive(t.Context()), vakerr.ServerDied)
	})
	t.Run("asked after a long silence", func(t *testing.T) {
		s := server(t, "-mute-on", "ping")
		s.Limits.IdleCheck = time.Nanosecond
		s.CallTimeout = 200 * time.Millisecond
		c := dial(t, s, Handlers{})
		wantCode(t, c.Alive(t.Context()), vakerr.ServerDied)
		wantCode(t, c.Err(), vakerr.ServerDied)
	})
	t.Run("a server without ping is alive", func(t *testing.T) {
		s := server(t, "-error-on", "ping")
		s.Limits.IdleCheck = time.Nanosecond
		if err := dial(t, s, Handlers{}).Alive(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCloseOfAStubbornServer(t *testing.T) {
	dir := t.TempDir()
	s := server(t, "-deaf", "-grandchild")
	s.GroupDir = dir
	c := dial(t, s, Handlers{})
	grandchild, err := strconv.Atoi(mustCall(t, c, "grandchild", ""))
	if err != nil {
		t.Fatal(err)
	}
	if records, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(records) != 1 {
		t.Fatalf("records %v", records)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, c.Err(), vakerr.ServerStopped)
	_, err = call(t, c, "echo", "")
	wantCode(t, err, vakerr.ServerStopped)
	for pid, who := range map[int]string{c.Info().PID: "server", grandchild: "grandchild"} {
		if err := syscall.Kill(pid, 0); err == nil && !zombie(pid) {
			t.Errorf("the %s is still there", who)
		}
	}
	if records, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(records) != 0 {
		t.Fatalf("records %v", records)
	}
}

// zombie reports whether pid is dead and only waits for whoever inherited it.
func zombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(data), ") Z ") || strings.Contains(string(data), ") X ")
}

func TestCloseIsPoliteFirst(t *testing.T) {
	s := server(t)
	s.Limits.Grace = patience
	c := dial(t, s, Handlers{})
	begun := time.Now()
	if err := c.Close(t.Context()); err != nil || time.Since(begun) > patience/2 {
		t.Fatalf("%v after %s", err, time.Since(begun))
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal("Close must be repeatable:", err)
	}
}
