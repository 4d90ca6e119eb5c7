package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

func TestStdioCall(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	if got := mustCall(t, c, "echo", `{"text":"grüße"}`); got != "grüße" {
		t.Fatalf("echo = %q", got)
	}
	info := c.Info()
	if info.ServerName != "faultserver" || info.Protocol != legacyVersion || info.Era != EraLegacy || info.PID == 0 ||
		info.Instructions != "be kind" || string(info.Capabilities) != `{"tools":{"listChanged":true}}` {
		t.Fatalf("info %+v", info)
	}
	_, err := call(t, c, "nope", "")
	var rpc *RPCError
	if wantCode(t, err, vakerr.ServerRejected); !errors.As(err, &rpc) || rpc.Code != -32602 {
		t.Fatalf("error %v, cause %+v", err, rpc)
	}
	if raw, err := c.CallTool(t.Context(), "fail", nil, CallOptions{}); err != nil || !strings.Contains(string(raw), `"isError":true`) {
		t.Fatalf("a tool error is a result: %s, %v", raw, err)
	}
	_, err = c.CallTool(t.Context(), "echo", json.RawMessage(`[1]`), CallOptions{})
	wantCode(t, err, vakerr.InvalidArguments)
	if n := c.Info().InFlight; n != 0 {
		t.Fatalf("%d in flight", n)
	}
}

func TestConcurrentCalls(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 20 {
				want := itoa(i) + "/" + itoa(j)
				if got, err := call(t, c, "echo", `{"text":"`+want+`"}`); err != nil || got != want {
					t.Errorf("echo = %q, %v; want %q", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// V68: the child gets PATH plus the declared entries and nothing of ours.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("VAK_DAEMON_SECRET", "leak")
	s := server(t)
	s.Env = childproc.Environment([]string{"MODE=x1"})
	c := dial(t, s, Handlers{})
	if got, want := mustCall(t, c, "env", ""), "PATH="+os.Getenv("PATH")+"\nMODE=x1"; got != want {
		t.Fatalf("environment:\n%s\nwant:\n%s", got, want)
	}
}

func TestOddButUsableServers(t *testing.T) {
	for name, flags := range map[string][]string{
		"banner":           {"-banner", "30"},
		"string ids":       {"-string-ids"},
		"id behind":        {"-id-last"},
		"garbage":          {"-garbage"},
		"stderr flood":     {"-stderr-flood", "1000000"},
		"old version":      {"-protocol", "2024-10-07"},
		"no real version":  {"-protocol", "1.0"},
		"future version":   {"-protocol", "2031-01-01"},
		"list changed":     {"-list-changed-on-call"},
		"slow start":       {"-slow-start", "300ms"},
		"error on discard": {"-error-on", "notifications/initialized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, server(t, flags...), Handlers{})
			if got := mustCall(t, c, "add", `{"a":1,"b":2}`); got != "3" {
				t.Fatalf("add = %q", got)
			}
		})
	}
}

func TestBannerIsCountedAndKept(t *testing.T) {
	c := dial(t, server(t, "-banner", "30"), Handlers{})
	junk := c.Info().Junk
	if junk.Lines != 30 || len(junk.Last) != 20 || junk.Last[19] != "banner line 30" || junk.Last[0] != "banner line 11" {
		t.Fatalf("junk %+v", junk)
	}
}

func TestEndlessJunkEndsTheConnection(t *testing.T) {
	s := server(t, "-junk")
	s.Limits.Junk = 1 << 20
	c := dial(t, s, Handlers{})
	waitDone(t, c)
	wantCode(t, c.Err(), vakerr.ServerProtocol)
	_, err := call(t, c, "echo", "")
	wantCode(t, err, vakerr.ServerProtocol)
}

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

// V60: connect and list share one limit of 10 s, a request has 60 s; both can be set.
func TestTimeLimits(t *testing.T) {
	s := Spec{}.withDefaults()
	if s.StartTimeout != 10*time.Second || s.CallTimeout != 60*time.Second {
		t.Fatalf("defaults %s, %s", s.StartTimeout, s.CallTimeout)
	}
	t.Run("no greeting", func(t *testing.T) {
		s := server(t, "-mute-on", "initialize")
		s.StartTimeout = 300 * time.Millisecond
		_, err := Dial(t.Context(), s, Handlers{})
		if e := wantCode(t, err, vakerr.ServerStartFailed); !strings.Contains(e.Reason, "300ms") {
			t.Fatalf("reason %q", e.Reason)
		}
	})
	t.Run("no list within the time of the start", func(t *testing.T) {
		s := server(t, "-mute-on", "tools/list")
		s.StartTimeout = 300 * time.Millisecond
		_, _, err := Connect(t.Context(), s, Handlers{})
		wantCode(t, err, vakerr.ServerStartFailed)
	})
	t.Run("no answer to a call", func(t *testing.T) {
		s := server(t, "-mute-on", "tools/call")
		s.CallTimeout = 100 * time.Millisecond
		c := dial(t, s, Handlers{})
		_, err := call(t, c, "echo", "")
		wantCode(t, err, vakerr.DeadlineExceeded)
		if err := c.Alive(t.Context()); err != nil {
			t.Fatalf("a slow call is no death: %v", err)
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

// A server that does not read its stdin blocks no caller beyond its context, and is killed in the end.
func TestServerThatStopsReading(t *testing.T) {
	s := server(t, "-stop-reading-on", "notifications/initialized")
	s.Limits.Stall = 2 * time.Second
	c := dial(t, s, Handlers{})
	big := `{"text":"` + strings.Repeat("x", 200<<10) + `"}`

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.CallTool(ctx, "echo", json.RawMessage(big), CallOptions{})
	wantCode(t, err, vakerr.DeadlineExceeded)
	_, err = c.CallTool(t.Context(), "echo", nil, CallOptions{Timeout: 300 * time.Millisecond})
	wantCode(t, err, vakerr.DeadlineExceeded)
	if err := c.Err(); err != nil {
		t.Fatalf("the callers were held until the server was given up: %v", err)
	}
	waitDone(t, c)
	if e := wantCode(t, c.Err(), vakerr.ServerDied); !strings.Contains(e.Reason, "does not read") {
		t.Fatalf("reason %q", e.Reason)
	}
}

func TestBacklogIsBounded(t *testing.T) {
	s := server(t, "-stop-reading-on", "notifications/initialized")
	s.Limits.Backlog = 256 << 10
	s.CallTimeout = 300 * time.Millisecond
	c := dial(t, s, Handlers{})
	big := `{"text":"` + strings.Repeat("x", 200<<10) + `"}`
	_, err := call(t, c, "echo", big)
	wantCode(t, err, vakerr.DeadlineExceeded)
	_, err = call(t, c, "echo", big)
	wantCode(t, err, vakerr.QueueFull)
}

func TestLargeFrames(t *testing.T) {
	s := server(t)
	s.Limits.Frame = 1 << 20
	t.Run("below the limit", func(t *testing.T) {
		c := dial(t, s, Handlers{})
		if got := mustCall(t, c, "big", `{"bytes":1000000}`); len(got) != 1000000 {
			t.Fatalf("%d bytes", len(got))
		}
	})
	for name, flags := range map[string][]string{"above it": nil, "above it, id behind": {"-id-last"}, "string id": {"-string-ids"}} {
		t.Run(name, func(t *testing.T) {
			s := s
			s.Args = flags
			c := dial(t, s, Handlers{})
			begun := time.Now()
			_, err := call(t, c, "big", `{"bytes":3000000}`)
			wantCode(t, err, vakerr.TooLarge)
			if time.Since(begun) > patience {
				t.Fatal("the call was not failed at once")
			}
			mustCall(t, c, "echo", `{"text":"x"}`) // and costs nobody else anything
			if n := c.Info().Junk.Oversized; n != 1 {
				t.Fatalf("%d oversized frames counted", n)
			}
		})
	}
	t.Run("our own", func(t *testing.T) {
		c := dial(t, s, Handlers{})
		_, err := call(t, c, "echo", `{"text":"`+strings.Repeat("x", 2<<20)+`"}`)
		wantCode(t, err, vakerr.TooLarge)
	})
	t.Run("300 MB cost no memory", func(t *testing.T) {
		c := dial(t, server(t), Handlers{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := call(t, c, "big", `{"bytes":300000000}`)
		wantCode(t, err, vakerr.OutcomeUnknown) // over the junk budget: the server is killed
		runtime.ReadMemStats(&after)
		if grown := int64(after.Sys) - int64(before.Sys); grown > 200<<20 {
			t.Fatalf("the process grew by %d MB", grown>>20)
		}
		wantCode(t, c.Err(), vakerr.ServerProtocol)
	})
}

func TestResultThatIsNoJSON(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	_, err := call(t, c, "nan", "")
	wantCode(t, err, vakerr.ServerProtocol)
	mustCall(t, c, "echo", `{"text":"x"}`)
}

func TestCancelReachesTheServer(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for c.Info().InFlight == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	_, err := c.CallTool(ctx, "sleep", json.RawMessage(`{"ms":60000}`), CallOptions{})
	wantCode(t, err, vakerr.Canceled)
	if got := mustCall(t, c, "cancelled", ""); got != "1" {
		t.Fatalf("%s cancellations reached the server", got)
	}
}

func TestProgressBelongsToItsCall(t *testing.T) {
	c := dial(t, server(t), Handlers{Notification: func(method string, _ json.RawMessage) {
		t.Errorf("%s went to the connection's handler", method)
	}})
	var wg sync.WaitGroup
	for steps := range 8 {
		wg.Go(func() {
			var seen []float64 // written by the read loop, read after the call: the result follows the progress
			_, err := c.CallTool(t.Context(), "slow", json.RawMessage(`{"steps":`+itoa(steps)+`}`), CallOptions{
				Meta: json.RawMessage(`{"progressToken":0,"other":1}`),
				OnProgress: func(params json.RawMessage) {
					var p struct{ Progress float64 }
					_ = json.Unmarshal(params, &p)
					seen = append(seen, p.Progress)
				},
			})
			if err != nil || len(seen) != steps || steps > 0 && seen[steps-1] != float64(steps) {
				t.Errorf("%d steps: saw %v, %v", steps, seen, err)
			}
		})
	}
	wg.Wait()
	if _, err := c.CallTool(t.Context(), "slow", json.RawMessage(`{"steps":3}`), CallOptions{Meta: json.RawMessage(`{"progressToken":1}`)}); err != nil {
		t.Fatal(err)
	}
}

func TestListChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		want  int
	}{
		"by itself": {[]string{"-list-changed-after", "1ms"}, 1},
		"storm":     {[]string{"-list-changed-storm", "500"}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{}, 1000)
			c := dial(t, server(t, tt.flags...), Handlers{ToolsChanged: func() { changed <- struct{}{} }})
			mustCall(t, c, "echo", `{"text":"x"}`)
			for range tt.want {
				select {
				case <-changed:
				case <-time.After(patience):
					t.Fatal("a notification is missing")
				}
			}
		})
	}
}

func TestRequestsOfTheServerAreAnswered(t *testing.T) {
	for method, want := range map[string]string{"ping": "{}", "sampling/createMessage": "-32601"} {
		c := dial(t, server(t, "-ask", method), Handlers{})
		deadline := time.Now().Add(patience)
		for got := ""; !strings.Contains(got, want); got = mustCall(t, c, "asked", "") {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server saw %q, want %q", method, got, want)
			}
		}
	}
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

func TestModernServer(t *testing.T) {
	changed := make(chan struct{}, 16)
	c := dial(t, server(t, "-modern", "-list-changed-after", "1ms"), Handlers{ToolsChanged: func() { changed <- struct{}{} }})
	if info := c.Info(); info.Era != EraModern || info.Protocol != modernVersion || info.ServerName != "faultserver" {
		t.Fatalf("info %+v", info)
	}
	if got := mustCall(t, c, "echo", `{"text":"x"}`); got != "x" {
		t.Fatalf("echo = %q", got)
	}
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatal("no list_changed by subscription")
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := server(t, "-modern")
	s.Era = EraModern
	if info := dial(t, s, Handlers{}).Info(); info.Era != EraModern {
		t.Fatalf("remembered era: %+v", info)
	}
	s.Era = EraLegacy
	_, err := Dial(t.Context(), s, Handlers{})
	wantCode(t, err, vakerr.ServerStartFailed)
}

func TestLogsCountStartsAndCalls(t *testing.T) {
	dir := t.TempDir()
	starts, calls := filepath.Join(dir, "starts"), filepath.Join(dir, "calls")
	c := dial(t, server(t, "-start-log", starts, "-call-log", calls), Handlers{})
	mustCall(t, c, "write", "")
	mustCall(t, c, "counter", "")
	if got := faulttest.Lines(t, calls); strings.Join(got, " ") != "write counter" {
		t.Fatalf("calls %v", got)
	}
	if got := faulttest.Lines(t, starts); len(got) != 1 || got[0] != itoa(c.Info().PID) {
		t.Fatalf("starts %v", got)
	}
}
