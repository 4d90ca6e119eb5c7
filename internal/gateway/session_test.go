package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// everything is the endpoint of most tests.
var everything = endpoint{Tenant: "default", Surface: SurfaceFull}

func TestInitialize(t *testing.T) {
	for _, c := range []struct{ asked, want string }{
		{"2025-11-25", "2025-11-25"},
		{"2025-06-18", "2025-06-18"},
		{"2025-03-26", "2025-03-26"},
		{"2024-11-05", "2024-11-05"},
		{"2026-07-28", "2025-11-25"}, // has no handshake; this is the newest that has
		{"1.0", "2025-11-25"},
	} {
		t.Run(c.asked, func(t *testing.T) {
			w := newWorld()
			s, _ := attachTest(t, w, everything)
			answer := ask(t, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+c.asked+
				`","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1"}}}`)
			var got struct {
				ID     int
				Result struct {
					ProtocolVersion string
					Capabilities    map[string]any
					ServerInfo      map[string]string
					Instructions    string
				}
			}
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Fatal(err)
			}
			r := got.Result
			if r.ProtocolVersion != c.want || r.ServerInfo["version"] != "test" {
				t.Errorf("answer %s: want version %s", answer, c.want)
			}
			if diff := cmp.Diff(map[string]any{
				"extensions":  map[string]any{"io.modelcontextprotocol/skills": map[string]any{"directoryRead": true}},
				"completions": map[string]any{}, "logging": map[string]any{}, "prompts": map[string]any{"listChanged": true},
				"resources": map[string]any{"listChanged": true, "subscribe": true}, "tools": map[string]any{"listChanged": true},
			}, r.Capabilities); diff != "" {
				t.Errorf("capabilities: %s", diff)
			}
			if len(r.Instructions) == 0 || len(r.Instructions) > 2048 {
				t.Errorf("instructions have %d characters; clients cut them at 2048", len(r.Instructions))
			}
			if n := len(w.asked); n != 0 {
				t.Errorf("the handshake asked the runtime %d times; it waits for nothing", n)
			}
			ask(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			opened := commands[*sessionv1.OpenSession](w)
			if len(opened) != 1 || opened[0].GetChannel() != "mcp" || opened[0].GetAttributes()["client"] != "claude-code 2.1" {
				t.Errorf("opened %v, want one session of channel mcp that names its client", opened)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"ping", `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"p","result":{}}`},
		{"ping with a large id", `{"jsonrpc":"2.0","id":123456789012345678901,"method":"ping"}`, `{"jsonrpc":"2.0","id":123456789012345678901,"result":{}}`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"tasks/list"}`, `"code":-32601`},
		{"discover, of the stateless revisions", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`, `"code":-32601`},
		{"log level", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`, `"result":{}`},
		{"no log level", `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`, `"code":-32602`},
		{"batch", ` [{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `"code":-32600`},
		{"no JSON", `{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"no object", `7`, `"code":-32600`},
		{"no version", `{"id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"code":-32600`},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"code":-32600`},
		{"long id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, `"code":-32600`},
		{"params no object", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, `"code":-32602`},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/none"}`, ``},
		{"an answer nobody waits for", `{"jsonrpc":"2.0","id":1,"result":{}}`, ``},
		{"a cursor nobody gave", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, `"code":-32602`},
		{"call without a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, `"code":-32602`},
		{"call without params", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `"code":-32602`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := attachTest(t, newWorld(), everything)
			if got := ask(t, s, c.in); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("answer %s, want %s in it", got, c.want)
			}
		})
	}
}

// What the session gives passes byte for byte, on one line.
func TestPassedRaw(t *testing.T) {
	w := newWorld()
	w.tools["pretty"] = &tool{
		definition: `{"name":"pretty"}`,
		run: func(context.Context, json.RawMessage) (string, *vakerr.Error) {
			return "{\r\n \"content\": [ ],\n \"x\": 1.50, \"content\": []}", nil
		},
	}
	s, _ := attachTest(t, w, everything)
	if got, want := ask(t, s, `{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{}}}`),
		`{"jsonrpc":"2.0","id":"a","result":{"tools":[{"name":"echo","inputSchema":{"type":"object","$schema":"kept","x-unknown":[1,2.50]}},{"name":"pretty"}]}}`; got != want {
		t.Errorf("list\n%s, want\n%s", got, want)
	}
	if got, want := ask(t, s, callText(1, "pretty", "{}")),
		`{"jsonrpc":"2.0","id":1,"result":{   "content": [ ],  "x": 1.50, "content": []}}`; got != want {
		t.Errorf("result\n%s, want\n%s", got, want)
	}
	ask(t, s, callText(2, "echo", `{"b":1.0,  "a":"\u0041"}`))
	calls := commands[*sessionv1.Dispatch](w)
	if got, want := string(calls[len(calls)-1].GetArgumentsJson()), `{"b":1.0,  "a":"\u0041"}`; got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
	if d := calls[0]; d.GetTurnId() != "" || !strings.HasPrefix(d.GetSessionId(), "mcp-") {
		t.Errorf("dispatched %v, want no turn and a session of the front's own", d)
	}
}

// V62, V125: through the front, names that lead nowhere and every refusal are values; only a tool that is not there is an
// error of the protocol, and it says what to do, too.
func TestRefusals(t *testing.T) {
	w := newWorld()
	refused := vakerr.New(vakerr.UnknownServer, "there is no server %q", "x").WithRemedy("the servers are: github")
	w.tools["mcp"] = named("mcp")
	w.tools["mcp"].run = func(_ context.Context, a json.RawMessage) (string, *vakerr.Error) {
		if strings.Contains(string(a), "tool") {
			return "", vakerr.New(vakerr.UnknownTool, "server %q has no tool %q", "github", "y").WithRemedy("its tools are: z")
		}
		return "", refused
	}
	w.tools["silent"] = named("silent")
	w.tools["silent"].run = func(context.Context, json.RawMessage) (string, *vakerr.Error) { return `{}`, nil }
	s, _ := attachTest(t, w, everything)

	failed := func(answer string) (isError bool, code, reason, remedy string) {
		var got struct {
			Result struct {
				IsError           bool
				StructuredContent struct {
					Error struct{ Code, Reason, Remedy string }
				}
			}
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		e := got.Result.StructuredContent.Error
		return got.Result.IsError, e.Code, e.Reason, e.Remedy
	}
	if is, code, _, remedy := failed(ask(t, s, callText(1, "mcp", `{}`))); !is || code != "unknown_server" || remedy != refused.Remedy {
		t.Errorf("unknown server: isError %v, code %s, remedy %q", is, code, remedy)
	}
	if is, code, reason, remedy := failed(ask(t, s, callText(2, "mcp", `{"tool":"y"}`))); !is || code != "unknown_tool" || reason == "" || remedy != "its tools are: z" {
		t.Errorf("unknown tool of a server: isError %v, code %s, reason %q, remedy %q: mcp itself is known", is, code, reason, remedy)
	}
	var protocolError struct {
		Error struct {
			Code    int
			Message string
			Data    struct{ Code, Reason, Remedy string }
		}
	}
	answer := ask(t, s, callText(3, "nothing", `{}`))
	if err := json.Unmarshal([]byte(answer), &protocolError); err != nil {
		t.Fatal(err)
	}
	e := protocolError.Error
	if e.Code != -32602 || e.Data.Code != "unknown_tool" || e.Data.Reason == "" || e.Data.Remedy == "" || !strings.Contains(e.Message, e.Data.Remedy) {
		t.Errorf("unknown tool: %s", answer)
	}
	// The runtime is away altogether: still a value for the model.
	w.refuse = func(m proto.Message) error {
		if _, call := m.(*sessionv1.Dispatch); call {
			return errors.New("password=hunter2")
		}
		return nil
	}
	answer = ask(t, s, callText(4, "echo", `{}`))
	if is, code, _, _ := failed(answer); !is || code != "internal_error" || strings.Contains(answer, "hunter2") {
		t.Errorf("foreign error: %s", answer)
	}
	if is, code, _, _ := failed(ask(t, s, callText(5, "echo", `{"a":"`+strings.Repeat("x", maxArguments)+`"}`))); !is || code != "too_large" {
		t.Errorf("large arguments: isError %v, code %s", is, code)
	}
}

func TestSessionIsOpenedAgainAfterLossOfData(t *testing.T) {
	w := newWorld()
	s, _ := attachTest(t, w, everything)
	ask(t, s, callText(1, "echo", `{}`))
	w.mu.Lock()
	clear(w.sessions)
	w.mu.Unlock()
	if answer := ask(t, s, callText(2, "echo", `{}`)); !strings.Contains(answer, `"result":{"content"`) {
		t.Errorf("after a loss: %s", answer)
	}
	opened := commands[*sessionv1.OpenSession](w)
	if len(opened) != 2 || opened[0].GetSessionId() != opened[1].GetSessionId() {
		t.Errorf("opened %v, want the same session twice", opened)
	}
	// Only once: what is lost at once again is told.
	w.refuse = func(m proto.Message) error {
		if _, call := m.(*sessionv1.Dispatch); call {
			return vakerr.New(vakerr.SessionNotFound, "lost")
		}
		return nil
	}
	if answer := ask(t, s, callText(3, "echo", `{}`)); !strings.Contains(answer, "session_not_found") || len(commands[*sessionv1.OpenSession](w)) != 3 {
		t.Errorf("lost again: %s, opened %d times", answer, len(commands[*sessionv1.OpenSession](w)))
	}
}

// Calls run side by side, and a cancellation concerns the call of its own connection only, also where another connection
// uses the same id.
func TestCancel(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	one, _ := attachTest(t, w, everything)
	two, _ := attachTest(t, w, everything)
	answers := make(chan string, 2)
	for _, s := range []*session{one, two} {
		go func() { answers <- ask(t, s, callText(5, "wait", `{}`)) }()
		<-g.entered
	}
	if got := ask(t, one, callText(5, "echo", `{}`)); !strings.Contains(got, "in flight") {
		t.Errorf("an id that is taken: %s", got)
	}
	ask(t, one, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}`) // another id
	ask(t, one, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`)
	ask(t, one, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if got := <-answers; got != "" {
		t.Errorf("a cancelled call was answered: %s", got)
	}
	if cause := <-g.ended; vakerr.CodeOf(cause) != vakerr.Canceled {
		t.Errorf("the call ended with %v", cause)
	}
	g.release <- struct{}{}
	if got := <-answers; !strings.Contains(got, `"text":"wait"`) {
		t.Errorf("the other connection's call: %s", got)
	}
	if len(g.ended) != 0 {
		t.Error("the other connection's call was cancelled, too")
	}
}

func TestCallsInFlightAreBounded(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	s, _ := attachTest(t, w, everything)
	answers := make(chan string, maxCalls)
	for i := range maxCalls {
		go func() { answers <- ask(t, s, callText(i, "wait", `{}`)) }()
	}
	for range maxCalls {
		<-g.entered
	}
	if got := ask(t, s, callText(maxCalls, "wait", `{}`)); !strings.Contains(got, "too_many") {
		t.Errorf("one more: %s", got)
	}
	close(g.release)
	for range maxCalls {
		<-answers
	}
}

func TestCloseCancelsCallsAndWaits(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["wait"] = g.tool("wait")
	s, _ := attachTest(t, w, everything)
	answer := make(chan string, 1)
	go func() { answer <- ask(t, s, callText(1, "wait", `{}`)) }()
	<-g.entered
	s.close(errStopping)
	if got := <-answer; !strings.Contains(got, "shutting_down") {
		t.Errorf("answer %s, want the cause of the end", got)
	}
	if got := ask(t, s, callText(2, "echo", `{}`)); !strings.Contains(got, "shutting_down") {
		t.Errorf("after the end: %s", got)
	}
	if w.subscribers() != 0 {
		t.Error("the subscription outlives the connection")
	}
}

// A client that asked for progress hears that its call still runs, under its own token, and nothing after the answer.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(), newGate()
		w.tools["wait"] = g.tool("wait")
		s, _ := attachTest(t, w, everything)
		m, _ := decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":"t-1"}}}`))
		var said []string
		_, work := s.accept(m, outletFunc(func(frame []byte) { said = append(said, string(frame)) }))
		answer := make(chan string, 1)
		go func() { answer <- string(work()) }()
		time.Sleep(2*beat + time.Second)
		close(g.release)
		<-answer
		time.Sleep(10 * beat)
		want := []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t-1","progress":1e-06,"message":"still running"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t-1","progress":2e-06,"message":"still running"}}`,
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Error(diff)
		}
		s.close(errDeleted)
	})
}

func TestServerEndpoint(t *testing.T) {
	w := newWorld()
	w.tools["github__create_issue"] = named("github__create_issue")
	s, _ := attachTest(t, w, endpoint{Tenant: "default", Server: "github", Surface: SurfaceFull})
	if got := ask(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(got, `{"tools":[{"name":"create_issue"`) {
		t.Errorf("list %s, want the server's tools only, unprefixed", got)
	}
	if got := ask(t, s, callText(2, "create_issue", `{}`)); !strings.Contains(got, `"text":"github__create_issue"`) {
		t.Errorf("call: %s", got)
	}
	if got := ask(t, s, callText(3, "echo", `{}`)); !strings.Contains(got, `-32602`) {
		t.Errorf("a tool that is not the server's: %s", got)
	}
}

func TestSessionKey(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"4f3c-9A_b.1", "claude-4f3c-9A_b.1"},
		{"", "mcp-"},
		{"a b", "mcp-"},
		{"../x", "mcp-"},
		{strings.Repeat("x", 122), "mcp-"},
		{strings.Repeat("x", 121), "claude-" + strings.Repeat("x", 121)},
	} {
		got := SessionKey(c.in)
		if c.want == "mcp-" {
			if !strings.HasPrefix(got, "mcp-") || len(got) < 26 || !plain(got) || got == SessionKey(c.in) {
				t.Errorf("SessionKey(%q) = %q, want a new key", c.in, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("SessionKey(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\n","method":"ping"}`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\r\n\"id\":-1,\"method\":\"a\"}"))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, bad := decode(raw)
		var answer []byte
		if bad != nil {
			answer = bad.frame(m.ID)
		} else if m.request() {
			answer = resultFrame(m.ID, []byte(`{}`))
		}
		if answer == nil {
			return
		}
		if !json.Valid(answer) || strings.ContainsAny(string(answer), "\r\n") {
			t.Errorf("%q is answered with %q, which is no frame", raw, answer)
		}
	})
}
