package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// asking is a tool that hands the client of its call to use, and answers with what use returns.
func asking(w *world, name string, use func(ctx context.Context, c protocol.Client) string) {
	w.tools[name] = &tool{definition: fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)}
	w.tools[name].run = func(ctx context.Context, _ json.RawMessage) (string, *vakerr.Error) {
		text := use(ctx, w.Find(w.lastClient()))
		return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text), nil
	}
}

func askRoots(ctx context.Context, c protocol.Client) string {
	result, err := c.Ask(ctx, "roots/list", nil)
	if err != nil {
		return "refused: " + err.Error()
	}
	return string(result)
}

const initializeWith = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`

// begin has a session work on a message and returns the frames on its stream, the answer last.
func begin(t *testing.T, s *session, raw string) <-chan string {
	t.Helper()
	m, bad := decode([]byte(raw))
	if bad != nil {
		t.Fatal(bad.err)
	}
	frames := make(chan string, 100)
	answer, work := s.accept(m, outletFunc(func(frame []byte) { frames <- string(frame) }))
	if work == nil {
		frames <- string(answer)
		return frames
	}
	go func() { frames <- string(work()) }()
	return frames
}

// A question of a server reaches the client of the call under an id of this connection, and its answer comes back; so does an
// error. A client that did not declare that it answers is not asked.
func TestQuestionsReachTheClient(t *testing.T) {
	w := newWorld()
	asking(w, "ask", askRoots)
	s, _ := attachTest(t, w, everything)
	if got := <-begin(t, s, callText(1, "ask", `{}`)); !strings.Contains(got, "does not support roots/list") {
		t.Errorf("undeclared: %s", got)
	}
	ask(t, s, fmt.Sprintf(initializeWith, `{"roots":{}}`))
	for answer, want := range map[string]string{
		`"result":{"roots":[{"uri":"file:///a"}]}`: `{\"roots\":[{\"uri\":\"file:///a\"}]}`,
		`"error":{"code":-1,"message":"said no"}`:  "refused: said no (code -1)",
		`"error":5`: "wrong form",
	} {
		frames := begin(t, s, callText(2, "ask", `{}`))
		var question struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal([]byte(<-frames), &question); err != nil || question.Method != "roots/list" {
			t.Fatalf("%+v, %v", question, err)
		}
		ask(t, s, `{"jsonrpc":"2.0","id":"vak-999","result":{}}`) // nobody asked that
		ask(t, s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, question.ID, answer))
		if got := <-frames; !strings.Contains(got, want) {
			t.Errorf("%s: %s", answer, got)
		}
	}
}

// A question that nobody waits for any more is withdrawn, and the end of the connection ends it.
func TestQuestionsEnd(t *testing.T) {
	w := newWorld()
	ended := errors.New("the call is over")
	asking(w, "ask", func(ctx context.Context, c protocol.Client) string {
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(ended)
		return askRoots(ctx, c)
	})
	s, _ := attachTest(t, w, everything)
	ask(t, s, fmt.Sprintf(initializeWith, `{"roots":{}}`))
	frames := begin(t, s, callText(1, "ask", `{}`))
	<-frames
	if got := <-frames; !strings.Contains(got, `"notifications/cancelled"`) || !strings.Contains(got, `"requestId":"vak-1"`) {
		t.Errorf("the client is told %s", got)
	}
	if got := <-frames; !strings.Contains(got, ended.Error()) {
		t.Errorf("answer %s", got)
	}

	asking(w, "ask", askRoots)
	frames = begin(t, s, callText(2, "ask", `{}`))
	<-frames
	s.close(errDeleted)
	if got := <-frames; !strings.Contains(got, "ended its MCP session") {
		t.Errorf("answer %s", got)
	}
}

// What a server tells in a call comes under the client's own token, and log messages only from the level it wants.
func TestTold(t *testing.T) {
	w := newWorld()
	asking(w, "tell", func(_ context.Context, c protocol.Client) string {
		c.Tell("notifications/progress", json.RawMessage(`{"progressToken":77,"progress":1,"x":[1]}`))
		c.Tell("notifications/message", json.RawMessage(`{"level":"info","data":"a"}`))
		c.Tell("notifications/message", json.RawMessage(`{"level":"error","data":"b"}`))
		return c.LogLevel()
	})
	s, _ := attachTest(t, w, everything)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell","_meta":{"progressToken":"mine"}}}`
	for i, want := range [][]string{
		{`"params":{"progress":1,"progressToken":"mine","x":[1]}`, `"data":"a"`, `"data":"b"`, `"text":""`},
		{`"params":{"progress":1,"progressToken":"mine","x":[1]}`, `"data":"b"`, `"text":"warning"`},
	} {
		if i == 1 {
			ask(t, s, `{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"warning"}}`)
		}
		frames := begin(t, s, call)
		for _, part := range want {
			if got := <-frames; !strings.Contains(got, part) {
				t.Errorf("%s, want %s", got, part)
			}
		}
	}
	if got := <-begin(t, s, callText(1, "tell", `{}`)); !strings.Contains(got, `"data":"b"`) {
		t.Errorf("progress nobody asked for: %s", got)
	}
}

// What a request carries besides reaches the server, but for what it is about.
func TestExtra(t *testing.T) {
	for params, want := range map[string]string{
		`{"name":"x"}`: ``,
		`{"name":"x","_meta":{"k":1},"arguments":{}}`:            `{"_meta":{"k":1}}`,
		`{"inputResponses":{"a":{}},"requestState":"s","uri":1}`: `{"inputResponses":{"a":{}},"requestState":"s"}`,
	} {
		if got, bad := extraOf(json.RawMessage(params)); bad != nil || string(got) != want {
			t.Errorf("%s: %s, %v", params, got, bad)
		}
	}
	for _, params := range []string{`{"_meta":1}`, `{"requestState":"` + strings.Repeat("x", maxExtra) + `"}`} {
		if _, bad := extraOf(json.RawMessage(params)); bad == nil {
			t.Errorf("%.40s is taken", params)
		}
	}
}

// A question goes through the bridge between pipes and a daemon, and so does its answer.
func TestQuestionsThroughTheBridge(t *testing.T) {
	w, path := newWorld(), filepath.Join(t.TempDir(), "s")
	asking(w, "ask", askRoots)
	d := startDaemon(t, path, w)
	p := bridgeTo(t, path, BridgeOptions{})
	p.say(fmt.Sprintf(initializeWith, `{"roots":{}}`))
	p.hear()
	p.say(callText(1, "ask", "{}"))
	if got := p.hear(); !strings.Contains(got, `"id":"vak-1","method":"roots/list"`) {
		t.Fatalf("the client is asked %s", got)
	}
	p.say(`{"jsonrpc":"2.0","id":"vak-1","result":{"roots":[{"uri":"file:///a"}]}}`)
	if got := p.hear(); !strings.Contains(got, `"id":1,"result"`) || !strings.Contains(got, `file:///a`) {
		t.Errorf("answer %s", got)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
	d.stop()
}

// A client of the stateless era on pipes is served without a handshake, by the bridge and by the runtime inside; what it
// cancels ends, and it hears of a revision that is not spoken.
func TestStatelessOnPipes(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}`
	ask := func(id int, method, version, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{`+meta+`%s}}`, id, method, version, params)
	}
	for name, start := range map[string]func(t *testing.T, w *world) *program{
		"bridge": func(t *testing.T, w *world) *program {
			path := filepath.Join(t.TempDir(), "s")
			d := startDaemon(t, path, w)
			t.Cleanup(d.stop)
			return bridgeTo(t, path, BridgeOptions{Drain: time.Hour}) // nobody waits for an open subscription
		},
		"runtime inside": func(t *testing.T, w *world) *program { return serveWorld(t, w, StdioOptions{Drain: time.Hour}) },
	} {
		t.Run(name, func(t *testing.T) {
			w, g := newWorld(), newGate()
			w.tools["wait"] = g.tool("wait")
			p := start(t, w)
			p.say(ask(1, "server/discover", "2026-07-28", ""))
			if got := p.hear(); !strings.Contains(got, `"supportedVersions":["2026-07-28"`) {
				t.Errorf("discover: %s", got)
			}
			p.say(ask(2, "server/discover", "2099-01-01", ""))
			if got := p.hear(); !strings.Contains(got, `-32022`) || !strings.Contains(got, `"requested":"2099-01-01"`) {
				t.Errorf("another revision: %s", got)
			}
			p.say(ask(3, "tools/call", "2026-07-28", `,"name":"echo","arguments":{"a":1}`))
			if got := p.hear(); !strings.Contains(got, `"id":3,"result":{"resultType":"complete","content"`) {
				t.Errorf("a call: %s", got)
			}
			p.say(ask(4, "tools/call", "2026-07-28", `,"name":"wait"`))
			<-g.entered
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
			<-g.ended
			p.say(ask(6, "subscriptions/listen", "2026-07-28", `,"notifications":{"toolsListChanged":true}`))
			if got := p.hear(); !strings.Contains(got, `subscriptions/acknowledged`) || !strings.Contains(got, `subscriptionId":6`) {
				t.Errorf("a subscription: %s", got)
			}
			w.publish(func(tools map[string]*tool) { tools["new"] = named("new") })
			if got := p.hear(); !strings.Contains(got, `tools/list_changed`) || !strings.Contains(got, `subscriptionId":6`) {
				t.Errorf("after a publication: %s", got)
			}
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`)
			p.say(ask(5, "ping", "2026-07-28", ""))
			if got := p.hear(); !strings.Contains(got, `"id":5,"error":{"code":-32601`) {
				t.Errorf("after a cancelled call: %s", got)
			}
			p.say(ask(7, "subscriptions/listen", "2026-07-28", `,"notifications":{"toolsListChanged":true}`))
			p.hear()
			if _, err := p.leave(); err != nil {
				t.Error(err)
			}
		})
	}
}
