package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// askedClient is a client that notes what it is told and answers every question alike.
type askedClient struct {
	answer  json.RawMessage
	refusal error
	entered chan struct{} // when set, a question is announced here and then waits for its context to end
	level   string

	mu    sync.Mutex
	told  []string
	asked []string
}

func (c *askedClient) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method+string(params))
	c.mu.Unlock()
	if c.entered != nil {
		c.entered <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return c.answer, c.refusal
}

func (c *askedClient) Tell(method string, params json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, method+string(params))
}

func (c *askedClient) Capabilities() json.RawMessage { return nil }
func (c *askedClient) TakesQuestions() bool          { return false }
func (c *askedClient) WantsProgress() bool           { return true }
func (c *askedClient) LogLevel() string              { return c.level }

func (c *askedClient) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

const askRoots = `{"method":"roots/list"}`

// A server asks the client of the call that is in flight, over every transport, and gets that client's answer.
func TestServerAsksTheClientOfTheCall(t *testing.T) {
	for name, spec := range map[string]Spec{"stdio": server(t), "http": httpServer(t, "-sse")} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, spec, Handlers{})
			ask := func(client Client, args string) string {
				raw, err := c.CallTool(t.Context(), "ask", json.RawMessage(args), CallOptions{Owner: "a", Client: client})
				if err != nil {
					t.Fatal(err)
				}
				return text(t, raw)
			}
			client := &askedClient{answer: json.RawMessage(`{"action":"accept", "content":{"x":1}}`)}
			if got := ask(client, `{"method":"elicitation/create","params":{"message":"who?"}}`); got != `{"action":"accept","content":{"x":1}}` {
				t.Errorf("the server got %s", got)
			}
			if want := `elicitation/create{"message":"who?"}`; len(client.asked) != 1 || client.asked[0] != want {
				t.Errorf("the client was asked %q, want %s", client.asked, want)
			}
			refusing := &askedClient{refusal: &RPCError{Code: -1, Message: "the user said no"}}
			if got := ask(refusing, `{"method":"sampling/createMessage"}`); !strings.Contains(got, "the user said no") || !strings.Contains(got, `"code":-1`) {
				t.Errorf("a refusal came back as %s", got)
			}
			if got := ask(nil, askRoots); !strings.Contains(got, "takes no roots/list") {
				t.Errorf("a caller without a client: %s", got)
			}
			if got := ask(client, `{"method":"tasks/get"}`); !strings.Contains(got, "-32601") {
				t.Errorf("a request nobody knows: %s", got)
			}
			if got := ask(client, `{"method":"ping"}`); got != `{}` {
				t.Errorf("a ping: %s", got)
			}
		})
	}
}

// With calls of two owners in flight, a request over pipes is nobody's; over HTTP its stream tells.
func TestServerAsksOnASharedConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		spec Spec
		want string
	}{
		"stdio": {server(t), "cannot be attributed"},
		"http":  {httpServer(t, "-sse"), `{"roots":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, tt.spec, Handlers{})
			ctx, cancel := context.WithCancel(t.Context())
			entered := &askedClient{entered: make(chan struct{}, 1)}
			var other sync.WaitGroup
			other.Go(func() {
				_, _ = c.CallTool(ctx, "ask", json.RawMessage(askRoots), CallOptions{Owner: "b", Client: entered})
			})
			<-entered.entered
			client := &askedClient{answer: json.RawMessage(`{"roots":[]}`)}
			raw, err := c.CallTool(t.Context(), "ask", json.RawMessage(askRoots), CallOptions{Owner: "a", Client: client})
			if err != nil || !strings.Contains(text(t, raw), tt.want) {
				t.Errorf("%s, %v; want %s", raw, err, tt.want)
			}
			cancel()
			other.Wait()
		})
	}
}

// What a server says after a call was given up could be about that call: it is nobody's then.
func TestGivenUpCallsKeepOthersOut(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.CallTool(ctx, "sleep", json.RawMessage(`{"ms":60000}`), CallOptions{Owner: "b", Client: &askedClient{}})
	wantCode(t, err, vakerr.DeadlineExceeded)
	client := &askedClient{answer: json.RawMessage(`{"roots":[]}`)}
	raw, err := c.CallTool(t.Context(), "ask", json.RawMessage(askRoots), CallOptions{Owner: "a", Client: client})
	if err != nil || !strings.Contains(text(t, raw), "cannot be attributed") || len(client.asked) > 0 {
		t.Errorf("%s, %v; asked %q", raw, err, client.asked)
	}
}

// The end of a call ends what its server asked within it.
func TestQuestionsEndWithTheirCall(t *testing.T) {
	c := dial(t, server(t), Handlers{})
	ctx, cancel := context.WithCancel(t.Context())
	client := &askedClient{entered: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "ask", json.RawMessage(askRoots), CallOptions{Owner: "a", Client: client})
		done <- err
	}()
	<-client.entered
	cancel()
	wantCode(t, <-done, vakerr.Canceled)
}

// The time that a client takes for its answer is no time of the server's.
func TestTheClientsTimeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, timer, cancel := withTimer(t.Context(), time.Minute)
		defer cancel()
		timer.pause()
		time.Sleep(time.Hour)
		timer.resume()
		time.Sleep(30 * time.Second)
		timer.pause()
		time.Sleep(time.Hour)
		timer.resume()
		time.Sleep(29 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("the call is over before its time")
		}
		time.Sleep(2 * time.Second) // what was left, not all of it again
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errTooLate) {
			t.Fatalf("a call beyond its time: %v", context.Cause(ctx))
		}
	})
}

// Log messages go to the client of the call during which they came, and nowhere once it has returned.
func TestLogMessages(t *testing.T) {
	for name, spec := range map[string]Spec{"stdio": server(t), "http": httpServer(t, "-sse")} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, spec, Handlers{})
			client := &askedClient{}
			if _, err := c.CallTool(t.Context(), "log", json.RawMessage(`{"text":"hello"}`), CallOptions{Owner: "a", Client: client}); err != nil {
				t.Fatal(err)
			}
			if heard := client.heard(); len(heard) != 1 || !strings.Contains(heard[0], `"hello"`) {
				t.Errorf("heard %q", heard)
			}
		})
	}
}

// A modern server's input_required is answered by a client of the other era, and the request goes on.
func TestInputRequired(t *testing.T) {
	asked := &askedClient{answer: json.RawMessage(`{"action":"accept"}`)}
	c := newConn(Spec{Name: "x"}.withDefaults(), Handlers{})
	ctx, clock, cancel := withTimer(t.Context(), time.Minute)
	defer cancel()
	extra, err := c.input(ctx, clock, json.RawMessage(
		`{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"m":1}}},"requestState":"s1"}`),
		json.RawMessage(`{"_meta":{"k":1},"inputResponses":{"old":{}}}`), asked)
	if err != nil || string(extra) != `{"_meta":{"k":1},"inputResponses":{"who":{"action":"accept"}},"requestState":"s1"}` {
		t.Fatalf("%s, %v", extra, err)
	}
	for name, result := range map[string]string{
		"another method": `{"resultType":"input_required","inputRequests":{"x":{"method":"tools/call"}}}`,
		"a wrong form":   `{"resultType":"input_required","inputRequests":[]}`,
	} {
		if _, err := c.input(ctx, clock, json.RawMessage(result), nil, asked); err == nil {
			t.Errorf("%s is answered", name)
		}
	}
	if _, err := c.input(ctx, clock, json.RawMessage(`{"inputRequests":{"x":{"method":"roots/list"}}}`), nil, &askedClient{refusal: errors.New("no")}); err == nil {
		t.Error("a refusal is an answer")
	}
}
