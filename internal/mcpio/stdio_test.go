package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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
			client := &askedClient{}
			_, err := c.CallTool(t.Context(), "slow", json.RawMessage(`{"steps":`+itoa(steps)+`}`), CallOptions{
				Owner: itoa(steps), Client: client, Extra: json.RawMessage(`{"_meta":{"progressToken":0,"other":1}}`),
			})
			heard := client.heard()
			if err != nil || len(heard) != steps || steps > 0 && !strings.Contains(heard[steps-1], `"progress":`+itoa(steps)) {
				t.Errorf("%d steps: heard %v, %v", steps, heard, err)
			}
		})
	}
	wg.Wait()
	if _, err := c.CallTool(t.Context(), "slow", json.RawMessage(`{"steps":3}`), CallOptions{Extra: json.RawMessage(`{"_meta":{"progressToken":1}}`)}); err != nil {
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
			c := dial(t, server(t, tt.flags...), Handlers{ListChanged: func() { changed <- struct{}{} }})
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
	for method, want := range map[string]string{"ping": "{}", "sampling/createMessage": "cannot be attributed"} {
		c := dial(t, server(t, "-ask", method), Handlers{})
		deadline := time.Now().Add(patience)
		for got := ""; !strings.Contains(got, want); got = mustCall(t, c, "asked", "") {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server saw %q, want %q", method, got, want)
			}
		}
	}
}

func TestModernServer(t *testing.T) {
	changed := make(chan struct{}, 16)
	c := dial(t, server(t, "-modern", "-list-changed-after", "1ms"), Handlers{ListChanged: func() { changed <- struct{}{} }})
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
