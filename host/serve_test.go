package host

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// slowDoor answers a search when it is let, and says when one arrived.
type slowDoor struct {
	protocol.Door
	arrived chan struct{}
	let     chan struct{}
}

func (d slowDoor) Ask(ctx context.Context, _ proto.Message) (proto.Message, error) {
	d.arrived <- struct{}{}
	select {
	case <-d.let:
		return &registryv1.FindResult{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// running is a front that serves until stop, which returns what serve returned.
type running struct {
	*front
	Endpoints
	stop func() error
}

func run(t *testing.T, f *front, o ServeOptions) running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	at, done := make(chan Endpoints, 1), make(chan error, 1)
	o.Listening = func(_ context.Context, e Endpoints) { at <- e }
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	f.log, f.looked = slog.New(slog.DiscardHandler), make(chan struct{})
	if f.data == "" {
		f.data = t.TempDir()
	}
	if f.ready == nil {
		f.ready = func(context.Context) error { return nil }
	}
	go func() { done <- f.serve(ctx, o) }()
	r := running{front: f}
	select {
	case r.Endpoints = <-at:
	case err := <-done:
		t.Fatal(err)
	}
	ended := false
	r.stop = func() error { ended = true; cancel(); return <-done }
	t.Cleanup(func() {
		if !ended {
			cancel()
			<-done
		}
	})
	return r
}

func get(t *testing.T, client *http.Client, url string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestReadyWithTheFirstEpoch: /healthz at once, /readyz only with the first epoch, and again when a first look failed;
// requests that come too early wait for it.
func TestReadyWithTheFirstEpoch(t *testing.T) {
	look := make(chan error)
	door := slowDoor{arrived: make(chan struct{}, 1), let: make(chan struct{})}
	close(door.let)
	r := run(t, &front{door: door, ready: func(ctx context.Context) error {
		select {
		case err := <-look:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, ServeOptions{})
	client := newClient(t)
	if code, _ := get(t, client, r.URL+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	if code, _ := get(t, client, r.URL+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz before the first epoch: %d", code)
	}
	early := make(chan error, 1)
	go func() {
		_, err := api.Call(t.Context(), api.NewClient(api.ClientOptions{HTTP: client, Base: r.URL}).Registry.Find, &registryv1.Find{Query: "x"})
		early <- err
	}()
	look <- vakerr.New(vakerr.WorkspaceUnreadable, "gone")
	<-door.arrived
	if err := <-early; err != nil {
		t.Errorf("an early request: %v", err)
	}
	if code, _ := get(t, client, r.URL+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz after a failed look: %d", code)
	}
	look <- nil
	<-r.looked
	for !r.open.Load() {
		runtime.Gosched()
	}
	if code, _ := get(t, client, r.URL+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz with the first epoch: %d", code)
	}
}

// TestEarlyRequestsWait for the first look, but not for ever, and not when they are given up.
func TestEarlyRequestsWait(t *testing.T) {
	for name, c := range map[string]struct {
		end func(looked chan struct{}, cancel context.CancelFunc)
	}{
		"looked":   {func(looked chan struct{}, _ context.CancelFunc) { close(looked) }},
		"given up": {func(_ chan struct{}, cancel context.CancelFunc) { cancel() }},
		"too long": {func(chan struct{}, context.CancelFunc) { time.Sleep(firstTime) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var served atomic.Bool
				f := &front{looked: make(chan struct{})}
				handler := f.afterFirstLook(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Store(true) }))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", nil))
				synctest.Wait()
				if served.Load() {
					t.Fatal("an early request was served")
				}
				c.end(f.looked, cancel)
				synctest.Wait()
				if !served.Load() {
					t.Error("the request still waits")
				}
			})
		})
	}
}

// TestStopDrains: a request in flight ends with its answer; after the drain time it is given up; new ones are refused; the
// socket is gone.
func TestStopDrains(t *testing.T) {
	for name, c := range map[string]struct {
		drain   time.Duration
		let     bool
		release bool // it waits for news only
	}{
		"in time":        {time.Minute, true, false},
		"late":           {time.Millisecond, false, false},
		"waits for news": {time.Minute, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			door := slowDoor{arrived: make(chan struct{}, 1), let: make(chan struct{}, 1)}
			f := &front{door: door}
			if c.release {
				f.release = func() {
					select {
					case door.let <- struct{}{}:
					default:
					}
				}
			}
			r := run(t, f, ServeOptions{Drain: c.drain})
			client := newClient(t)
			answer := make(chan error, 1)
			go func() {
				_, err := api.Call(t.Context(), api.NewClient(api.ClientOptions{HTTP: client, Base: r.URL}).Registry.Find, &registryv1.Find{Query: "x"})
				answer <- err
			}()
			<-door.arrived
			stopped := make(chan error, 1)
			go func() { stopped <- r.stop() }()
			if c.let && !c.release {
				for !r.stopping.Load() {
					runtime.Gosched()
				}
				door.let <- struct{}{}
			}
			err := <-answer
			if c.let && err != nil || !c.let && err == nil {
				t.Errorf("the request in flight: %v", err)
			}
			if err := <-stopped; err != nil {
				t.Errorf("serve: %v", err)
			}
			if _, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://")); err == nil {
				t.Error("the listener is still open")
			}
			if _, err := os.Stat(r.Socket); !os.IsNotExist(err) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

// TestWebPagesStayOut: DNS rebinding names itself in Host, a page of another site in Origin.
func TestWebPagesStayOut(t *testing.T) {
	r := run(t, &front{}, ServeOptions{})
	client := newClient(t)
	port := r.URL[strings.LastIndex(r.URL, ":"):]
	for _, c := range []struct {
		header []string
		want   int
	}{
		{nil, 200},
		{[]string{"Host", "localhost" + port}, 200},
		{[]string{"Host", "[::1]" + port}, 200},
		{[]string{"Host", "evil.example" + port}, 403},
		{[]string{"Host", "127.0.0.1.evil.example"}, 403},
		{[]string{"Origin", "http://localhost:3000"}, 200},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", "file://localhost/x"}, 403},
	} {
		for _, path := range []string{"/healthz", "/mcp", "/vak.v1.RegistryService/Find"} {
			code, _ := get(t, client, r.URL+path, c.header...)
			if (code == 403) != (c.want == 403) {
				t.Errorf("%s with %v: %d", path, c.header, code)
			}
		}
	}
	socket := SocketClient(r.data)
	defer socket.CloseIdleConnections()
	if code, _ := get(t, socket, "http://anything/healthz"); code != 200 {
		t.Errorf("over the socket: %d", code)
	}
	if beyond := (guard{}); !beyond.mayCome("https://daemon.example:7717", "daemon.example:7717") || beyond.mayCome("http://localhost", "daemon.example:7717") {
		t.Error("beyond loopback, a page may come from the very host it asks, and from no other")
	}
}

// TestTokens: every front asks for the token of the tenant that is spoken for; the socket asks for none.
func TestTokens(t *testing.T) {
	door := slowDoor{arrived: make(chan struct{}, 100), let: make(chan struct{})}
	close(door.let)
	r := run(t, &front{door: door, tokens: tokens{any: "aaaa", tenants: map[string]string{"b": "bbbb"}}}, ServeOptions{Listen: "0.0.0.0:0"})
	r.URL = strings.Replace(r.URL, "[::]", "127.0.0.1", 1)
	client := newClient(t)
	for _, c := range []struct {
		token, tenant string
		ok            bool
	}{
		{"", "", false},
		{"aaa", "", false},
		{"aaaa", "", true},
		{"bbbb", "", false},
		{"bbbb", "b", true},
		{"aaaa", "b", false},
		{"aaaa", "c", true},
	} {
		_, err := api.Call(t.Context(), api.NewClient(api.ClientOptions{HTTP: client, Base: r.URL, Token: c.token}).Registry.Find,
			&registryv1.Find{Tenant: c.tenant, Query: "x"})
		if (err == nil) != c.ok || err != nil && vakerr.CodeOf(err) != vakerr.Unauthenticated {
			t.Errorf("vak.v1 with token %q for tenant %q: %v", c.token, c.tenant, err)
		}
		path := "/mcp"
		if c.tenant != "" {
			path += "/" + c.tenant
		}
		header := []string{}
		if c.token != "" {
			header = []string{"Authorization", "bearer " + c.token}
		}
		if code, text := get(t, client, r.URL+path, header...); (code == http.StatusUnauthorized) == c.ok {
			t.Errorf("%s with token %q: %d %s", path, c.token, code, text)
		}
	}
	socket := SocketClient(r.data)
	defer socket.CloseIdleConnections()
	if _, err := api.Call(t.Context(), api.NewClient(api.ClientOptions{HTTP: socket, Base: "http://x"}).Registry.Find, &registryv1.Find{Query: "x"}); err != nil {
		t.Errorf("over the socket: %v", err)
	}
}

func TestReadToken(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		name := filepath.Join(dir, "token")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if got, err := readToken(file(" secret\n")); got != "secret" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "\n", "two words", "two\nlines", strings.Repeat("x", maxTokenBytes+1)} {
		if _, err := readToken(file(bad)); vakerr.CodeOf(err) != vakerr.ConfigInvalid || strings.Contains(err.Error(), "words") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// TestListenBeyondLoopbackNeedsAToken, and whatever serve refuses leaves nothing open.
func TestListenBeyondLoopbackNeedsAToken(t *testing.T) {
	for address, want := range map[string]vakerr.Code{
		"0.0.0.0:0": vakerr.ConfigInvalid, ":0": vakerr.ConfigInvalid, "[::]:0": vakerr.ConfigInvalid, "example.com:0": vakerr.ConfigInvalid,
		"7717": vakerr.ConfigInvalid, "127.0.0.1:99999": vakerr.ListenFailed,
	} {
		f := &front{data: t.TempDir(), log: slog.New(slog.DiscardHandler)}
		err := f.serve(t.Context(), ServeOptions{Listen: address})
		if e := vakerr.From(err); e == nil || e.Code != want || e.Remedy == "" {
			t.Errorf("%s: %v, want %s and what to do", address, err, want)
		}
	}
	busy := httptest.NewServer(http.NotFoundHandler())
	defer busy.Close()
	f := &front{data: t.TempDir(), log: slog.New(slog.DiscardHandler)}
	if err := f.serve(t.Context(), ServeOptions{Listen: strings.TrimPrefix(busy.URL, "http://")}); vakerr.CodeOf(err) != vakerr.ListenFailed {
		t.Errorf("a taken address: %v", err)
	}
}

// TestListensOnNoMoreThanAsked: an IPv4 address opens nothing of IPv6.
func TestListensOnNoMoreThanAsked(t *testing.T) {
	r := run(t, &front{tokens: tokens{any: "t"}}, ServeOptions{Listen: "0.0.0.0:0"})
	if !r.Token || !strings.HasPrefix(r.URL, "http://0.0.0.0:") {
		t.Errorf("%+v", r.Endpoints)
	}
	for address, want := range map[string]string{"127.0.0.1:1": "tcp4", "[::1]:1": "tcp", "[::]:1": "tcp", ":1": "tcp", "localhost:1": "tcp"} {
		if got := network(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestSocket: it replaces what a dead daemon left, is for its user only, and works in a folder with a long name.
func TestSocket(t *testing.T) {
	for name, folder := range map[string]string{"short": "d", "long": strings.Repeat("d", 150)} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), folder)
			if err := os.MkdirAll(data, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(SocketPath(data), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if Answers(t.Context(), data) {
				t.Error("a dead daemon answers")
			}
			r := run(t, &front{data: data}, ServeOptions{})
			info, err := os.Stat(r.Socket)
			if err != nil || info.Mode().Perm() != 0o600 || !Answers(t.Context(), data) {
				t.Errorf("%v, %v, answers: %v", info.Mode(), err, Answers(t.Context(), data))
			}
			if err := r.stop(); err != nil || Answers(t.Context(), data) {
				t.Errorf("after the stop: %v", err)
			}
		})
	}
}

// TestServeAHost: a whole host behind its fronts, reached as the programs of its user reach it.
func TestServeAHost(t *testing.T) {
	h := startHost(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	at, done := make(chan Endpoints, 1), make(chan error, 1)
	go func() {
		done <- h.Serve(ctx, ServeOptions{Listen: "127.0.0.1:0", Listening: func(_ context.Context, e Endpoints) { at <- e }})
	}()
	e := <-at
	socket := SocketClient(h.DataDir())
	r, err := api.Call(t.Context(), api.NewClient(api.ClientOptions{HTTP: socket, Base: "http://x"}).Registry.GetReport, &registryv1.GetReport{})
	if err != nil || !strings.Contains(string(r.GetReportJson()), `"tool:read"`) || e.Socket != SocketPath(h.DataDir()) {
		t.Errorf("%v: %s", err, r.GetReportJson())
	}
	socket.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestDataFolderOfOptions(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	write := func(ws, text string) string {
		if err := os.WriteFile(filepath.Join(ws, configName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ws
	}
	plain := t.TempDir()
	usual, err := DataFolder(plain)
	if err != nil {
		t.Fatal(err)
	}
	named := write(t.TempDir(), `data = "state"`)
	broken := write(t.TempDir(), `[[[`)
	brokenUsual, err := DataFolder(broken)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(named)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Workspace: plain}, usual},
		{Options{Workspace: plain, Data: "/d"}, "/d"},
		{Options{Workspace: named}, filepath.Join(resolved, "state")},
		{Options{Workspace: named, Data: "/d"}, "/d"},
		{Options{Workspace: broken}, brokenUsual},
		{Options{Workspace: broken, Data: "/d"}, "/d"},
	} {
		if got, err := c.o.DataFolder(); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v, want %q", c.o, got, err, c.want)
		}
	}
	if _, err := (Options{Workspace: filepath.Join(plain, "none")}).DataFolder(); vakerr.CodeOf(err) != vakerr.WorkspaceUnreadable {
		t.Errorf("no workspace: %v", err)
	}
}
