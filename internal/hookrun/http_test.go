package hookrun

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
)

func posting(url string, mode capability.FailureMode) *capability.Capability {
	return declared("h", capability.Hook{
		Event: "PreToolUse", Dialect: capability.DialectClaude, Type: capability.HookHTTP, URL: url, Timeout: 5 * time.Second, FailureMode: mode,
		Headers: map[string]string{"X-Token": "Bearer $TOKEN ${OTHER}."}, AllowedEnv: []string{"TOKEN"},
	})
}

// A hook over HTTP is posted the event, with the secrets it may use and no others, and its answer counts.
func TestHTTPHook(t *testing.T) {
	var body, token string
	status, answer := 200, `{"decision":"block","reason":"no"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, token = string(text), r.Header.Get("X-Token")
		if r.URL.Path == "/away" {
			t.Error("a redirection was followed")
		}
		if status == 302 {
			w.Header().Set("Location", "/away")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	r := New(t.TempDir(), "/", func(name string) (string, bool) { return "secret-" + name, true })
	deliver := func(c *capability.Capability) hook.Decision {
		d, _ := r.Deliver(t.Context(), []*capability.Capability{c}, writing(`{"path":"a"}`), recall)
		return d
	}
	if d := deliver(posting(server.URL, capability.FailOpen)); d.Block == nil || token != "Bearer secret-TOKEN ." || !strings.Contains(body, `"tool_name":"Write"`) {
		t.Errorf("%+v, token %q, body %s", d, token, body)
	}
	for _, tc := range []struct {
		status int
		answer string
		blocks bool // a fail-closed hook
	}{{204, "", false}, {200, "", false}, {200, "well", true}, {500, `{"decision":"approve"}`, true}, {302, "", true}, {200, "{" + strings.Repeat(" ", captureLimit) + "}", true}} {
		status, answer = tc.status, tc.answer
		if d := deliver(posting(server.URL, capability.FailOpen)); d.Block != nil {
			t.Errorf("%d: an open hook blocks: %v", tc.status, d.Block)
		}
		if d := deliver(posting(server.URL, capability.FailClosed)); (d.Block != nil) != tc.blocks {
			t.Errorf("%d %.10q: %v", tc.status, tc.answer, d.Block)
		}
	}
}

// Where a hook must not be asked: other machines without encryption, addresses with a user, and those of the link.
func TestForbiddenAddresses(t *testing.T) {
	for _, url := range []string{
		"http://example.org/", "ftp://localhost/", "http://u:p@localhost/", "https://169.254.169.254/latest", "https://[fe80::1]/", "https://0.0.0.0/", "nonsense",
	} {
		d, deliveries := New(t.TempDir(), "/", nil).Deliver(t.Context(), []*capability.Capability{posting(url, capability.FailClosed)}, writing(`{}`), recall)
		if d.Block == nil || len(deliveries) != 1 || deliveries[0].Failure == "" {
			t.Errorf("%s: %+v", url, d)
		}
	}
}

// The time of a hook begins with its process, not when it is queued behind others: four rounds of half a second do not
// use up what each hook has.
func TestTimeBeginsWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	var hooks []*capability.Capability
	for i := range 3*maxAtOnce + 1 {
		hooks = append(hooks, declared(strconv.Itoa(i), capability.Hook{
			Dialect: capability.DialectClaude, Event: "PreToolUse", Command: "sleep 0.5", Timeout: 1400 * time.Millisecond, FailureMode: capability.FailClosed,
		}))
	}
	d, deliveries := New(dir, dir, nil).Deliver(t.Context(), hooks, writing(`{"path":"a"}`), recall)
	if d.Block != nil || len(deliveries) != len(hooks) {
		t.Errorf("%d of %d, %v", len(deliveries), len(hooks), d.Block)
	}
}

// Hooks of other programs run side by side, those of the own dialect after one another, all in order of their positions.
func TestSideBySide(t *testing.T) {
	dir := t.TempDir()
	hookAt := func(name string, position int, h capability.Hook) *capability.Capability {
		h.Position, h.Timeout, h.FailureMode = position, 20*time.Second, capability.FailClosed
		return declared(name, h)
	}
	// Each of the two waits for the other: one after the other they would wait for ever.
	meet := func(own, other string) string {
		return "touch " + own + "; while [ ! -e " + other + " ]; do sleep 0.01; done"
	}
	claude := func(command string) capability.Hook {
		return capability.Hook{Event: "PreToolUse", Dialect: capability.DialectClaude, Command: command}
	}
	d, deliveries := New(dir, dir, nil).Deliver(t.Context(), []*capability.Capability{
		hookAt("last", 9, capability.Hook{Event: "pre-tool-use", Command: "test -e a && test -e b && echo >last"}),
		hookAt("b", 2, claude(meet("b", "a"))),
		hookAt("a", 1, claude(meet("a", "b"))),
	}, writing(`{"path":"x"}`), recall)
	if _, err := os.Stat(filepath.Join(dir, "last")); err != nil || d.Block != nil || len(deliveries) != 3 || deliveries[0].Hook.Name != "a" || deliveries[2].Hook.Name != "last" {
		t.Errorf("%+v %+v %v", d, deliveries, err)
	}
}
