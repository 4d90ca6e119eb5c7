package mcpserver

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/mcpio"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// secrets resolves what the operator of the tests has set.
func secrets(name string) (string, bool) {
	v, ok := map[string]string{"API_TOKEN": "tok-123456789", "REGION": "eu-central", "PIN": "1234", "SHORT_TOKEN": "abc"}[name]
	return v, ok
}

// V67, V68: placeholders of command, args, env and url are resolved; a child gets PATH and what is declared.
func TestSpecOfAChild(t *testing.T) {
	k := Connector{Workspace: t.TempDir(), GroupDir: "groups", Version: "1", Secrets: secrets}
	x := &expander{lookup: secrets}
	spec, err := k.spec("s", &capability.Server{
		Transport: capability.TransportStdio, Command: "tool", Args: []string{"--region=${REGION}", "${MISSING:-none}"},
		Env: map[string]string{"KEY_OF_IT": "x", "REGION": "${REGION}", "TOKEN": "${API_TOKEN}"}, Cwd: "sub",
	}, x)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(spec.Args, " "); got != "--region=eu-central none" {
		t.Errorf("args %s", got)
	}
	env := slices.DeleteFunc(slices.Clone(spec.Env), func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if got := strings.Join(env, " "); got != "KEY_OF_IT=x REGION=eu-central TOKEN=tok-123456789" {
		t.Errorf("V68: env %s", got)
	}
	if spec.Dir != filepath.Join(k.Workspace, "sub") || spec.GroupDir != "groups" || spec.Transport != mcpio.Stdio {
		t.Errorf("%+v", spec)
	}
	for _, h := range x.secrets {
		if h != "tok-123456789" {
			t.Errorf("%q is taken for a secret", h)
		}
	}
	if len(x.secrets) == 0 {
		t.Error("the token is no secret")
	}
}

func TestSpecOfAnAddress(t *testing.T) {
	k := Connector{Secrets: secrets}
	x := &expander{lookup: secrets}
	spec, err := k.spec("s", &capability.Server{
		Transport: capability.TransportHTTP, URL: "https://${REGION}.example.org/mcp",
		Headers: map[string]string{"Authorization": "Bearer ${API_TOKEN}", "X-Pin": "${PIN}", "X-Api-Key": "Key in-the-open-1"},
	}, x)
	if err != nil || spec.URL != "https://eu-central.example.org/mcp" || spec.Headers["Authorization"] != "Bearer tok-123456789" || spec.Transport != mcpio.HTTP {
		t.Fatalf("%+v, %v", spec, err)
	}
	if !slices.Contains(x.secrets, "in-the-open-1") {
		t.Errorf("secrets %q: a credential behind its scheme is one", x.secrets)
	}
	if !slices.Contains(x.secrets, "tok-123456789") || slices.Contains(x.secrets, "1234") {
		t.Errorf("secrets %q: the token is one, and what is too short is none", x.secrets)
	}
}

func TestSpecRefuses(t *testing.T) {
	k := Connector{Workspace: t.TempDir(), Secrets: secrets}
	stdio := func(s capability.Server) *capability.Server { s.Transport = capability.TransportStdio; return &s }
	for name, tc := range map[string]struct {
		server *capability.Server
		want   vakerr.Code
		says   string
	}{
		"V67 nobody set it":    {stdio(capability.Server{Command: "x", Env: map[string]string{"A": "${NOWHERE}", "B": "${NOWHERE} ${ALSO}"}}), vakerr.SecretUnresolved, "NOWHERE, ALSO"},
		"out of the workspace": {stdio(capability.Server{Command: "x", Cwd: "../elsewhere"}), vakerr.PathEscapes, "../elsewhere"},
	} {
		_, err := k.spec("s", tc.server, &expander{lookup: secrets})
		if vakerr.CodeOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, tc.want, tc.says)
		}
	}
	if spec, err := k.spec("s", stdio(capability.Server{Command: "x", Cwd: "/opt/x"}), &expander{}); err != nil || spec.Dir != "/opt/x" {
		t.Errorf("an absolute folder: %+v, %v", spec, err)
	}
}

func TestTargetHidesSecrets(t *testing.T) {
	shown := target(&capability.Server{Transport: capability.TransportStdio, Command: "x", Args: []string{"--api-key", "CANARY-1", "ok"}})
	if strings.Contains(shown, "CANARY") || !strings.HasPrefix(shown, "x --api-key ") || !strings.HasSuffix(shown, " ok") {
		t.Errorf("command %s", shown)
	}
	if shown := target(&capability.Server{Transport: capability.TransportHTTP, URL: "https://h/mcp?api_key=CANARY-2"}); strings.Contains(shown, "CANARY") || !strings.HasPrefix(shown, "https://h/mcp") {
		t.Errorf("address %s", shown)
	}
}
