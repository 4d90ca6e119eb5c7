package gateway

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// site is a handler under test, on a real listener.
type site struct {
	*Handler
	t   *testing.T
	url string
	web *http.Client
}

func newSite(t *testing.T, w *world, o Options) *site {
	t.Helper()
	o.Door, o.Version = w, "test"
	h := NewHandler(o)
	server := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); server.Close() })
	return &site{h, t, server.URL, server.Client()}
}

// header is given as pairs; a name with an empty value is left out.
type header map[string]string

// do sends a request as clients do, but for the headers given.
func (s *site) do(method, path, body string, h header) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range h {
		switch {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	resp, err := s.web.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const initText = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// open makes an MCP session and returns its id.
func (s *site) open(path string, h header) string {
	s.t.Helper()
	resp := s.do("POST", path, initText, h)
	id := resp.Header.Get("Mcp-Session-Id")
	if got := text(s.t, resp); resp.StatusCode != 200 || id == "" {
		s.t.Fatalf("initialize: %d %s", resp.StatusCode, got)
	}
	return id
}

const pingText = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// The status codes are those of MCP, exactly: clients act on them.
func TestStatusCodes(t *testing.T) {
	allow := func(tenant string, h http.Header) error {
		switch {
		case h.Get("Authorization") != "Bearer right":
			return vakerr.New(vakerr.Unauthenticated, "the request brings no valid token")
		case tenant == "other":
			return vakerr.New(vakerr.PermissionDenied, "not yours")
		}
		return nil
	}
	s := newSite(t, newWorld(), Options{Authorize: allow, MaxBody: 1 << 20})
	auth := header{"Authorization": "Bearer right"}
	id := s.open("/mcp", auth)
	deleted := s.open("/mcp", auth)
	if r := s.do("DELETE", "/mcp", "", header{"Authorization": "Bearer right", "Mcp-Session-Id": deleted}); r.StatusCode != 204 {
		t.Fatalf("DELETE: %d", r.StatusCode)
	}
	atServer := s.open("/mcp/default/server/github", auth)
	large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, c := range []struct {
		name, method, path, body string
		header                   header
		want                     int
		code                     string // of the error in the body
	}{
		{"ping", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id}, 200, ""},
		{"the default tenant by its name", "POST", "/mcp/default", pingText, header{"Mcp-Session-Id": id}, 200, ""},
		{"notification", "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header{"Mcp-Session-Id": id}, 202, ""},
		{"unknown method", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"x"}`, header{"Mcp-Session-Id": id}, 200, "invalid_request"},
		{"no session", "POST", "/mcp", pingText, nil, 400, "invalid_request"},
		{"unknown session", "POST", "/mcp", pingText, header{"Mcp-Session-Id": "x"}, 404, "session_not_found"},
		{"deleted session", "POST", "/mcp", pingText, header{"Mcp-Session-Id": deleted}, 404, "session_not_found"},
		{"deleted session, GET", "GET", "/mcp", "", header{"Mcp-Session-Id": deleted}, 404, "session_not_found"},
		{"deleted session, DELETE", "DELETE", "/mcp", "", header{"Mcp-Session-Id": deleted}, 404, "session_not_found"},
		{"a session of another endpoint", "POST", "/mcp", pingText, header{"Mcp-Session-Id": atServer}, 404, "session_not_found"},
		{"GET without a session", "GET", "/mcp", "", nil, 400, "invalid_request"},
		{"DELETE without a session", "DELETE", "/mcp", "", nil, 400, "invalid_request"},
		{"known version", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-06-18"}, 200, ""},
		{"unknown version", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2020-01-01"}, 400, "invalid_request"},
		{"stateless version", "POST", "/mcp", pingText, header{"Mcp-Protocol-Version": "2026-07-28"}, 400, "invalid_request"},
		{"discover without a version", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, nil, 400, "invalid_request"},
		{"foreign origin", "POST", "/mcp", initText, header{"Origin": "http://evil.example"}, 403, "permission_denied"},
		{"null origin", "POST", "/mcp", initText, header{"Origin": "null"}, 403, "permission_denied"},
		{"an origin that looks near", "POST", "/mcp", initText, header{"Origin": "http://localhost.evil.example"}, 403, "permission_denied"},
		{"origin of this machine", "POST", "/mcp", initText, header{"Origin": "http://localhost:6274"}, 200, ""},
		{"foreign host", "POST", "/mcp", initText, header{"Host": "evil.example:7717"}, 403, "permission_denied"},
		{"host by name", "POST", "/mcp", initText, header{"Host": "localhost:7717"}, 200, ""},
		{"host by IPv6 address", "POST", "/mcp", initText, header{"Host": "[::1]:7717"}, 200, ""},
		{"too large, announced", "POST", "/mcp", large, header{"Mcp-Session-Id": id}, 413, "too_large"},
		{"content type", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Content-Type": "text/plain"}, 415, "invalid_request"},
		{"content type with charset", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Content-Type": "application/json; charset=utf-8"}, 200, ""},
		{"no content type", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Content-Type": ""}, 415, "invalid_request"},
		{"not acceptable", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Accept": "text/html"}, 406, "invalid_request"},
		{"everything acceptable", "POST", "/mcp", pingText, header{"Mcp-Session-Id": id, "Accept": "*/*"}, 200, ""},
		{"GET not acceptable", "GET", "/mcp", "", header{"Mcp-Session-Id": id, "Accept": "application/json"}, 406, "invalid_request"},
		{"no credential", "POST", "/mcp", initText, header{"Authorization": ""}, 401, "unauthenticated"},
		{"wrong credential", "POST", "/mcp", pingText, header{"Authorization": "Bearer wrong", "Mcp-Session-Id": id}, 401, "unauthenticated"},
		{"another's tenant", "POST", "/mcp/other", initText, nil, 403, "permission_denied"},
		{"unknown tenant", "POST", "/mcp/none", initText, nil, 404, "unknown_tenant"},
		{"unknown path", "POST", "/mcp/default/x", initText, nil, 404, "invalid_request"},
		{"path of a server without a name", "POST", "/mcp/default/server/", initText, nil, 404, "invalid_request"},
		{"unknown surface", "POST", "/mcp?surface=wide", initText, nil, 400, "invalid_request"},
		{"method", "PUT", "/mcp", pingText, header{"Mcp-Session-Id": id}, 405, "invalid_request"},
		{"batch", "POST", "/mcp", "[" + pingText + "]", header{"Mcp-Session-Id": id}, 400, "invalid_request"},
		{"no JSON", "POST", "/mcp", "{", header{"Mcp-Session-Id": id}, 400, "invalid_request"},
		{"a name for the runtime's session that is none", "POST", "/mcp", initText, header{"Vak-Session-Key": "../x"}, 400, "invalid_request"},
		{"resumption of nothing", "GET", "/mcp", "", header{"Mcp-Session-Id": id, "Last-Event-ID": "x"}, 400, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := header{"Authorization": "Bearer right"}
			maps.Copy(h, c.header)
			r := s.do(c.method, c.path, c.body, h)
			got := text(t, r)
			if r.StatusCode != c.want {
				t.Errorf("%d %s, want %d", r.StatusCode, got, c.want)
			}
			var body struct {
				Error struct {
					Code int
					Data struct{ Code, Reason string }
				}
			}
			if len(got) > 0 && json.Unmarshal([]byte(got), &body) != nil || body.Error.Data.Code != c.code {
				t.Errorf("body %s, want the code %q", got, c.code)
			}
			if auth := r.Header.Get("WWW-Authenticate"); (auth != "") != (c.want == 401) {
				t.Errorf("%d with WWW-Authenticate %q", r.StatusCode, auth)
			}
			switch {
			case c.want == 404 && c.code == "session_not_found" && body.Error.Code != -32001,
				c.name == "stateless version" && body.Error.Code != -32602,
				c.name == "discover without a version" && body.Error.Code != -32602:
				t.Errorf("JSON-RPC code %d", body.Error.Code)
			}
		})
	}
	t.Run("too large, in chunks", func(t *testing.T) {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", io.MultiReader(strings.NewReader(large)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer right")
		resp, err := s.web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("%d", resp.StatusCode)
		}
	})
}

// A session is its owner's: whoever brings another credential, or comes to another tenant, is told that there is none.
func TestSessionsBelongToWhoOpenedThem(t *testing.T) {
	s := newSite(t, newWorld(), Options{})
	id := s.open("/mcp", header{"Authorization": "Bearer one"})
	for name, c := range map[string]struct {
		path, auth string
		want       int
	}{
		"owner":          {"/mcp", "Bearer one", 200},
		"another":        {"/mcp", "Bearer two", 404},
		"nobody":         {"/mcp", "", 404},
		"another tenant": {"/mcp/other", "Bearer one", 404},
	} {
		if r := s.do("POST", c.path, pingText, header{"Mcp-Session-Id": id, "Authorization": c.auth}); r.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", name, r.StatusCode, c.want)
		}
	}
}

func TestAllowedHostsAndOrigins(t *testing.T) {
	for _, c := range []struct {
		hosts, origins []string
		host, origin   string
		want           int
	}{
		{[]string{"vak.example"}, nil, "vak.example:80", "", 200},
		{[]string{"vak.example"}, nil, "VAK.example", "https://vak.example", 200},
		{[]string{"vak.example"}, nil, "127.0.0.1", "", 403},
		{[]string{"vak.example"}, nil, "vak.example", "https://x.vak.example", 403},
		{[]string{"*"}, nil, "any.example", "", 200},
		{[]string{"*"}, nil, "any.example", "https://any.example", 403},
		{[]string{"*"}, []string{"https://any.example"}, "any.example", "https://any.example", 200},
		{nil, []string{"https://app.example"}, "localhost", "https://app.example", 200},
		{nil, []string{"https://app.example"}, "localhost", "http://app.example", 403},
	} {
		s := newSite(t, newWorld(), Options{AllowedHosts: c.hosts, AllowedOrigins: c.origins})
		if r := s.do("POST", "/mcp", initText, header{"Host": c.host, "Origin": c.origin}); r.StatusCode != c.want {
			t.Errorf("hosts %v, origins %v: host %q with origin %q: %d, want %d", c.hosts, c.origins, c.host, c.origin, r.StatusCode, c.want)
		}
	}
}

// Over a unix socket the file mode is the authorization, and names of hosts mean nothing.
func TestUnixSocket(t *testing.T) {
	h := NewHandler(Options{Door: newWorld(), Authorize: func(string, http.Header) error {
		return vakerr.New(vakerr.Unauthenticated, "the request brings no valid token")
	}})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(func() { h.Close(); server.Close() })
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	defer web.CloseIdleConnections()
	s := &site{h, t, "http://vak", web}
	s.open("/mcp", nil)
}

func TestSessionsAreBoundedAndEnd(t *testing.T) {
	w := newWorld()
	s := newSite(t, w, Options{MaxSessions: 2})
	one := s.open("/mcp", nil)
	s.open("/mcp", nil)
	r := s.do("POST", "/mcp", initText, nil)
	if got := text(t, r); r.StatusCode != 503 || !strings.Contains(got, "too_many") || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", r.StatusCode, got)
	}
	if n := w.subscribers(); n != 2 {
		t.Errorf("%d subscriptions for 2 sessions", n)
	}
	text(t, s.do("POST", "/mcp", listText, header{"Mcp-Session-Id": one}))
	s.do("DELETE", "/mcp", "", header{"Mcp-Session-Id": one})
	closed := commands[*sessionv1.CloseSession](w)
	opened := commands[*sessionv1.OpenSession](w)
	if len(closed) != 1 || len(opened) != 1 || closed[0].GetSessionId() != opened[0].GetSessionId() {
		t.Errorf("opened %v, closed %v: nobody can come back to the runtime's session", opened, closed)
	}
	s.open("/mcp", nil)
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(), newGate()
		w.tools["wait"] = g.tool("wait")
		h := NewHandler(Options{Door: w, SessionIdleTTL: time.Hour})
		post := func(id, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Mcp-Session-Id", id)
			out := httptest.NewRecorder()
			h.ServeHTTP(out, r)
			return out
		}
		idle := post("", initText).Header().Get("Mcp-Session-Id")
		used := post("", initText).Header().Get("Mcp-Session-Id")
		named := post("", initText).Header().Get("Mcp-Session-Id")
		post(idle, listText)
		answer := make(chan *httptest.ResponseRecorder, 1)
		go func() { answer <- post(named, callText(1, "wait", "{}")) }()
		for range 5 {
			time.Sleep(30 * time.Minute)
			if got := post(used, pingText).Code; got != 200 {
				t.Errorf("a session that is used: %d", got)
			}
		}
		if got := post(idle, pingText).Code; got != 404 {
			t.Errorf("a session that was idle for long: %d", got)
		}
		if n := len(commands[*sessionv1.CloseSession](w)); n != 1 {
			t.Errorf("%d sessions of the runtime were closed", n)
		}
		close(g.release)
		if got := (<-answer).Body.String(); !strings.Contains(got, `"text":"wait"`) {
			t.Errorf("a call of two hours: %s", got)
		}
		h.Close()
	})
}

func TestMcpSessionIDs(t *testing.T) {
	s := newSite(t, newWorld(), Options{})
	seen := map[string]bool{}
	for range 20 {
		id := s.open("/mcp", nil)
		if len(id) < 26 || seen[id] { // 26 characters of base 32: 130 bits
			t.Errorf("id %q", id)
		}
		for _, c := range id {
			if c < 0x21 || c > 0x7e {
				t.Errorf("id %q is not visible ASCII", id)
			}
		}
		seen[id] = true
	}
	if n := len(rand.Text()); n < 26 {
		t.Errorf("rand.Text has %d characters", n)
	}
}

// The runtime's session can be named, by a client that attaches for another program; it then stays.
func TestSessionKeyHeader(t *testing.T) {
	w := newWorld()
	s := newSite(t, w, Options{})
	id := s.open("/mcp", header{"Vak-Session-Key": "claude-1"})
	text(t, s.do("POST", "/mcp", callText(1, "echo", "{}"), header{"Mcp-Session-Id": id}))
	s.do("DELETE", "/mcp", "", header{"Mcp-Session-Id": id})
	opened := commands[*sessionv1.OpenSession](w)
	if len(opened) != 1 || opened[0].GetSessionId() != "claude-1" || len(commands[*sessionv1.CloseSession](w)) != 0 {
		t.Errorf("asked %v", w.asked)
	}
}

// Closing the handler ends streams and calls, and answers what comes later with 503.
func TestClose(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	s := newSite(t, w, Options{})
	id := s.open("/mcp", nil)
	stream := s.do("GET", "/mcp", "", header{"Mcp-Session-Id": id})
	answer := make(chan string, 1)
	go func() {
		answer <- text(t, s.do("POST", "/mcp", callText(1, "wait", "{}"), header{"Mcp-Session-Id": id}))
	}()
	<-g.entered
	s.Close()
	if got := <-answer; !strings.Contains(got, "shutting_down") {
		t.Errorf("the call: %s", got)
	}
	text(t, stream) // ends
	if r := s.do("POST", "/mcp", initText, nil); r.StatusCode != 503 {
		t.Errorf("afterwards: %d", r.StatusCode)
	}
	if w.subscribers() != 0 || len(commands[*sessionv1.CloseSession](w)) != 0 {
		t.Errorf("%d subscriptions stay, %d sessions were closed that clients come back to",
			w.subscribers(), len(commands[*sessionv1.CloseSession](w)))
	}
}

// sse reads the events of a response.
type sse struct {
	t *testing.T
	r eventReader
}

func events(t *testing.T, r *http.Response) sse {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); r.StatusCode != 200 || kind != "text/event-stream" || r.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%d, %v, want an event stream that no proxy holds back", r.StatusCode, r.Header)
	}
	return sse{t, newEventReader(r.Body)}
}

func (s sse) next() sentEvent {
	s.t.Helper()
	e, err := s.r.next()
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

func TestEventStreamAnswer(t *testing.T) {
	s := newSite(t, newWorld(), Options{})
	id := s.open("/mcp", nil)
	withToken := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":0}}}`
	for name, c := range map[string]struct{ body, accept, want string }{
		"json by default":                         {callText(1, "echo", "{}"), "", "application/json"},
		"events where asked":                      {pingText, "text/event-stream", "text/event-stream"},
		"json for progress that there is none of": {withToken, "", "application/json"},
		"no events where not read":                {withToken, "application/json", "application/json"},
	} {
		h := header{"Mcp-Session-Id": id}
		if c.accept != "" {
			h["Accept"] = c.accept
		}
		r := s.do("POST", "/mcp", c.body, h)
		got := text(t, r)
		if kind := r.Header.Get("Content-Type"); kind != c.want || !strings.Contains(got, `{"jsonrpc":"2.0","id":1,"result":`) {
			t.Errorf("%s: %s %s", name, kind, got)
		}
		if c.want == "text/event-stream" && (!strings.HasPrefix(got, "id: ") || !strings.HasSuffix(got, "\n\n")) {
			t.Errorf("%s: %q is no event", name, got)
		}
	}
}

func TestStandingStream(t *testing.T) {
	w := newWorld()
	s := newSite(t, w, Options{})
	id := s.open("/mcp", nil)
	text(t, s.do("POST", "/mcp", listText, header{"Mcp-Session-Id": id}))
	first := events(t, s.do("GET", "/mcp", "", header{"Mcp-Session-Id": id}))
	w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
	seen := first.next()
	if string(seen.data) != string(changedFrame(listTools)) {
		t.Fatalf("told %s", seen.data)
	}
	// Another takes over; the first ends.
	second := events(t, s.do("GET", "/mcp", "", header{"Mcp-Session-Id": id}))
	if _, err := first.r.next(); err == nil {
		t.Error("the stream that was taken over goes on")
	}
	text(t, s.do("POST", "/mcp", listText, header{"Mcp-Session-Id": id}))
	w.publish(func(tools map[string]*tool) { delete(tools, "new") })
	if e := second.next(); e.id == seen.id {
		t.Errorf("event %s came twice", e.id)
	}
	// A client that saw the first only, and says so, is told of the second.
	third := events(t, s.do("GET", "/mcp", "", header{"Mcp-Session-Id": id, "Last-Event-ID": seen.id}))
	if e := third.next(); string(e.data) != string(changedFrame(listTools)) || e.id == seen.id {
		t.Errorf("resumed with %v", e)
	}
}

// A client that leaves has cancelled nothing; it comes back with Last-Event-ID for the answer, and gets what belongs to
// that stream only.
func TestAnswerIsResumed(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	s := newSite(t, w, Options{})
	id := s.open("/mcp", nil)
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/mcp", strings.NewReader(callText(1, "wait", "{}")))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", id)
	resp, err := s.web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	leave()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	resumed := events(t, s.do("GET", "/mcp", "", header{"Mcp-Session-Id": id, "Last-Event-ID": "1-0"}))
	close(g.release)
	if e := resumed.next(); !strings.Contains(string(e.data), `"text":"wait"`) || e.id != "1-1" {
		t.Errorf("resumed with %v", e)
	}
	if _, err := resumed.r.next(); err == nil {
		t.Error("the stream goes on after the answer")
	}
	if len(g.ended) != 0 {
		t.Error("the call was cancelled when its client left")
	}
}

func TestSilentStreamsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(Options{Door: newWorld()})
		near, far := net.Pipe()
		l := &oneConn{conn: far, addr: near.LocalAddr(), done: make(chan struct{})}
		server := &http.Server{Handler: h}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(l) }()
		in := bufio.NewReader(near)
		send := func(head, body string) *http.Response {
			_, _ = fmt.Fprintf(near, "%s\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		r := send("POST /mcp HTTP/1.1", initText)
		_, _ = io.Copy(io.Discard, r.Body)
		r = send("GET /mcp HTTP/1.1\r\nMcp-Session-Id: "+r.Header.Get("Mcp-Session-Id"), "")
		began := time.Now()
		line, err := bufio.NewReader(r.Body).ReadString('\n')
		if took := time.Since(began); err != nil || !strings.HasPrefix(line, ":") || took != keepAlive {
			t.Errorf("read %q, %v after %v", line, err, took)
		}
		h.Close()
		_ = near.Close()
		_ = server.Close()
		<-served
	})
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn net.Conn
	addr net.Addr
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { close(l.done); return nil }
func (l *oneConn) Addr() net.Addr { return l.addr }

// mcp-go's client, a second reading of the protocol, lists, calls and hears of changes.
func TestMcpGoClient(t *testing.T) {
	for _, listening := range []bool{false, true} {
		t.Run(fmt.Sprintf("listening %v", listening), func(t *testing.T) {
			w := newWorld()
			s := newSite(t, w, Options{})
			var options []transport.StreamableHTTPCOption
			if listening {
				//lint:ignore SA1019 the stream of the revisions that clients speak is what is tested
				options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // as above
			}
			c, err := client.NewStreamableHttpClient(s.url+"/mcp", append(options, transport.WithHTTPBasicClient(s.web))...)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			told := make(chan string, 10)
			c.OnNotification(func(n mcp.JSONRPCNotification) { told <- n.Method })
			ctx := t.Context()
			if err := c.Start(ctx); err != nil {
				t.Fatal(err)
			}
			init := mcp.InitializeRequest{}
			init.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
			init.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
			got, err := c.Initialize(ctx, init)
			if err != nil {
				t.Fatal(err)
			}
			if got.ProtocolVersion != mcp.LATEST_LEGACY_PROTOCOL_VERSION || got.ServerInfo.Name != "vak-actors" {
				t.Errorf("initialize: %+v", got)
			}
			list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "echo" {
				t.Fatalf("list: %+v, %v", list, err)
			}
			call := mcp.CallToolRequest{}
			call.Params.Name, call.Params.Arguments = "echo", map[string]any{"x": 1}
			result, err := c.CallTool(ctx, call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]mcp.Content{mcp.TextContent{Type: "text", Text: `{"x":1}`}}, result.Content); diff != "" {
				t.Error(diff)
			}
			call.Params.Name = "nothing"
			if _, err := c.CallTool(ctx, call); err == nil || !strings.Contains(err.Error(), "there is no tool") {
				t.Errorf("unknown tool: %v", err)
			}
			if listening {
				w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
				if method := <-told; method != "notifications/tools/list_changed" {
					t.Errorf("told %s", method)
				}
			}
		})
	}
}
