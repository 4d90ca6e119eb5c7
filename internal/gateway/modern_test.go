package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

const statedMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modernText is a request of the stateless era; more are params besides _meta, each with a comma before it.
func modernText(id int, method, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{`+statedMeta+`%s}}`, id, method, more)
}

// modernHeader is what a request of the stateless era says in headers, too.
func modernHeader(method, name string) header {
	h := header{"MCP-Protocol-Version": modernVersion, "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

// JSON lets a slash be escaped, and some libraries always do.
func TestMetaKeysMayBeEscaped(t *testing.T) {
	escaped := strings.ReplaceAll(modernText(1, "server/discover", ""), "protocol/", `protocol\/`)
	s := newSite(t, newWorld(), Options{})
	if r := s.do("POST", "/mcp", escaped, modernHeader("server/discover", "")); r.StatusCode != http.StatusOK {
		t.Errorf("over HTTP: %d %s", r.StatusCode, text(t, r))
	}
	p := serveWorld(t, newWorld(), StdioOptions{})
	p.say(strings.ReplaceAll(modernText(1, "tools/call", `,"name":"echo"`), "protocol/", `protocol\/`))
	if got := p.hear(); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("on pipes: %s", got)
	}
	if _, err := p.leave(); err != nil {
		t.Error(err)
	}
}

// An empty argument is repeated by an empty header.
func TestEmptyParamHeader(t *testing.T) {
	w := newWorld()
	w.tools["regional"] = named("regional")
	w.tools["regional"].definition = `{"name":"regional","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	s := newSite(t, w, Options{})
	body := modernText(1, "tools/call", `,"name":"regional","arguments":{"region":""}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {contentJSON}, "Accept": {contentJSON + ", " + contentEvents}}
	for name, value := range modernHeader("tools/call", "regional") {
		r.Header.Set(name, value)
	}
	for _, c := range []struct {
		name   string
		header []string
		want   int
	}{{"repeated", []string{""}, http.StatusOK}, {"left out", nil, http.StatusBadRequest}} {
		r.Body, _ = r.GetBody()
		r.Header["Mcp-Param-Region"] = c.header
		resp, err := s.web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); resp.StatusCode != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, resp.StatusCode, got, c.want)
		}
		_ = resp.Body.Close()
	}
}

// Whoever takes JSON only is answered in JSON, whatever there was to say before the answer.
func TestNoEventsWhereNotAccepted(t *testing.T) {
	w := newWorld()
	asking(w, "tells", func(_ context.Context, c protocol.Client) string {
		c.Tell("notifications/progress", []byte(`{"progressToken":1,"progress":1}`))
		return "told"
	})
	s := newSite(t, w, Options{})
	h := modernHeader("tools/call", "tells")
	h["Accept"] = contentJSON
	body := strings.Replace(modernText(1, "tools/call", `,"name":"tells"`), `"_meta":{`, `"_meta":{"progressToken":7,`, 1)
	r := s.do("POST", "/mcp", body, h)
	if got := text(t, r); r.Header.Get("Content-Type") != contentJSON || !strings.Contains(got, `"told"`) {
		t.Errorf("%s: %s", r.Header.Get("Content-Type"), got)
	}
	h = modernHeader("subscriptions/listen", "")
	h["Accept"] = contentJSON
	if r := s.do("POST", "/mcp", modernText(2, "subscriptions/listen", `,"notifications":{}`), h); r.StatusCode != http.StatusNotAcceptable {
		t.Errorf("a subscription: %d", r.StatusCode)
	}
}

// A client that leaves while its subscriptions are made is not waited for.
func TestSubscribingEndsWithItsClient(t *testing.T) {
	w, g := newWorld(), newGate()
	w.tools["slow"] = g.tool("slow") // the server itself: it takes no subscription before it is released
	s := newSite(t, w, Options{})
	ctx, leave := context.WithCancel(t.Context())
	body := modernText(1, "subscriptions/listen", `,"notifications":{"resourceSubscriptions":["a:b"]}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp/default/server/slow", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {contentJSON}, "Accept": {contentJSON + ", " + contentEvents}}
	for name, value := range modernHeader("subscriptions/listen", "") {
		r.Header.Set(name, value)
	}
	over := make(chan error, 1)
	go func() {
		resp, err := s.web.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		over <- err
	}()
	<-g.entered
	leave()
	<-over
	select {
	case <-g.ended:
	case <-time.After(5 * time.Second):
		t.Error("the server is still waited for")
	}
	close(g.release)
}
