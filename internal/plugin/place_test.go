package plugin

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var placement = Placement{
	Scope: "user", Folder: capability.Folder{Path: "/p/kit", Data: "/p/data"}, Workspace: "/w", Home: "/h",
	Values: map[string]string{"region": "eu", "dirs": "/a, /b"},
}

func server(name string, s capability.Server) capability.Declaration {
	s.Transport = capability.TransportStdio
	return capability.Declaration{ID: capability.ID{Kind: capability.KindMCP, Name: name}, Config: &s}
}

// Placeholders are those of the plugin's format, values those of the operator; a secret stays a placeholder, and what lacks a
// value is left out with the way to give it.
func TestPlaceholders(t *testing.T) {
	options := []Option{{Key: "region"}, {Key: "dirs", Multiple: true}, {Key: "token", Sensitive: true}, {Key: "need", Required: true}, {Key: "zone", Default: "z"}}
	for _, c := range []struct {
		format  Format
		command string
		args    []string
		want    []string // command and arguments; nil: it is left out
	}{
		{FormatClaude, "${CLAUDE_PLUGIN_ROOT}/run", []string{"${CLAUDE_PLUGIN_DATA}", "${CLAUDE_PROJECT_DIR}", "${HOME}"}, []string{"/p/kit/run", "/p/data", "/w", "${HOME}"}},
		{FormatClaude, "./run", []string{"${user_config.region}-${user_config.zone}", "${user_config.dirs}", "${user_config.token}"}, []string{"/p/kit/run", "eu-z", "/a", "/b", "${VAK_PLUGIN_KIT_TOKEN}"}},
		{FormatClaude, "run", []string{"${user_config.need}"}, nil},
		{FormatClaude, "run", []string{"${extensionPath}", "$CLAUDE_PLUGIN_ROOT", "${"}, []string{"run", "${extensionPath}", "$CLAUDE_PLUGIN_ROOT", "${"}},
		{FormatGemini, "node", []string{"${extensionPath}${/}a.js", "${workspacePath}"}, []string{"node", "/p/kit/a.js", "/w"}},
		{FormatAgentPlugins, "./run", []string{"${PLUGIN_ROOT}", "${PLUGIN_DATA}", "${CLAUDE_PLUGIN_ROOT}"}, []string{"/p/kit/run", "/p/kit", "/p/data", "${CLAUDE_PLUGIN_ROOT}"}},
		{FormatMCPB, "${__dirname}/run", []string{"${HOME}", "${DESKTOP}"}, []string{"/p/kit/run", "/h", "/h/Desktop"}},
		{FormatCursor, "run", []string{"${workspaceFolder}", "${userHome}"}, []string{"run", "/w", "/h"}},
	} {
		m := Manifest{Format: c.format, Name: "kit", Options: options}
		read := server("s", capability.Server{Command: c.command, Args: c.args})
		placed, problems := m.Place([]capability.Declaration{read}, placement)
		if c.want == nil {
			if len(placed) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Hint, "--set need=") {
				t.Errorf("%v: placed %v, problems %v", c.args, placed, problems)
			}
			continue
		}
		if len(placed) != 1 || placed[0].ID.Name != "plugin.kit.s" || placed[0].Origin.Label() != "plugin:user:kit" {
			t.Fatalf("%v: placed %+v, %v", c.args, placed, problems)
		}
		s := placed[0].Config.(*capability.Server)
		if diff := cmp.Diff(c.want, append([]string{s.Command}, s.Args...)); diff != "" {
			t.Errorf("%s:\n%s", c.format, diff)
		}
		if read.Config.(*capability.Server).Command != c.command {
			t.Error("what was read was changed")
		}
	}
}

// V18: the names of a plugin's capabilities.
func TestQualifiedNames(t *testing.T) {
	for id, want := range map[string]string{
		"skill:setup": "skill:kit:setup", "command:a:b": "command:kit:a:b", "mcp:git": "mcp:plugin.kit.git",
		"hook:PreToolUse/./x.sh": "hook:PreToolUse/kit:./x.sh",
	} {
		parsed, err := capability.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := Qualified("kit", parsed).String(); got != want {
			t.Errorf("%s became %s, want %s", id, got, want)
		}
	}
}

// A hook's line for the shell never gets the value of an option, which would be code there.
func TestShellHooksGetNoValues(t *testing.T) {
	m := Manifest{Format: FormatClaude, Name: "kit", Options: []Option{{Key: "region"}}}
	hook := capability.Declaration{
		ID:     capability.ID{Kind: capability.KindHook, Name: "Stop/x"},
		Config: &capability.Hook{Event: "Stop", Command: "echo ${user_config.region}"},
	}
	placed, _ := m.Place([]capability.Declaration{hook}, placement)
	if h := placed[0].Config.(*capability.Hook); h.Idle == "" || strings.Contains(h.Command, "eu") || h.Root != placement.Folder {
		t.Errorf("placed %+v", h)
	}
}

// V197, V202: a record's way through its states.
func TestStates(t *testing.T) {
	ok := Facts{Intact: true, Brings: "b"}
	r := Record{ID: "kit", Scope: "user", Current: Version{Digest: "d1"}}
	want := func(what string, r Record, f Facts, state State, force bool) {
		t.Helper()
		if got := r.State(f); got != state || r.InForce(f) != force {
			t.Errorf("%s: %s, in force %t; want %s, %t", what, got, r.InForce(f), state, force)
		}
	}
	want("installed", r, ok, StateInstalled, false)
	on := r.Consented("b")
	want("enabled", on, ok, StateEnabled, true)
	want("connected", on, Facts{Intact: true, Brings: "b", Connected: true}, StateConnected, true)
	want("its source has moved", on, Facts{Intact: true, Brings: "b", Source: "d2"}, StateUpdateAvailable, true)
	want("it brings something else", on, Facts{Intact: true, Brings: "c"}, StateNeedsReview, false)
	want("it was changed", on, Facts{}, StateBlocked, false)
	want("it cannot be used", on, Facts{Intact: true, Brings: "b", Incompatible: true}, StateIncompatible, false)
	want("disabled", on.Revoked(), ok, StateRevoked, false)
	want("disabled before it was ever enabled", r.Revoked(), ok, StateInstalled, false)
	staged := on.Stage(Version{Digest: "d2"})
	want("a newer version waits", staged, ok, StateNeedsReview, true)
	accepted := staged.Accepted("b")
	if accepted.Current.Digest != "d2" || accepted.Previous[0].Digest != "d1" {
		t.Errorf("accepted: %+v", accepted)
	}
	back, err := accepted.RolledBack()
	want("rolled back", back, ok, StateEnabled, true)
	if err != nil || back.Current.Digest != "d1" {
		t.Errorf("rolled back: %+v, %v", back, err)
	}
	if _, err := r.RolledBack(); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("there is nothing to roll back to: %v", err)
	}
	revoked, err := accepted.Revoked().RolledBack()
	want("rolled back after disabling", revoked, ok, StateRevoked, false)
	if err != nil {
		t.Error(err)
	}
	if off := r.Stage(Version{Digest: "d2"}); off.Current.Digest != "d2" || off.Staged != nil {
		t.Errorf("a disabled plugin is simply replaced: %+v", off)
	}
}

// Offers of a marketplace: one that is broken costs itself, and those elsewhere are named.
func TestMarketplace(t *testing.T) {
	m, problems, err := ReadMarketplace("marketplace.json", []byte(`{"name":"m","metadata":{"pluginRoot":"./plugins"},"plugins":[
		{"name":"a","source":"./a"}, {"name":"b","source":{"source":"github","repo":"x/y"}}, {"name":"c","source":"x/y/../z"},
		{"name":"d"}, {"source":"./e"}, {"name":"f","source":{"source":"local","path":"./f"},"policy":{"installation":"NOT_AVAILABLE"}},
		{"name":"a","source":"./again"}, 7]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range m.Entries {
		got = append(got, e.Name+"|"+e.Folder+"|"+e.Remote)
	}
	if want := []string{"a|plugins/a|", "b||github", "f|f|"}; !slices.Equal(got, want) {
		t.Errorf("offers %q, want %q", got, want)
	}
	if m.Entries[2].Unavailable == "" || len(problems) != 5 {
		t.Errorf("unavailable %q, problems %v", m.Entries[2].Unavailable, problems)
	}
	for _, strict := range []string{"true", "false"} {
		m, _, err := ReadMarketplace("m.json", []byte(`{"name":"m","plugins":[{"name":"a","source":"./a","strict":`+strict+`,"commands":"./x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Entries[0].EntryFile(folder(".claude-plugin/plugin.json", `{"name":"a","skills":"./s"}`))
		if refused := err != nil; refused != (strict == "false") {
			t.Errorf("strict %s beside a manifest with components: %v", strict, err)
		}
	}
}
