package lifecycle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"

	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// talker is an MCP client over HTTP that answers what it is asked.
type talker struct {
	*fronts
	path    string
	session string
	answers map[string]string // by method: the rest of the answer, "result":… or "error":…
	told    []string          // what it was told beside answers
}

func (f *fronts) talker(path, capabilities string, answers map[string]string) *talker {
	f.Helper()
	c := &talker{fronts: f, path: path, answers: answers}
	c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities +
		`,"clientInfo":{"name":"talker","version":"1"}}}`)
	return c
}

// post sends one message.
func (c *talker) post(body string) *http.Response {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.url+c.path, strings.NewReader(body))
	c.must(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	answer, err := c.client.Do(r)
	c.must(err)
	if c.session == "" {
		c.session = answer.Header.Get("Mcp-Session-Id")
	}
	return answer
}

// say sends a request, answers what comes before its answer, and returns that.
func (c *talker) say(body string) string {
	c.Helper()
	answer := c.post(body)
	defer answer.Body.Close()
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(answer.Body)
		c.must(err)
		return string(text)
	}
	last := ""
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is {
			continue
		}
		if c.hear(data) {
			last = data
		}
	}
	return last
}

// hear takes one message in and reports whether it is an answer.
func (c *talker) hear(data string) bool {
	c.Helper()
	var m struct {
		ID     json.RawMessage
		Method string
	}
	c.must(json.Unmarshal([]byte(data), &m))
	switch {
	case m.Method == "":
		return true
	case m.ID == nil:
		c.told = append(c.told, data)
	default:
		c.told = append(c.told, data)
		_ = c.post(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + c.answers[m.Method] + `}`).Body.Close()
	}
	return false
}

func (c *talker) call(tool, arguments string) string {
	c.Helper()
	return c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{"progressToken":7}}}`)
}

func (c *talker) ask(method, params string) string {
	c.Helper()
	return c.say(`{"jsonrpc":"2.0","id":3,"method":"` + method + `","params":` + params + `}`)
}

func (w *world) expect(what, got string, parts ...string) {
	w.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			w.Errorf("%s: %s; want %s", what, got, p)
		}
	}
}

// What a server asks and tells while a call runs reaches the client that made the call, on both routes, and nobody else.
func TestServersReachTheClientOfTheCall(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", toml(w.fault("fault", []string{"-features"}).config))
	w.start(hostOptions())
	f := w.fronts()
	able := `{"elicitation":{},"sampling":{},"roots":{}}`
	answers := map[string]string{
		"elicitation/create":     `"result":{"action":"accept","content":{"name":"Ada"}}`,
		"sampling/createMessage": `"error":{"code":-1,"message":"the user said no"}`,
	}
	for route, prefix := range map[string]string{"/mcp": "fault__", "/mcp/default/server/fault": ""} {
		c := f.talker(route, able, answers)
		w.expect(route, c.call(prefix+"ask", `{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object"}}}`), `Ada`)
		w.expect(route, c.call(prefix+"ask", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`), `the user said no`)
		w.expect(route, strings.Join(c.told, "\n"), `"message":"who?"`, `"maxTokens":1`)

		c.told = nil
		c.call(prefix+"slow", `{"steps":3}`)
		c.call(prefix+"log", `{"text":"hello there"}`)
		w.expect(route, strings.Join(c.told, "\n"), `"progress":3,"progressToken":7`, `hello there`)
		c.told = nil
		w.expect(route, c.ask("logging/setLevel", `{"level":"error"}`), `"result":{}`)
		c.call(prefix+"log", `{"text":"hello again"}`)
		if len(c.told) > 0 {
			w.Errorf("%s: told %s", route, c.told)
		}
		w.expect(route, c.call(prefix+"level", `{}`), `error`)

		deaf := f.talker(route, `{}`, nil)
		w.expect(route, deaf.call(prefix+"ask", `{"method":"elicitation/create"}`), `does not support elicitation/create`)
	}
}

// Resources, prompts and completions of servers pass the same gate as their tools: seen once the server was used, refused
// when it is revoked, and with the server's own errors.
func TestFeaturesOfServers(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", toml(w.fault("fault", []string{"-features"}).config,
		w.fault("closed", []string{"-features"}, `enabled_tools = ["echo"]`).config))
	w.start(hostOptions())
	f := w.fronts()
	c, own := f.talker("/mcp", `{}`, nil), f.talker("/mcp/default/server/fault", `{}`, nil)
	w.expect("before the server was used", c.ask("resources/list", `{}`), `"resources":[]`)
	c.call("mcp", `{"action":"list","server":"fault"}`)
	c.call("mcp", `{"action":"list","server":"closed"}`)
	eventually(t, "the features are known", func() bool { return strings.Contains(c.ask("prompts/list", `{}`), "fault__greet") })

	for what, c := range map[string]*talker{"all": c, "one server": own} {
		prompt := "greet"
		if c != own {
			prompt = "fault__greet"
		}
		w.expect(what, c.ask("resources/list", `{}`), `"uri":"fault://one"`, `"uri":"fault://two"`)
		w.expect(what, c.ask("resources/templates/list", `{}`), `fault://item/{id}`)
		w.expect(what, c.ask("resources/read", `{"uri":"fault://one"}`), `"contents":[{`, `content of fault://one`)
		w.expect(what, c.ask("resources/read", `{"uri":"fault://item/7"}`), `content of fault://item/7`)
		w.expect(what, c.ask("prompts/list", `{}`), `"name":"`+prompt+`"`)
		w.expect(what, c.ask("prompts/get", `{"name":"`+prompt+`","arguments":{"who":"Ada"}}`), `Greet Ada.`)
		w.expect(what, c.ask("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+prompt+`"},"argument":{"name":"who","value":"x"}}`), `"xa"`)
		w.expect(what, c.ask("completion/complete", `{"ref":{"type":"ref/resource","uri":"fault://item/{id}"},"argument":{"name":"id","value":"y"}}`), `"ya"`)
	}
	w.expect("the server's own error", own.ask("resources/read", `{"uri":"other://x"}`), `"code":-32002`, `"message":"resource not found"`)
	w.expect("an unknown prompt", c.ask("prompts/get", `{"name":"closed__greet"}`), `"code":-32602`, `fault__greet`)
	w.expect("listed for a model", c.call("mcp", `{"action":"list","server":"fault"}`), `\"prompts\":[\"greet\"]`, `fault://item/{id}`)
	w.expect("for a model", c.call("mcp", `{"action":"request","server":"fault","tool":"resources/read","arguments":{"uri":"fault://two"}}`), `content of fault://two`)
	w.expect("not a request", c.call("mcp", `{"action":"request","server":"fault","tool":"tools/call","arguments":{}}`), `unknown_action`)

	w.revoke("mcp:fault", false)
	for what, c := range map[string]*talker{"all": c, "one server": own} {
		if got := c.ask("resources/read", `{"uri":"fault://one"}`); strings.Contains(got, "content of") {
			w.Errorf("%s: a revoked server answers %s", what, got)
		}
	}
	w.expect("revoked", own.ask("resources/read", `{"uri":"fault://one"}`), `capability_revoked`)
	w.expect("revoked", c.ask("prompts/list", `{}`), `"prompts":[]`)
}

// Whoever subscribed to a resource hears of it on the stream of the connection, also once the server was started again, and
// nobody else does.
func TestResourceSubscriptions(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", toml(w.fault("fault", []string{"-features"}).config))
	w.start(hostOptions())
	f := w.fronts()
	c, other := f.talker("/mcp/default/server/fault", `{}`, nil), f.talker("/mcp/default/server/fault", `{}`, nil)
	heard, stop := c.listen()
	defer stop()
	w.expect("subscribing", c.ask("resources/subscribe", `{"uri":"fault://one"}`), `"result":{}`)
	other.call("touch", `{"uri":"fault://one"}`)
	w.expect("told", <-heard, `notifications/resources/updated`, `fault://one`)

	ask[*poolv1.StopServerResult](w, &poolv1.StopServer{Name: "fault"})
	other.call("touch", `{"uri":"fault://one"}`)
	w.expect("told by the next process", <-heard, `fault://one`)

	w.expect("unsubscribing", c.ask("resources/unsubscribe", `{"uri":"fault://one"}`), `"result":{}`)
	other.call("touch", `{"uri":"fault://one"}`)
	c.ask("resources/subscribe", `{"uri":"fault://two"}`)
	other.call("touch", `{"uri":"fault://two"}`)
	w.expect("told of the other only", <-heard, `fault://two`)
}

// listen opens the stream for what answers no request.
func (c *talker) listen() (heard chan string, stop func()) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.url+c.path, http.NoBody)
	c.must(err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", c.session)
	answer, err := c.client.Do(r)
	c.must(err)
	heard = make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is && !strings.Contains(data, "list_changed") {
				heard <- data
			}
		}
	}()
	return heard, func() { _ = answer.Body.Close(); <-done }
}

// stateless is an MCP client of the era without sessions.
type stateless struct {
	*fronts
	path string
}

const statelessVersion = "2026-07-28"

// say sends a request and returns the status and what came, the answer last.
func (c stateless) say(id int, method, params string, able string) (status int, frames []string) {
	c.Helper()
	answer := c.begin(c.Context(), id, method, params, able)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	c.must(err)
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return answer.StatusCode, []string{string(text)}
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if data, is := strings.CutPrefix(line, "data: "); is {
			frames = append(frames, data)
		}
	}
	return answer.StatusCode, frames
}

func (c stateless) begin(ctx context.Context, id int, method, params, able string) *http.Response {
	c.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + statelessVersion + `","io.modelcontextprotocol/clientCapabilities":` + able + `}`
	if params != "" {
		meta += "," + params
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, meta)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+c.path, strings.NewReader(body))
	c.must(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", statelessVersion)
	r.Header.Set("Mcp-Method", method)
	var named struct{ Name, URI string }
	c.must(json.Unmarshal([]byte("{"+params+"}"), &named))
	if name := named.Name + named.URI; name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	answer, err := c.client.Do(r)
	c.must(err)
	return answer
}

// A client of the stateless era is asked what a server of the other era asks in the middle of a call: by a result, which it
// answers with the next request. The call goes on where it was.
func TestQuestionsBetweenTheEras(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", toml(w.fault("fault", []string{"-features"}).config))
	w.start(hostOptions())
	c := stateless{w.fronts(), "/mcp/default/server/fault"}
	able := `{"elicitation":{}}`
	call := `"name":"ask","arguments":{"method":"elicitation/create","params":{"message":"who?"}}`
	stateOf := func(frames []string) string {
		var r struct {
			Result struct{ ResultType, RequestState string }
		}
		w.must(json.Unmarshal([]byte(frames[len(frames)-1]), &r))
		if r.Result.ResultType != "input_required" {
			t.Fatalf("the client is not asked: %s", frames)
		}
		return r.Result.RequestState
	}
	_, frames := c.say(1, "tools/call", call, able)
	w.expect("the question", frames[0], `"method":"elicitation/create"`, `"message":"who?"`, `"id":1`)
	state := stateOf(frames)
	_, frames = c.say(2, "tools/call", call+`,"requestState":"`+state+`"`, able) // no answer: it is asked again
	state = stateOf(frames)
	answered := call + `,"requestState":"` + state + `","inputResponses":{"question":{"action":"accept","content":{"name":"Ada"}}}`
	_, frames = c.say(3, "tools/call", answered, able)
	w.expect("the answer", frames[len(frames)-1], `"id":3`, `Ada`, `"resultType":"complete"`)
	_, frames = c.say(4, "tools/call", answered, able)
	w.expect("a state that was used", frames[0], `-32602`, `requestState`)
	_, frames = c.say(5, "tools/call", call, `{}`)
	w.expect("a client that takes no questions", frames[0], `does not support elicitation/create`)
}

// Two clients of the stateless era whose requests have one id are told apart; one that closes its stream has cancelled its
// own call only.
func TestStatelessCallsAreTheirOwn(t *testing.T) {
	w := emptyWorld(t, nil)
	fault := w.fault("fault", nil)
	w.write("vak.toml", toml(fault.config))
	w.start(hostOptions())
	c := stateless{w.fronts(), "/mcp/default/server/fault"}
	ctx, leave := context.WithCancel(c.Context())
	left := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+c.path, strings.NewReader(
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000},"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err == nil {
			for name, value := range map[string]string{
				"Content-Type": "application/json", "MCP-Protocol-Version": statelessVersion, "Mcp-Method": "tools/call", "Mcp-Name": "sleep",
			} {
				r.Header.Set(name, value)
			}
			_, err = c.client.Do(r) //nolint:bodyclose // it is given up before there is one
		}
		left <- err
	}()
	eventually(t, "the call runs", func() bool { return slices.Contains(faulttest.Lines(t, fault.calls), "sleep") })
	_, frames := c.say(7, "tools/call", `"name":"echo","arguments":{"text":"mine"}`, `{}`)
	w.expect("another call of the same id", frames[0], `mine`)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that left got %v", err)
	}
	eventually(t, "the server hears of it", func() bool {
		_, frames := c.say(8, "tools/call", `"name":"cancelled","arguments":{}`, `{}`)
		return strings.Contains(frames[0], `"text":"1"`)
	})
}

// What a client of the stateless era asks to hear of it is told, and nothing else, on one stream that says so first.
func TestStatelessSubscriptions(t *testing.T) {
	w := emptyWorld(t, nil)
	w.write("vak.toml", toml(w.fault("fault", []string{"-features"}).config))
	w.start(hostOptions())
	c := stateless{w.fronts(), "/mcp"}
	status, frames := c.say(1, "server/discover", "", `{}`)
	w.expect("discover", frames[0], `"supportedVersions":["2026-07-28","2025-11-25"`, `"ttlMs":0`, `"io.modelcontextprotocol/serverInfo":{"name":"vak-actors"`)
	if status != 200 {
		t.Errorf("discover: %d", status)
	}
	ctx, leave := context.WithCancel(c.Context())
	defer leave()
	answer := c.begin(ctx, 9, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`, `{}`)
	defer answer.Body.Close()
	heard := make(chan string, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
				heard <- data
			}
		}
	}()
	w.expect("first", <-heard, `notifications/subscriptions/acknowledged`, `"io.modelcontextprotocol/subscriptionId":9`, `{"toolsListChanged":true}`)
	c.say(2, "tools/call", `"name":"mcp","arguments":{"action":"list","server":"fault"}`, `{}`)
	w.expect("then", <-heard, `notifications/tools/list_changed`, `"io.modelcontextprotocol/subscriptionId":9`)
	leave()
	<-done
	if len(heard) > 0 {
		t.Errorf("it also heard %s", <-heard)
	}
	for method, want := range map[string]int{"ping": 404, "initialize": 404, "tasks/get": 404} {
		if status, frames := c.say(3, method, "", `{}`); status != want || !strings.Contains(frames[0], "-32601") {
			t.Errorf("%s: %d %s", method, status, frames)
		}
	}
}

// A skill that is revoked is no resource any more, in no list and by no address, at once.
func TestRevokedSkillsAreNoResources(t *testing.T) {
	w := newWorld(t, map[string]string{skillFile("greeting"): "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n"})
	c := w.fronts().talker("/mcp", `{}`, nil)
	w.expect("before", c.ask("skills/list", `{}`), `"uri":"skill://greeting/SKILL.md"`, `"digest":"sha256:`)
	w.expect("before", c.ask("resources/read", `{"uri":"skill://greeting/SKILL.md"}`), `Say hello.`)
	w.revoke("skill:greeting", false)
	w.expect("after", c.ask("skills/list", `{}`), `"skills":[]`)
	w.expect("after", c.ask("resources/list", `{}`), `"resources":[]`)
	for method, uri := range map[string]string{
		"resources/read": "skill://greeting/SKILL.md", "skills/get": "skill://greeting/SKILL.md", "resources/directory/read": "skill://greeting",
	} {
		w.expect("after", c.ask(method, `{"uri":"`+uri+`"}`), `-32602`)
	}
}
