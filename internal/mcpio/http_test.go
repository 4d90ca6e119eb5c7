package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestHTTPCall(t *testing.T) {
	for name, flags := range map[string][]string{
		"json": nil, "event stream": {"-sse"}, "no GET stream": {"-no-stream"}, "modern": {"-modern"}, "modern event stream": {"-modern", "-sse"},
		"unknown version": {"-protocol", "2031-01-01"}, "string ids": {"-string-ids"}, "stream with noise": {"-sse", "-list-changed-storm", "50"},
	} {
		t.Run(name, func(t *testing.T) {
			c, catalog, _, err := Connect(t.Context(), httpServer(t, flags...), Handlers{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(t.Context())
			if len(catalog.Tools) == 0 {
				t.Fatal("no tools")
			}
			if got := mustCall(t, c, "echo", `{"text":"grüße"}`); got != "grüße" {
				t.Fatalf("echo = %q", got)
			}
			if err := c.Alive(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err = call(t, c, "nope", "")
			var rpc *RPCError
			if wantCode(t, err, vakerr.ServerRejected); !errors.As(err, &rpc) || rpc.Code != -32602 {
				t.Fatalf("error %v", err)
			}
			if modern := strings.HasPrefix(name, "modern"); modern != (c.Info().Era == EraModern) {
				t.Fatalf("era %s", c.Info().Era)
			}
		})
	}
}

func TestHTTPConcurrentCalls(t *testing.T) {
	c := dial(t, httpServer(t, "-sse"), Handlers{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 10 {
				want := itoa(i)
				if got, err := call(t, c, "echo", `{"text":"`+want+`"}`); err != nil || got != want {
					t.Errorf("echo = %q, %v; want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestHTTPListChanged(t *testing.T) {
	for name, flags := range map[string][]string{
		"on the GET stream": {}, "in an answer": {"-sse"}, "by subscription": {"-modern"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := make(chan struct{}, 64)
			flags = append(flags, "-list-changed-on-call", "-list-changed-after", "500ms")
			c := dial(t, httpServer(t, flags...), Handlers{ListChanged: func() { changed <- struct{}{} }})
			mustCall(t, c, "echo", `{"text":"x"}`)
			select {
			case <-changed:
			case <-time.After(patience):
				t.Fatal("no list_changed")
			}
		})
	}
}

func TestHTTPProgress(t *testing.T) {
	c := dial(t, httpServer(t, "-sse"), Handlers{})
	client := &askedClient{}
	_, err := c.CallTool(t.Context(), "slow", json.RawMessage(`{"steps":20}`), CallOptions{Owner: "s", Client: client})
	if heard := client.heard(); err != nil || len(heard) != 20 {
		t.Fatalf("%d of 20 steps seen, %v", len(heard), err)
	}
}

func TestHTTPAuthentication(t *testing.T) {
	for _, status := range []int{401, 403} {
		_, err := Dial(t.Context(), httpServer(t, "-status", itoa(status)), Handlers{})
		e := wantCode(t, err, vakerr.Unauthenticated)
		var s *StatusError
		if !errors.As(err, &s) || s.Status != status || !strings.Contains(s.Challenge, "invalid_token") {
			t.Fatalf("%d: %+v", status, s)
		}
		if !strings.Contains(e.Reason, "authentication") || e.Remedy == "" {
			t.Fatalf("reason %q, remedy %q", e.Reason, e.Remedy)
		}
	}
}

// Many servers put a JSON-RPC error in the body of a 401; it is a lack of credentials all the same.
func TestHTTPAuthenticationWithAnErrorInTheBody(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no token"}}`)
	}))
	defer srv.Close()
	_, err := Dial(t.Context(), Spec{Name: "x", Transport: HTTP, URL: srv.URL}, Handlers{})
	wantCode(t, err, vakerr.Unauthenticated)
}

func TestHTTPRefusals(t *testing.T) {
	_, err := Dial(t.Context(), httpServer(t, "-status", "500"), Handlers{})
	wantCode(t, err, vakerr.ServerProtocol)
	_, err = Dial(t.Context(), httpServer(t, "-status", "404"), Handlers{})
	wantCode(t, err, vakerr.ServerProtocol)
	_, err = Dial(t.Context(), Spec{Name: "x", Transport: HTTP, URL: "http://127.0.0.1:1/mcp?key=secret-key"}, Handlers{})
	if e := wantCode(t, err, vakerr.ServerStartFailed); !strings.Contains(e.Reason, "127.0.0.1:1") || strings.Contains(e.Reason, "secret-key") {
		t.Fatalf("reason %q", e.Reason)
	}
	for _, bad := range []string{"", "ftp://x/", "http://", "::"} {
		_, err = Dial(t.Context(), Spec{Name: "x", Transport: HTTP, URL: bad}, Handlers{})
		wantCode(t, err, vakerr.ConfigInvalid)
	}
}

// Credentials never follow a redirect to another host.
func TestHTTPRedirect(t *testing.T) {
	var reached atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer elsewhere.Close()
	s := httpServer(t, "-redirect", elsewhere.URL)
	s.Headers = map[string]string{"Authorization": "Bearer tok-123"}
	_, err := Dial(t.Context(), s, Handlers{})
	if e := wantCode(t, err, vakerr.ServerProtocol); !strings.Contains(e.Reason, "redirect") {
		t.Fatalf("reason %q", e.Reason)
	}
	if reached.Load() {
		t.Fatal("the redirect was followed")
	}
}

// Servers say in many ways that they know a session no more; none of them is a failure of the call's own.
func TestHTTPSessionLoss(t *testing.T) {
	for _, status := range []string{"404", "400", "401", "200"} {
		t.Run(status, func(t *testing.T) {
			c := dial(t, httpServer(t, "-lose-session-after", "1", "-no-stream", "-lost-status", status), Handlers{})
			mustCall(t, c, "write", "")
			_, err := call(t, c, "write", "")
			if e := wantCode(t, err, vakerr.ServerDied); !strings.Contains(e.Reason, "session") {
				t.Fatalf("reason %q", e.Reason)
			}
			waitDone(t, c)
			wantCode(t, c.Alive(t.Context()), vakerr.ServerDied)
		})
	}
}

// V58: over HTTP, a failure below the protocol makes the next check ask the server.
func TestHTTPServerDies(t *testing.T) {
	s := httpServer(t)
	c := dial(t, s, Handlers{})
	_, err := call(t, c, "crash", "")
	wantCode(t, err, vakerr.OutcomeUnknown)
	wantCode(t, c.Alive(t.Context()), vakerr.ServerDied)
	waitDone(t, c)
	_, err = call(t, c, "write", "")
	wantCode(t, err, vakerr.ServerDied)
}

func TestHTTPCancelReachesTheServer(t *testing.T) {
	c := dial(t, httpServer(t), Handlers{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for c.Info().InFlight == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	_, err := c.CallTool(ctx, "sleep", json.RawMessage(`{"ms":60000}`), CallOptions{})
	if vakerr.CodeOf(err) != vakerr.Canceled {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for mustCall(t, c, "cancelled", "") != "1" {
		if time.Now().After(deadline) {
			t.Fatal("the cancellation does not arrive")
		}
	}
}

func TestHTTPLargeAnswer(t *testing.T) {
	for name, flags := range map[string][]string{"json": nil, "event stream": {"-sse"}} {
		t.Run(name, func(t *testing.T) {
			s := httpServer(t, flags...)
			s.Limits.Frame = 100 << 10
			c := dial(t, s, Handlers{})
			if got := mustCall(t, c, "big", `{"bytes":90000}`); len(got) != 90000 {
				t.Fatalf("%d bytes", len(got))
			}
			_, err := call(t, c, "big", `{"bytes":200000}`)
			wantCode(t, err, vakerr.TooLarge)
		})
	}
}

func TestHTTPRequestsOfTheServerAreAnswered(t *testing.T) {
	for method, want := range map[string]string{"ping": "{}", "sampling/createMessage": "cannot be attributed"} {
		c := dial(t, httpServer(t, "-ask-on-call", method, "-sse"), Handlers{})
		mustCall(t, c, "echo", `{"text":"x"}`)
		deadline := time.Now().Add(patience)
		for got := ""; !strings.Contains(got, want); got = mustCall(t, c, "asked", "") {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server saw %q, want %q", method, got, want)
			}
		}
	}
}

// Headers go with every request, the session is given back, and no connection outlives Close.
func TestHTTPHeadersAndSession(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &m)
		mu.Lock()
		seen = append(seen, strings.TrimSpace(r.Method+" "+m.Method)+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Mcp-Session-Id")+" "+r.Header.Get("MCP-Protocol-Version"))
		mu.Unlock()
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Mcp-Session-Id", "s1")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"protocolVersion":"2025-06-18"}}`)
		}
	}))
	defer srv.Close()
	c, err := Dial(t.Context(), Spec{Name: "x", Transport: HTTP, URL: srv.URL, Headers: map[string]string{"Authorization": "tok"}}, Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Request(t.Context(), "ping", nil, CallOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	got := strings.Join(seen, "\n")
	for _, want := range []string{
		"POST initialize tok  ", "POST notifications/initialized tok s1 2025-06-18", "POST ping tok s1 2025-06-18", "DELETE tok s1 2025-06-18",
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestEventReader(t *testing.T) {
	in := ": hello\n\nid: 1\nretry: 5\ndata: a\ndata: b\n\n\n\nevent: x\r\ndata:c\r\n\r\nid: 2\n\ndata: cut"
	r := newEventReader(strings.NewReader(in), 1000)
	var got []string
	for {
		e, err := r.next()
		if err != nil {
			break
		}
		got = append(got, string(e.data)+"|"+string(e.id)+"|"+string(e.plain))
	}
	want := []string{"||", "a\nb|1|id: 1\nretry: 5\n", "c||", "|2|id: 2\n", "cut||"}
	if strings.Join(got, "#") != strings.Join(want, "#") {
		t.Fatalf("%q, want %q", got, want)
	}
	if _, err := newEventReader(strings.NewReader("data: "+strings.Repeat("x", 5000)+"\n\n"), 1000).next(); !errors.Is(err, errBodyTooLarge) {
		t.Fatalf("large event: %v", err)
	}
}

// A filtered stream is the stream without its notifications and requests; nothing else is lost.
func FuzzEventFilter(f *testing.F) {
	f.Add("data: {\"method\":\"n\"}\n\nid: 3\ndata: {\"id\":1,\"result\":{}}\n\n")
	f.Add(":c\n\ndata: x")
	f.Fuzz(func(t *testing.T, in string) {
		to := &sink{}
		out, err := io.ReadAll(newEventFilter(io.NopCloser(strings.NewReader(in)), 1<<20, to))
		if err != nil {
			t.Fatal(err)
		}
		var events int
		for r := newEventReader(strings.NewReader(string(out)), 1<<20); ; events++ {
			e, err := r.next()
			if err != nil {
				break
			}
			if e.route(&sink{}) {
				t.Fatalf("a message for the router is left in %q of %q", out, in)
			}
		}
	})
}

// A server may end the stream of a call and answer on the standing one.
func TestAnswerOnTheStandingStream(t *testing.T) {
	c := dial(t, httpServer(t, "-sse", "-answer-elsewhere"), Handlers{})
	for _, word := range []string{"one", "two", "three"} {
		if got := mustCall(t, c, "echo", `{"text":"`+word+`"}`); got != word {
			t.Errorf("%s came back as %s", word, got)
		}
	}
}

// A server that speaks HTTP+SSE only is served, whether its transport is said or found out; its requests are answered, the end
// of its stream is the end of the connection, and an address on another host is not used.
func TestOldSSE(t *testing.T) {
	for name, transport := range map[string]Transport{"said": SSE, "found out": HTTP} {
		t.Run(name, func(t *testing.T) {
			s := httpServer(t, "-old-sse")
			s.Transport = transport
			changed := make(chan struct{}, 10)
			c := dial(t, s, Handlers{ListChanged: func() { changed <- struct{}{} }})
			if list, err := c.ListTools(t.Context()); err != nil || len(list.Tools) == 0 {
				t.Fatalf("%d tools, %v", len(list.Tools), err)
			}
			if got := mustCall(t, c, "echo", `{"text":"hi"}`); got != "hi" {
				t.Errorf("echo came back as %s", got)
			}
			client := &askedClient{answer: json.RawMessage(`{"roots":[]}`)}
			raw, err := c.CallTool(t.Context(), "ask", json.RawMessage(askRoots), CallOptions{Owner: "a", Client: client})
			if err != nil || text(t, raw) != `{"roots":[]}` {
				t.Errorf("asked: %s, %v", raw, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err = c.CallTool(ctx, "sleep", json.RawMessage(`{"ms":60000}`), CallOptions{})
			wantCode(t, err, vakerr.DeadlineExceeded)
			_, err = call(t, c, "crash", "")
			wantCode(t, err, vakerr.OutcomeUnknown)
			waitDone(t, c)
		})
	}
	s := httpServer(t, "-old-sse", "-elsewhere", "http://127.0.0.1:1")
	s.Transport = SSE
	_, err := Dial(t.Context(), s, Handlers{})
	wantCode(t, err, vakerr.ServerProtocol)
}
