package bench

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/vak-actors/vak-actors/internal/gateway"
)

// mcpClient posts to an MCP endpoint as cheaply as can be, so that what is measured is the server.
type mcpClient struct {
	*testing.B
	url, session string
}

// post returns the body of the answer.
func (c *mcpClient) post(body string) []byte {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.url, bytes.NewReader([]byte(body)))
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		c.Fatalf("%s: %s %v", resp.Status, answer, err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return answer
}

// BenchmarkGateway is an MCP client's call of a server's tool over Streamable HTTP: HTTP, the burst's turn and the
// brokered call.
func BenchmarkGateway(b *testing.B) {
	w := newBrokered(b)
	h := gateway.NewHandler(gateway.Options{Door: w.door, Version: "bench"})
	b.Cleanup(h.Close)
	server := httptest.NewServer(h)
	b.Cleanup(server.Close)
	c := &mcpClient{B: b, url: server.URL + "/mcp"}
	c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`)
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, row := range []struct{ name, body, holds string }{
		{"tools-call", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo__echo","arguments":{"text":"hi"}}}`, `"hi"`},
		{"tools-list", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, "echo__echo"},
		{"ping", `{"jsonrpc":"2.0","id":4,"method":"ping"}`, "result"},
	} {
		b.Run(row.name, func(b *testing.B) {
			c.B = b
			var calls sample
			b.ReportAllocs()
			for b.Loop() {
				calls.time(func() {
					if answer := c.post(row.body); !bytes.Contains(answer, []byte(row.holds)) {
						b.Fatalf("%s", answer)
					}
				})
			}
			calls.report(b, "")
		})
	}
}
