package real

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
	"github.com/vak-actors/vak-actors/tests/realparts"
)

// Clients of the TypeScript SDK, in both of its packages and over both transports, list, call, are asked by a server in the
// middle of a call, read, and hear that their list has changed.
func TestTypeScriptClients(t *testing.T) {
	w, ok := newWorld(t)
	sdk, next := realparts.Require(t, realparts.TypeScriptSDK), realparts.Require(t, realparts.TypeScriptClient)
	if !ok || sdk == "" || next == "" {
		return
	}
	script, err := filepath.Abs("client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	command, args := faulttest.Command(t, "-features")
	fault, err := json.Marshal(append([]string{}, args...))
	if err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"sdk": sdk, "client": next} {
		for _, transport := range []string{"http", "stdio"} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				w := w.on(t)
				w.data = t.TempDir() // so that no server was used before
				w.write("vak.toml", w.config("[mcp.servers.fault]\ncommand = \""+command+"\"\nargs = "+string(fault)+"\n"))
				d := w.serve()
				target := []string{d.url}
				if transport == "stdio" {
					target = w.overStdio("full")
				}
				out, err := exec.CommandContext(t.Context(), w.node, append([]string{script, folder, transport}, target...)...).Output()
				var got struct {
					Before, After, Prompts []string
					Told                   bool
					Asked                  int
					Called, Read           string
				}
				if err != nil || json.Unmarshal(out, &got) != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if slices.Contains(got.Before, "fault__echo") || !slices.Contains(got.After, "fault__echo") || !got.Told {
					t.Errorf("told of a change: %t; before %v, after %v", got.Told, got.Before, got.After)
				}
				if got.Asked != 1 || !strings.Contains(got.Called, "Ada") || got.Read != "content of fault://one" || !slices.Contains(got.Prompts, "fault__greet") {
					t.Errorf("asked %d times, %+v", got.Asked, got)
				}
			})
		}
	}
}
