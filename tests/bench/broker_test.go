package bench

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// echoServer declares the fault server, which behaves, as [mcp.servers.echo].
func echoServer(b *testing.B) string {
	command, _ := faulttest.Command(b)
	return fmt.Sprintf("[mcp.servers.echo]\ncommand = %q\n", command)
}

// brokered is one session that calls the tools of a server through a host.
type brokered struct {
	*world
	session, turn string
}

// newBrokered starts the server and waits until its catalog is published, so that its read-only tools are known as such.
func newBrokered(b *testing.B) *brokered {
	b.Helper()
	w := newWorld(b, echoServer(b), 0)
	c := &brokered{world: w, session: w.open("").GetSession().GetSessionId()}
	c.call("echo", `{"text":"hi"}`)
	ask[*registryv1.ReloadResult](w, &registryv1.Reload{})
	return c
}

// begin makes the calls that follow part of one turn; without it each is a turn of its own.
func (c *brokered) begin() {
	c.Helper()
	c.turn = ask[*sessionv1.BeginTurnResult](c.world, &sessionv1.BeginTurn{SessionId: c.session}).GetTurnId()
}

// call fails the benchmark unless the tool answers.
func (c *brokered) call(tool, arguments string) {
	c.Helper()
	r := ask[*sessionv1.DispatchResult](c.world, &sessionv1.Dispatch{
		SessionId: c.session, TurnId: c.turn, Name: "mcp",
		ArgumentsJson: json.RawMessage(`{"action":"call","server":"echo","tool":"` + tool + `","arguments":` + arguments + `}`),
	})
	if r.GetRefusal() != nil || r.GetFailed() {
		c.Fatalf("%s: %v %s", tool, r.GetRefusal(), r.GetResultJson())
	}
}

// direct is mcp-go's client on a server process of its own.
type direct struct {
	*testing.B
	*client.Client
}

func newDirect(b *testing.B) direct {
	b.Helper()
	command, args := faulttest.Command(b)
	c, err := client.NewStdioMCPClient(command, nil, args...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = "2025-11-25"
	request.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(b.Context(), request); err != nil {
		b.Fatal(err)
	}
	return direct{b, c}
}

func (d direct) call() {
	d.Helper()
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = "echo", map[string]any{"text": "hi"}
	if answer, err := d.CallTool(d.Context(), r); err != nil || answer.IsError {
		d.Fatal(answer, err)
	}
}

// BenchmarkCall compares calls of the same tool on the same kind of server over stdio: with mcp-go's own client, and
// through a host with everything it does for a call. ratio is of the medians, to that of direct in the same run. Target: a
// read-only call in at most 2.0 times the direct one; a writing one adds a commit.
func BenchmarkCall(b *testing.B) {
	var bare sample
	b.Run("direct", func(b *testing.B) {
		d := newDirect(b)
		bare = measure(b, d.call)
	})
	for _, row := range []struct {
		name, tool string
		turn       bool
	}{
		{"brokered", "echo", true},
		{"burst", "echo", false}, // as an MCP client calls: each call is a turn of its own
		{"writing", "counter", true},
	} {
		b.Run(row.name, func(b *testing.B) {
			c := newBrokered(b)
			if row.turn {
				c.begin()
			}
			through := measure(b, func() { c.call(row.tool, `{"text":"hi"}`) })
			if bare != nil {
				b.ReportMetric(through.at(0.5)/bare.at(0.5), "ratio")
			}
		})
	}
	b.Run("paired", func(b *testing.B) { // the calls take turns, so that both see the same machine
		d, c := newDirect(b), newBrokered(b)
		c.begin()
		var bare, through sample
		for b.Loop() {
			bare.time(d.call)
			through.time(func() { c.call("echo", `{"text":"hi"}`) })
		}
		bare.report(b, "direct-")
		through.report(b, "")
		b.ReportMetric(through.at(0.5)/bare.at(0.5), "ratio")
	})
}

// measure times calls after some to warm up.
func measure(b *testing.B, call func()) sample {
	b.Helper()
	for range 100 {
		call()
	}
	var calls sample
	b.ReportAllocs()
	for b.Loop() {
		calls.time(call)
	}
	calls.report(b, "")
	return calls
}

// BenchmarkCallParallel is the throughput of one connection that many sessions share.
func BenchmarkCallParallel(b *testing.B) {
	w := newBrokered(b)
	b.SetParallelism(8) // 16 callers on two processors
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c := &brokered{world: w.world, session: w.open("").GetSession().GetSessionId()}
		c.begin()
		for pb.Next() {
			c.call("echo", `{"text":"hi"}`)
		}
	})
}
