package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// program is a client's side of a pair of pipes, with a server at the other.
type program struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	lines *bufio.Reader
	ended chan error
}

// startProgram runs a server on pipes.
func startProgram(t *testing.T, serve func(in io.Reader, out io.Writer) error) *program {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	p := &program{t, inWrite, outRead, bufio.NewReader(outRead), make(chan error, 1)}
	go func() {
		err := serve(inRead, outWrite)
		_ = outWrite.Close()
		p.ended <- err
	}()
	return p
}

func serveWorld(t *testing.T, w *world, o StdioOptions) *program {
	o.Door, o.Version = w, "test"
	return startProgram(t, func(in io.Reader, out io.Writer) error { return ServeStdio(t.Context(), in, out, o) })
}

func (p *program) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) hear() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("heard %q, %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// leave ends the input and returns what else was said, and how the server ended.
func (p *program) leave() (string, error) {
	p.t.Helper()
	_ = p.in.Close()
	rest, err := io.ReadAll(p.lines)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(rest), <-p.ended
}

func TestStdio(t *testing.T) {
	w := newWorld()
	p := serveWorld(t, w, StdioOptions{ClaudeSession: "4f3c"})
	p.say(initText)
	if got := p.hear(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize: %s", got)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.say("")
	p.say("  \t")
	p.say(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}` + "\r")
	if got := p.hear(); !strings.Contains(got, `"id":"l","result":{"tools":[`) {
		t.Errorf("list: %s", got)
	}
	p.say(`no JSON at all`)
	if got := p.hear(); !strings.Contains(got, `"id":null,"error":{"code":-32700`) {
		t.Errorf("no JSON: %s", got)
	}
	p.say(callText(7, "echo", `{"x":1}`))
	if got := p.hear(); !strings.Contains(got, `"id":7,"result":`) {
		t.Errorf("call: %s", got)
	}
	w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
	if got := p.hear(); got != string(changedFrame(listTools)) {
		t.Errorf("told %s", got)
	}
	if rest, err := p.leave(); rest != "" || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	opened := commands[*sessionv1.OpenSession](w)
	if len(opened) != 1 || opened[0].GetSessionId() != "claude-4f3c" {
		t.Errorf("opened %v", opened)
	}
	if n := len(commands[*sessionv1.CloseSession](w)); n != 0 {
		t.Error("the session of a conversation was closed; it comes back to it")
	}
}

// At the input's end, calls in flight finish, and their answers are written.
func TestStdioDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(), newGate()
		w.tools["wait"] = g.tool("wait")
		p := serveWorld(t, w, StdioOptions{})
		p.say(callText(1, "wait", "{}"))
		<-g.entered
		time.AfterFunc(5*time.Second, func() { close(g.release) })
		if rest, err := p.leave(); !strings.Contains(rest, `"text":"wait"`) || err != nil {
			t.Errorf("heard %q, %v", rest, err)
		}
		if n := len(commands[*sessionv1.CloseSession](w)); n != 1 {
			t.Errorf("%d sessions closed; nobody can come back to this one", n)
		}
	})
}

func TestStdioDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(), newGate()
		w.tools["wait"] = g.tool("wait")
		p := serveWorld(t, w, StdioOptions{Drain: time.Second})
		p.say(callText(1, "wait", "{}"))
		<-g.entered
		began := time.Now()
		if rest, err := p.leave(); !strings.Contains(rest, `canceled`) || err != nil {
			t.Errorf("heard %q, %v", rest, err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestStdioEndsWithItsContext(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	ctx, cancel := context.WithCancel(t.Context())
	p := startProgram(t, func(in io.Reader, out io.Writer) error {
		return ServeStdio(ctx, in, out, StdioOptions{Door: w})
	})
	p.say(callText(1, "wait", "{}"))
	<-g.entered
	cancel()
	rest, err := io.ReadAll(p.lines)
	if ended := <-p.ended; ended != nil || err != nil || !strings.Contains(string(rest), "canceled") {
		t.Errorf("ended with %v, said %q, %v", ended, rest, err)
	}
}

func TestStdioClientStopsReading(t *testing.T) {
	w := newWorld()
	p := serveWorld(t, w, StdioOptions{})
	_ = p.out.Close()
	p.say(pingText)
	if err := <-p.ended; vakerr.CodeOf(err) != vakerr.Canceled {
		t.Errorf("ended with %v", err)
	}
	if w.subscribers() != 0 {
		t.Error("the subscription stays")
	}
}

// A client that holds its pipe open and reads nothing does not hold up the end.
func TestStdioClientNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := serveWorld(t, w, StdioOptions{})
		for i := range 200 {
			p.say(callText(i, "echo", `{"x":"`+strings.Repeat("x", 10_000)+`"}`))
		}
		synctest.Wait()
		_ = p.in.Close()
		if err := <-p.ended; vakerr.CodeOf(err) != vakerr.DeadlineExceeded {
			t.Errorf("ended with %v", err)
		}
		_ = p.out.Close()
	})
}

func TestStdioRefusesItsOptions(t *testing.T) {
	for want, o := range map[vakerr.Code]StdioOptions{
		vakerr.UnknownTenant:  {Tenant: "none"},
		vakerr.InvalidRequest: {Surface: "wide"},
	} {
		o.Door = newWorld()
		if err := ServeStdio(t.Context(), strings.NewReader(""), io.Discard, o); vakerr.CodeOf(err) != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

func TestFramesAreBounded(t *testing.T) {
	w := newWorld()
	p := serveWorld(t, w, StdioOptions{})
	go func() {
		_, _ = io.Copy(p.in, io.LimitReader(endless{}, maxFrame+100))
		_, _ = io.WriteString(p.in, "\n"+pingText+"\n")
	}()
	if got := p.hear(); !strings.Contains(got, "too_large") {
		t.Errorf("a frame of 16 MiB: %s", got)
	}
	if got := p.hear(); !strings.Contains(got, `"id":1,"result":{}`) {
		t.Errorf("the frame after it: %s", got)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Many answers at once are whole lines, one after another.
func TestWritesAreSerialised(t *testing.T) {
	w := newWorld()
	p := serveWorld(t, w, StdioOptions{})
	const calls = 200
	go func() {
		for i := range calls {
			p.say(callText(i, "echo", `{"x":"`+strings.Repeat("y", i*50)+`"}`))
		}
	}()
	seen := map[string]bool{}
	for range calls {
		m, bad := decode([]byte(p.hear()))
		if bad != nil {
			t.Fatal(bad.err)
		}
		seen[string(m.ID)] = true
	}
	if len(seen) != calls {
		t.Errorf("%d answers of %d", len(seen), calls)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
}

func TestMcpGoClientOverStdio(t *testing.T) {
	w := newWorld()
	p := serveWorld(t, w, StdioOptions{})
	c := client.NewClient(transport.NewIO(p.out, p.in, io.NopCloser(strings.NewReader(""))), client.WithProtocolVersion("2025-11-25"))
	told := make(chan string, 10)
	c.OnNotification(func(n mcp.JSONRPCNotification) { told <- n.Method })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
	if got := <-told; got != "notifications/tools/list_changed" {
		t.Errorf("told %s", got)
	}
	_ = c.Close()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\nccc"), 3)
	f.Add([]byte("aaaaaaaa\nb"), 2)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		most = min(max(most, 1), 1<<20)
		r := newLineReader(bytes.NewReader(in), most)
		var got [][]byte
		for {
			line, err := r.line()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil && !errors.Is(err, errFrame) {
				t.Fatal(err)
			}
			if len(line) > most+1 || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("line %q, bound %d", line, most)
			}
			got = append(got, line)
		}
		want := bytes.Split(in, []byte("\n"))
		if n := len(want); len(want[n-1]) == 0 {
			want = want[:n-1]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines of %d", len(got), len(want))
		}
	})
}

// daemon serves a world on a unix socket, and can be stopped and started again.
type daemon struct {
	t      *testing.T
	path   string
	h      *Handler
	server *http.Server
	served sync.WaitGroup
}

func startDaemon(t *testing.T, path string, w *world) *daemon {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, path: path, h: NewHandler(Options{Door: w, Version: "test"})}
	d.server = &http.Server{Handler: d.h}
	d.served.Go(func() { _ = d.server.Serve(l) })
	return d
}

// stop ends the daemon in order; crash does not let it answer.
func (d *daemon) stop()  { d.h.Close(); d.crash() }
func (d *daemon) crash() { _ = d.server.Close(); d.h.Close(); d.served.Wait() }

func bridgeTo(t *testing.T, path string, o BridgeOptions) *program {
	t.Helper()
	web := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	o.Client = &http.Client{Transport: web}
	if o.URL == "" {
		o.URL = "http://vak/mcp"
	}
	p := startProgram(t, func(in io.Reader, out io.Writer) error { return Bridge(t.Context(), in, out, o) })
	t.Cleanup(web.CloseIdleConnections)
	return p
}

func TestBridge(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "s")
	d := startDaemon(t, path, w)
	defer d.stop()
	p := bridgeTo(t, path, BridgeOptions{ClaudeSession: "c1"})
	p.say(initText)
	if got := p.hear(); !strings.Contains(got, `"id":0,"result":{"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize: %s", got)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := p.hear(); !strings.Contains(got, `"id":1,"result":{"tools":[`) {
		t.Errorf("list: %s", got)
	}
	p.say(callText(2, "echo", `{"x":1}`))
	if got := p.hear(); !strings.Contains(got, `"id":2,"result":`) {
		t.Errorf("call: %s", got)
	}
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"progressToken":1}}}`)
	if got := p.hear(); !strings.Contains(got, `"id":3,"result":`) {
		t.Errorf("call with progress, answered with events: %s", got)
	}
	p.say("[]")
	if got := p.hear(); !strings.Contains(got, `-32600`) {
		t.Errorf("batch: %s", got)
	}
	p.say(callText(4, "echo", `{"x":"`+strings.Repeat("x", DefaultMaxBody)+`"}`))
	if got := p.hear(); !strings.Contains(got, `"id":4,"error"`) || !strings.Contains(got, "too_large") {
		t.Errorf("a large call: %.300s", got)
	}
	w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
	if got := p.hear(); got != string(changedFrame(listTools)) {
		t.Errorf("told %s", got)
	}
	if rest, err := p.leave(); rest != "" || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
	if n := w.subscribers(); n != 0 {
		t.Errorf("%d MCP sessions stay at the daemon", n)
	}
	if opened := commands[*sessionv1.OpenSession](w); len(opened) != 1 || opened[0].GetSessionId() != "claude-c1" {
		t.Errorf("opened %v", opened)
	}
}

func TestBridgeCancels(t *testing.T) {
	w, g, path := newWorld(), newGate(), filepath.Join(t.TempDir(), "s")
	w.tools["wait"] = g.tool("wait")
	d := startDaemon(t, path, w)
	defer d.stop()
	p := bridgeTo(t, path, BridgeOptions{})
	p.say(initText)
	p.hear()
	p.say(callText(1, "wait", "{}"))
	<-g.entered
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-g.ended
	if rest, err := p.leave(); rest != "" || err != nil {
		t.Errorf("a cancelled call: %q, %v", rest, err)
	}
}

// The daemon is started again while a client waits, without the client doing anything.
func TestBridgeSurvivesRestart(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "s")
	d := startDaemon(t, path, w)
	p := bridgeTo(t, path, BridgeOptions{})
	p.say(initText)
	p.hear()
	p.say(callText(1, "echo", "{}"))
	p.hear()
	for range 3 {
		d.stop()
		d = startDaemon(t, path, w)
		for _, kind := range []string{listTools, listPrompts, listResources} {
			if got := p.hear(); got != string(changedFrame(kind)) {
				t.Fatalf("after a restart: %s, want that the list of %s may have changed", got, kind)
			}
		}
		p.say(callText(2, "echo", "{}"))
		if got := p.hear(); !strings.Contains(got, `"id":2,"result":{"content"`) {
			t.Errorf("a call after a restart: %s", got)
		}
	}
	// What is asked while there is no daemon waits for it.
	d.stop()
	p.say(callText(3, "echo", "{}"))
	d = startDaemon(t, path, w)
	got := []string{p.hear(), p.hear(), p.hear(), p.hear()}
	slices.Sort(got)
	if got[3] != string(changedFrame(listTools)) || !strings.Contains(got[0], `"id":3,"result":{"content"`) {
		t.Errorf("a call in between: %q", got)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
	d.stop()
	ids := map[string]bool{}
	for _, o := range commands[*sessionv1.OpenSession](w) {
		ids[o.GetSessionId()] = true
	}
	if len(ids) != 1 {
		t.Errorf("sessions %v, want the same one after each restart", ids)
	}
}

// A call whose daemon dies is answered; whether it had its effect is not known, so it is not repeated.
func TestBridgeDaemonDiesUnderCall(t *testing.T) {
	w, g, path := newWorld(), newGate(), filepath.Join(t.TempDir(), "s")
	w.tools["wait"] = g.tool("wait")
	d := startDaemon(t, path, w)
	p := bridgeTo(t, path, BridgeOptions{})
	p.say(initText)
	p.hear()
	p.say(callText(1, "wait", "{}"))
	<-g.entered
	d.crash()
	if got := p.hear(); !strings.Contains(got, `"id":1,"result":`) || !strings.Contains(got, "outcome_unknown") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("the call: %s", got)
	}
	d = startDaemon(t, path, w)
	if got := p.hear(); got != string(changedFrame(listTools)) {
		t.Errorf("after the restart: %s", got)
	}
	if n := len(commands[*sessionv1.Dispatch](w)); n != 1 {
		t.Errorf("the call was made %d times", n)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
	d.stop()
}

func TestBridgeWithoutDaemon(t *testing.T) {
	p := bridgeTo(t, filepath.Join(t.TempDir(), "none"), BridgeOptions{Patience: 50 * time.Millisecond})
	p.say(initText)
	if got := p.hear(); !strings.Contains(got, `"id":0,"error"`) || !strings.Contains(got, "vak-actors serve") {
		t.Errorf("initialize without a daemon: %s", got)
	}
	if rest, err := p.leave(); rest != "" || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

func TestBridgeIsToldNo(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "s")
	d := startDaemon(t, path, w)
	defer d.stop()
	p := bridgeTo(t, path, BridgeOptions{URL: "http://vak/mcp/none"})
	p.say(initText)
	if got := p.hear(); !strings.Contains(got, `"id":0,"error"`) || !strings.Contains(got, "unknown_tenant") {
		t.Errorf("initialize at a tenant that does not exist: %s", got)
	}
	p.say(pingText)
	if got := p.hear(); !strings.Contains(got, `"id":1,"error"`) {
		t.Errorf("a request without a session: %s", got)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
}

// Events as servers in general may write them.
func TestEventReader(t *testing.T) {
	in := ": comment\n\nid: 7\nevent: message\ndata: {\"a\":\ndata: 1}\n\nid: 8\ndata:\n\nretry: 10\ndata:x\r\n\r\nid: 9\ndata: cut off"
	r := newEventReader(strings.NewReader(in))
	var got []string
	for {
		e, err := r.next()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprintf("%s|%s", e.id, e.data))
	}
	if want := []string{`7|{"a": 1}`, `8|x`}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("id: 1\nevent: message\ndata: {}\n\n: x\n\ndata: a\ndata: b\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newEventReader(bytes.NewReader(in))
		for {
			e, err := r.next()
			if err != nil {
				return
			}
			if len(e.data) == 0 || bytes.IndexByte(e.data, '\n') >= 0 {
				t.Fatalf("event %q", e.data)
			}
		}
	})
}
