package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// call leases a connection for one call, as a session does.
func (b *bench) call(name string, s *capability.Server, tool, arguments string) (json.RawMessage, error) {
	b.Helper()
	lease, err := ask[*protocol.Lease](b, &protocol.Acquire{Server: name, Config: s, Session: "a"})
	if err != nil {
		b.Fatal(err)
	}
	result, err := lease.Connection.Send(b.Context(), protocol.ServerRequest{Method: toolsCall, Tool: tool, Params: []byte(arguments)})
	lease.Release(err == nil)
	return result, err
}

// A secret that a server was given is not in its results; what has no secret's name, or is too short for one, stays.
func TestResultsHideSecrets(t *testing.T) {
	b := newBench(t)
	s := b.server()
	s.Env = map[string]string{"API_TOKEN": "tok-123456789", "SHORT_TOKEN": "abc4567", "REGION": "eu-central-1"}
	b.declare(map[string]*capability.Server{"s": s})
	result, err := b.call("s", s, "env", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(result); strings.Contains(text, "tok-123456789") || !strings.Contains(text, "API_TOKEN=[redacted]") ||
		!strings.Contains(text, "SHORT_TOKEN=abc4567") || !strings.Contains(text, "REGION=eu-central-1") || !json.Valid(result) {
		t.Errorf("the environment as the server shows it: %s", text)
	}
}

// A secret whose first letter ends a JSON escape cannot be taken out: the result is refused, not broken and not shown.
func TestResultWithASecretThatCannotBeTakenOut(t *testing.T) {
	b := newBench(t)
	s := b.server()
	s.Env = map[string]string{"API_TOKEN": "n123456789"}
	b.declare(map[string]*capability.Server{"s": s})
	result, err := b.call("s", s, "echo", `{"text":"a\n123456789"}`)
	if vakerr.CodeOf(err) != vakerr.OutputInvalid || result != nil {
		t.Errorf("%s, %v", result, err)
	}
	if err != nil && strings.Contains(err.Error(), "123456789") {
		t.Errorf("the refusal shows it: %v", err)
	}
}

// The last words of a server outlive its process and its actor, without its secrets, until it is not declared any more.
func TestLogsAfterTheEnd(t *testing.T) {
	b := newBench(t)
	before := b.server("-leak-env", "API_TOKEN")
	before.Env = map[string]string{"API_TOKEN": "tok-123456789"}
	b.declare(map[string]*capability.Server{"s": before})
	if _, err := b.call("s", before, "crash", `{}`); vakerr.CodeOf(err) != vakerr.OutcomeUnknown {
		t.Fatalf("crash: %v", err)
	}
	b.becomes("s", "backing-off")
	words := func(when string) {
		t.Helper()
		logs, err := ask[*poolv1.GetServerLogsResult](b, &poolv1.GetServerLogs{Name: "s"})
		if err != nil || !strings.Contains(logs.GetStderr(), "fatal: out of luck with [redacted]") || strings.Contains(logs.GetStderr(), "tok-123456789") {
			t.Errorf("%s: %v, %v", when, logs, err)
		}
	}
	words("after its process")

	b.declare(map[string]*capability.Server{"s": b.server()})
	b.becomes("s", "cold")
	words("after its actor")
	if n := b.state("s").GetStarts(); n != 1 {
		t.Errorf("%d starts are remembered, want 1", n)
	}
	b.declare(nil)
	if _, err := ask[*poolv1.GetServerLogsResult](b, &poolv1.GetServerLogs{Name: "s"}); vakerr.CodeOf(err) != vakerr.UnknownServer {
		t.Errorf("of a server nobody declares: %v", err)
	}
	b.declare(map[string]*capability.Server{"s": b.server()})
	if logs, err := ask[*poolv1.GetServerLogsResult](b, &poolv1.GetServerLogs{Name: "s"}); err != nil || logs.GetStderr() != "" {
		t.Errorf("of a new server of that name: %v, %v", logs, err)
	}
}
