package host

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// What is written into a file that it is not read from is a finding: an operator who denies a tool in the daemon's own file
// must not believe that it is denied.
func TestMisplacedSettings(t *testing.T) {
	ws, other, etc := t.TempDir(), t.TempDir(), t.TempDir()
	daemon := filepath.Join(etc, "daemon.toml")
	for path, text := range map[string]string{
		daemon:                           "listen = \"127.0.0.1:0\"\nnonsense = 1\n[tenants.other]\nworkspace = \"" + other + "\"\n[permissions]\ndeny = [\"read\"]\n[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"true\"\n",
		filepath.Join(ws, configName):    "[reconcile]\ntick = \"1s\"\n[permissions]\nmode = \"read-only\"\n",
		filepath.Join(other, configName): "[limits]\nmax_depth = 2\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := startHostWith(t, Options{Workspace: ws, Config: daemon})
	got := map[string][]string{}
	for _, tenant := range h.Tenants() {
		for _, p := range problemsOf(t, h, tenant) {
			if p.Code == "config_misplaced" || p.Code == "config_unknown_key" {
				subject, _, _ := strings.Cut(p.Message, " has no effect")
				got[tenant] = append(got[tenant], filepath.Base(p.Path)+": "+subject)
			}
		}
		slices.Sort(got[tenant])
	}
	want := map[string][]string{protocol.DefaultTenant: {
		"daemon.toml: hooks", "daemon.toml: permissions", "daemon.toml: unknown key nonsense at the top of the file", "vak.toml: reconcile",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// One file for both, named or not, has all its effects and no such finding.
func TestOneFileForBoth(t *testing.T) {
	ws := t.TempDir()
	path := filepath.Join(ws, configName)
	if err := os.WriteFile(path, []byte("[reconcile]\ntick = \"1s\"\n[permissions]\nmode = \"read-only\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"", path} {
		if p := problemsOf(t, startHostWith(t, Options{Workspace: ws, Config: named}), ""); len(p) > 0 {
			t.Errorf("--config %q: %+v", named, p)
		}
	}
}

// A rule that cannot be read is one finding with its line, however many parts of the host compile it.
func TestRulesAreReportedOnce(t *testing.T) {
	ws := t.TempDir()
	text := "[permissions]\nallow = [\"bad(\"]\n[channels.a]\ntools = { deny = [\"[\"] }\n"
	if err := os.WriteFile(filepath.Join(ws, configName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problemsOf(t, startHost(t, ws), "") {
		got = append(got, fmt.Sprintf("%s:%d %s", p.Path, p.Line, p.Code))
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"vak.toml:2 permission_rule", "vak.toml:4 channel_pattern"}, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func problemsOf(t *testing.T, h *Host, tenant string) []capability.Problem {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := protocol.Call[*registryv1.GetReportResult](ctx, h.Door(), &registryv1.GetReport{Tenant: tenant})
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Problems []capability.Problem }
	if err := json.Unmarshal(r.GetReportJson(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Problems
}
