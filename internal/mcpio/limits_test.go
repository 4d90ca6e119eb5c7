package mcpio

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

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
		_, _, _, err := Connect(t.Context(), s, Handlers{})
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
