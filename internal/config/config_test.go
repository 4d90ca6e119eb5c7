package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

func parse(t *testing.T, text string) (Config, []capability.Problem) {
	t.Helper()
	return Parse("vak.toml", []byte(text))
}

// codes lists the problems as code:line, so that a table can name them.
func codes(problems []capability.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, fmt.Sprintf("%s:%d", p.Code, p.Line))
	}
	return all
}

func TestDefaults(t *testing.T) {
	c, problems := Parse("vak.toml", []byte("[mcp.servers.s]\ncommand = \"x\"\n"))
	if got := c.MCP["s"].IdleTTL; got != 15*time.Minute || len(problems) > 0 {
		t.Errorf("V44: a server that nobody uses runs on for %s; %v", got, problems)
	}
	for _, c := range []Config{Default(), first(Parse("vak.toml", []byte("# nothing\n")))} {
		want := Config{
			Listen:    "127.0.0.1:7717",
			Reconcile: Reconcile{Tick: 10 * time.Second, Debounce: 250 * time.Millisecond},
			Ledger:    Ledger{Durability: DurabilityEffects},
			Intent:    Intent{SliceCapabilities: true}, Sessions: Sessions{IdleTTL: 10 * time.Minute, MaxResident: 100_000},
			Limits: DefaultLimits(), Approvals: Approvals{Timeout: 5 * time.Minute}, Pins: Pins{Tools: "keep"}, HookPolicy: HookPolicy{Rewrite: true},
		}
		if diff := cmp.Diff(want, c, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".settings" }, cmp.Ignore())); diff != "" {
			t.Errorf("defaults (-want +got):\n%s", diff)
		}
	}
}

func first(c Config, _ []capability.Problem) Config { return c }

func TestWholeFile(t *testing.T) {
	c, problems := parse(t, `
listen = "0.0.0.0:80"
data = "/var/lib/vak"

[mcp.servers.git]
command = "mcp-git"
args = ["--root", "."]
env = { TOKEN = "${GIT_TOKEN}" }
cwd = "repo"
serves = ["git", "Live_Data"]
isolation = "session"
idle_ttl = "1m"
start_timeout = "20s"
call_timeout = "30s"
max_in_flight = 2
enabled_tools = ["get_*"]
disabled_tools = ["get_secret"]
network = true

[mcp.servers.web]
url = "https://example.com/mcp"
headers.Authorization = "Bearer ${WEB}"
enabled = false

[[hooks]]
event = "pre_tool_use"
match = "write"
command = "./check.sh"
timeout_ms = 500
failure_mode = "closed"

[channels.slack]
tools = { allow = [], deny = ["bash"] }

[permissions]
mode = "read-only"
approval_timeout = "15m"
deny = ["bash"]

[tenants.acme]
workspace = "acme"
token_file = "acme.token"

[reconcile]
tick = "1s"
debounce = "10ms"
[ledger]
durability = "all"
[auth]
token_file = "t"
[intent]
slice_capabilities = false
[sessions]
idle_ttl = "1h"
max_resident = 7
[limits]
max_depth = 2
`)
	if len(problems) > 0 {
		t.Fatalf("problems: %+v", problems)
	}
	git := Server{
		Enabled: true, Transport: capability.TransportStdio, Command: "mcp-git", Args: []string{"--root", "."},
		Env: map[string]string{"TOKEN": "${GIT_TOKEN}"}, Cwd: "repo", Serves: capability.Domains{capability.LiveData, capability.VCS},
		Isolation: capability.IsolationSession, IdleTTL: time.Minute, StartTimeout: 20 * time.Second, CallTimeout: 30 * time.Second,
		MaxInFlight: 2, EnabledTools: []string{"get_*"}, DisabledTools: []string{"get_secret"}, Network: true, Line: 5,
	}
	web := DefaultServer()
	web.Enabled, web.Transport, web.URL, web.Line = false, capability.TransportHTTP, "https://example.com/mcp", 20
	web.Headers = map[string]string{"Authorization": "Bearer ${WEB}"}
	want := Config{
		Listen: "0.0.0.0:80", Data: "/var/lib/vak",
		MCP: map[string]Server{"git": git, "web": web},
		Hooks: []Hook{{
			Name: "pre-tool-use/./check.sh", Event: "pre-tool-use", Match: "write", Command: "./check.sh",
			Timeout: 500 * time.Millisecond, FailureMode: capability.FailClosed, Enabled: true, Line: 25,
		}},
		Channels: map[string]policy.ChannelRules{"slack": {Tools: policy.Filter{Allow: []string{}, Deny: []string{"bash"}}}},
		Permissions: policy.PermissionRules{
			Mode: "read-only", Deny: []string{"bash"}, Source: "vak.toml", Lines: policy.RuleLines{Mode: 36, Deny: []int{38}},
		},
		Approvals: Approvals{Timeout: 15 * time.Minute}, Pins: Pins{Tools: "keep"}, HookPolicy: HookPolicy{Rewrite: true},
		Tenants:   map[string]Tenant{"acme": {Workspace: "acme", TokenFile: "acme.token"}},
		Reconcile: Reconcile{Tick: time.Second, Debounce: 10 * time.Millisecond},
		Ledger:    Ledger{Durability: DurabilityAll}, Auth: Auth{TokenFile: "t"}, Intent: Intent{SliceCapabilities: false},
		Sessions: Sessions{IdleTTL: time.Hour, MaxResident: 7}, Limits: DefaultLimits(),
	}
	want.Limits.MaxDepth = 2
	c.settings = nil
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// Every code a file can cause, with its line and a word its text must hold.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ name, text, code, says string }{
		{"syntax", "listen = \"a\"\nx = = 1\n", "config_syntax:2", "TOML"},
		{"key twice", "listen = \"a\"\nlisten = \"b\"\n", "config_syntax:2", "TOML"},
		{"too many keys", strings.Repeat("x.y = 1\n", 20_001), "config_too_many:0", "20000 keys"},
		{"unknown key, nearest named", "[reconcile]\n\ntikc = \"1s\"\n", "config_unknown_key:3", "did you mean tick"},
		{"unknown key, none near", "[reconcile]\nxyzzyplugh = 1\n", "config_unknown_key:2", "known keys: debounce, tick"},
		{"unknown section", "[permisions]\nmode = \"x\"\n", "config_unknown_key:1", "did you mean permissions"},
		{"unknown key of a server", "[mcp.servers.a]\ncommand = \"a\"\nidle_tll = \"1s\"\n", "config_unknown_key:3", "idle_ttl"},
		{"unknown key of an inline server", "[mcp]\nservers.a = { command = \"a\",\n wat = 1 }\n", "config_unknown_key:3", "wat"},
		{"unknown key beside servers", "[mcp]\nserver.a.command = \"a\"\n", "config_unknown_key:2", "did you mean servers"},
		{"Codex spelling", "[mcp_servers.git]\ncommand = \"a\"\n", "config_unknown_key:1", "[mcp.servers.git]"},
		{"wrong type", "listen = 7717\n", "config_type:1", "must be a string, not an integer"},
		{"no duration", "[reconcile]\ntick = 10\n", "config_type:2", "duration such as"},
		{"bad duration", "[reconcile]\ntick = \"soon\"\n", "config_value:2", "duration such as"},
		{"duration out of bounds", "[reconcile]\ntick = \"-1s\"\n", "config_value:2", "between"},
		{"number out of bounds", "[limits]\nmax_depth = 0\n", "config_value:2", "between 1 and 64"},
		{"not one of", "[ledger]\ndurability = \"some\"\n", "config_value:2", "effects, all"},
		{"section is no table", "reconcile = 1\n", "config_type:1", "a table"},
		{"servers are no table", "[mcp]\nservers = []\n", "config_type:2", "a table"},
		{"server is no table", "[mcp.servers]\na = \"x\"\n", "config_type:2", "a table"},
		{"list of other things", "[mcp.servers.a]\ncommand = \"a\"\nargs = [1]\n", "config_type:3", "list of strings"},
		{"map of other things", "[mcp.servers.a]\ncommand = \"a\"\nenv = { A = \"x\",\nPORT = 1 }\n", "config_type:4", "PORT"},
		{"control character", "[mcp.servers.a]\ncommand = \"a\\u0007\"\n", "config_value:2", "control character"},
		{"server without transport", "[mcp.servers.a]\n\n", "server_transport:1", "neither a command nor a url"},
		{"server with two transports", "[mcp.servers.a]\ncommand = \"a\"\nurl = \"http://x\"\n", "server_transport:3", "both"},
		{"transport of the other field", "[mcp.servers.a]\ncommand = \"a\"\ntransport = \"http\"\n", "server_transport:3", "no url"},
		{"headers of a command", "[mcp.servers.a]\ncommand = \"a\"\nheaders = { A = \"b\" }\n", "server_transport:3", "headers"},
		{"url of another scheme", "[mcp.servers.a]\nurl = \"ws://x\"\n", "server_url:2", "http"},
		{"name with a slash", "[mcp.servers.\"a/b\"]\ncommand = \"a\"\n", "server_name:1", "slash"},
		{"name with dots", "[mcp.servers.\"..\"]\ncommand = \"a\"\n", "server_name:1", ".."},
		{"name too long", "[mcp.servers." + strings.Repeat("a", 65) + "]\ncommand = \"a\"\n", "server_name:1", "64"},
		{"command line in one string", "[mcp.servers.a]\ncommand = \"npx -y a\"\n", "server_command:2", "args"},
		{"header that cannot be sent", "[mcp.servers.a]\nurl = \"http://x\"\nheaders = { \"A B\" = \"c\" }\n", "server_value:3", "header"},
		{"foreign placeholder", "[mcp.servers.a]\nurl = \"http://x/${input:key}\"\n", "server_placeholder:1", "${input:key}"},
		{"secret in a url", "[mcp.servers.a]\nurl = \"http://x/?api_key=CANARY\"\n", "literal_secret:2", "url"},
		{"secret in args", "[mcp.servers.a]\ncommand = \"a\"\nargs = [\"--api-key\", \"CANARY\"]\n", "literal_secret:3", "args, entry 2"},
		{"secret in env", "[mcp.servers.a]\ncommand = \"a\"\nenv = { GH_TOKEN = \"ghp_CANARY0123456789\" }\n", "literal_secret:3", "GH_TOKEN"},
		{"not supported yet", "[cluster]\nnodes = 3\n", "config_unsupported:1", "not supported yet"},
		{"not supported either", "\n[components.x]\nprobe = \"y\"\n", "config_unsupported:2", "not supported yet"},
		{"tenant without workspace", "[tenants.a]\ntoken_file = \"x\"\n", "config_value:1", "workspace"},
		{"tenant name", "[tenants.\"a/b\"]\nworkspace = \"x\"\n", "config_name:1", "slash"},
		{"permission rule", "[permissions]\ndeny = [\n\t\"read\",\n\t\"bash(\",\n]\n", "permission_rule:4", "deny"},
		{"channel pattern", "[channels.a]\ntools = { deny = [\"[\"] }\n", "channel_pattern:2", "tools.deny"},
		{"hook without command", "[[hooks]]\nevent = \"stop\"\n", "config_value:1", "no command"},
		{"hook of another event", "[[hooks]]\ncommand = \"a\"\nevent = \"later\"\n", "config_value:3", "pre-tool-use"},
		{"hook match", "[[hooks]]\ncommand = \"a\"\nevent = \"pre-tool-use\"\nmatch = \"write(\"\n", "hook_match:4", "asked about every call"},
		{"second hook", "[[hooks]]\ncommand = \"a\"\nevent = \"stop\"\n[[hooks]]\ncommand = \"a\"\nevnt = \"stop\"\n", "config_unknown_key:6", "did you mean event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := parse(t, c.text)
			for _, p := range problems {
				if fmt.Sprintf("%s:%d", p.Code, p.Line) == c.code && strings.Contains(p.Message+" "+p.Hint, c.says) {
					if p.Path != "vak.toml" || p.Hint == "" && p.Severity == capability.SeverityError && !strings.HasPrefix(p.Code, "config_") {
						t.Errorf("incomplete problem %+v", p)
					}
					return
				}
			}
			t.Errorf("no problem %s that says %q in %+v", c.code, c.says, problems)
		})
	}
}

// One bad entry never costs another.
func TestEntriesAreReadOneByOne(t *testing.T) {
	c, problems := parse(t, `
[mcp.servers.good]
command = "a"
[mcp.servers.bad]
command = 1
[mcp.servers."../x"]
command = "a"
[[hooks]]
event = "stop"
command = "good"
[[hooks]]
event = "stop"
command = 1
[channels.good]
tools = { deny = ["a"] }
[channels.bad]
tools = 7
[tenants.good]
workspace = "w"
[tenants.bad]
workspace = false
[reconcile]
tick = 1
debounce = "1s"
`)
	if len(c.MCP) != 1 || c.MCP["good"].Command != "a" {
		t.Errorf("servers %+v", c.MCP)
	}
	if len(c.Hooks) != 1 || c.Hooks[0].Command != "good" {
		t.Errorf("hooks %+v", c.Hooks)
	}
	if len(c.Tenants) != 1 || c.Tenants["good"].Workspace != "w" {
		t.Errorf("tenants %+v", c.Tenants)
	}
	if c.Reconcile.Tick != 10*time.Second || c.Reconcile.Debounce != time.Second {
		t.Errorf("reconcile %+v", c.Reconcile)
	}
	if diff := cmp.Diff([]string{"a"}, c.Channels["good"].Tools.Deny); diff != "" {
		t.Errorf("channel good: %s", diff)
	}
	if len(problems) < 6 {
		t.Errorf("problems %v", codes(problems))
	}
}

// What restricts fails closed: neither a typing error nor a broken file may widen anything.
func TestRestrictionsFailClosed(t *testing.T) {
	for _, text := range []string{
		"[permissions]\ndeny = \"bash\"\n", "[permissions]\ndney = [\"bash\"]\n", "permissions = 1\n",
		"[permissions]\nmode = \"all\"\n", "[permissions\n",
	} {
		c, problems := parse(t, text)
		engine, _ := policy.CompileEngine(policy.Host{}, c.Permissions)
		if d := engine.Decide(policy.Request{Tool: "read", ReadOnly: true}); d.Effect != policy.Deny {
			t.Errorf("%q: a call of read is decided %v", text, d.Effect)
		}
		if len(problems) == 0 {
			t.Errorf("%q: no problem", text)
		}
	}
	for _, text := range []string{"[channels.a]\ntool = { deny = [\"x\"] }\n", "[channels]\na = 1\n", "[channels.a]\ntools = { deny = 1 }\n"} {
		c, _ := parse(t, text)
		rules, known := c.Channels["a"]
		channel, _ := policy.CompileChannel("a", rules)
		if !known || channel.AllowsTool("read") || channel.AllowsSkill("s") || channel.AllowsServer("m") || channel.AllowsHook("h") {
			t.Errorf("%q: an unreadable channel shows something", text)
		}
	}
}

// V145-V149: hooks are read by the one reader; advisory ones are dropped, fail-closed ones refuse, disabled ones stay.
func TestHooks(t *testing.T) {
	const good = "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"a\"\n"
	for _, c := range []struct {
		name, text string
		want       []string // name, with ! before a refusal and - before a disabled one
	}{
		{"V18 id", good, []string{"pre-tool-use/a"}},
		{"V146 advisory and unreadable", good + "[[hooks]]\nevent = \"stop\"\ncommand = 3\n", []string{"pre-tool-use/a"}},
		{"V147 fail-closed and unreadable", good + "[[hooks]]\nevent = \"stop\"\ncommand = 3\nfailure_mode = \"closed\"\n", []string{"pre-tool-use/a", "!pre-tool-use/hook-2"}},
		{"V147 fail-closed with an unknown key", "[[hooks]]\nevent = \"stop\"\ncommand = \"b\"\nfailure_mode = \"closed\"\nmach = \"x\"\n", []string{"!stop/b"}},
		{"V148 unreadable failure mode", "[[hooks]]\nevent = \"stop\"\ncommand = \"b\"\nfailure_mode = \"strict\"\n", []string{"!stop/b"}},
		{"V148 failure mode of another type", "[[hooks]]\nevent = \"stop\"\ncommand = \"b\"\nfailure_mode = 1\n", []string{"!stop/b"}},
		{"V149 disabled", good + "[[hooks]]\nevent = \"stop\"\ncommand = \"b\"\nenabled = false\n", []string{"pre-tool-use/a", "-stop/b"}},
		{"V149 disabled and unreadable", "[[hooks]]\nevent = \"stop\"\ncommand = \"b\"\nenabled = false\nfailure_mode = \"x\"\n", []string{"-stop/b"}},
		{"no list", "hooks = 1\n", []string{"!pre-tool-use/hook-1"}},
		{"no table", "hooks = [1]\n", []string{"!pre-tool-use/hook-1"}},
		{"written twice", good + good, []string{"pre-tool-use/a"}},
		{"a match that cannot be read", good + "match = \"write(\"\n", []string{"pre-tool-use/a"}},
		{"one command for two tools", good + good + "match = \"write\"\n", []string{"pre-tool-use/a", "pre-tool-use/a#2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, _ := parse(t, c.text)
			var got []string
			for _, h := range cfg.Hooks {
				switch {
				case h.Refusal != "":
					got = append(got, "!"+h.Name)
				case !h.Enabled:
					got = append(got, "-"+h.Name)
				default:
					got = append(got, h.Name)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffective(t *testing.T) {
	c, _ := parse(t, `
[mcp.servers.a]
command = "run"
args = ["--token", "CANARY1", "--root=/x"]
env = { TOKEN = "CANARY2", KEPT = "${KEPT}" }
[mcp.servers.b]
url = "https://user:CANARY3@h/mcp?key=CANARY4&page=2"
headers = { Authorization = "Bearer CANARY5" }
[reconcile]
tick = "1s"
`)
	got := map[string]Setting{}
	for _, s := range c.Effective(Setting{Key: "listen", Value: `"127.0.0.1:1"`}) {
		got[s.Key] = s
		if strings.Contains(s.Value, "CANARY") {
			t.Errorf("secret shown in %+v", s)
		}
	}
	for _, want := range []Setting{
		{"listen", `"127.0.0.1:1"`, "flag"},
		{"reconcile.tick", `"1s"`, "vak.toml:10"},
		{"reconcile.debounce", `"250ms"`, "default"},
		{"mcp.servers.a.args", `["--token", "***", "--root=/x"]`, "vak.toml:4"},
		{"mcp.servers.a.env.KEPT", `"${KEPT}"`, "vak.toml:5"},
		{"mcp.servers.a.env.TOKEN", `"***"`, "vak.toml:5"},
		{"mcp.servers.b.url", `"https://***@h/mcp?key=***&page=2"`, "vak.toml:7"},
		{"mcp.servers.b.isolation", `"shared"`, "default"},
	} {
		if got[want.Key] != want {
			t.Errorf("%s: got %+v, want %+v", want.Key, got[want.Key], want)
		}
	}
}

// V67 (syntax): ${NAME} and ${NAME:-default}; nothing else resolves, and an unresolved one is named, never sent.
func TestPlaceholders(t *testing.T) {
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "1", "EMPTY": "", "NEST": "${A}"}[name]
		return v, ok
	}
	for _, c := range []struct {
		text, want string
		missing    []string
	}{
		{"plain $A {A}", "plain $A {A}", nil},
		{"x${A}y${A}", "x1y1", nil},
		{"${EMPTY:-d}", "", nil},
		{"${B:-d}${B:-}", "d", nil},
		{"${NEST}", "${A}", nil},
		{"${B}/${C}", "/", []string{"B", "C"}},
		{"${input:key}${env:A}${}${1A}", "", []string{"input:key", "env:A", "", "1A"}},
		{"${A", "", []string{"A"}},
		{"${input:key:-d}", "", []string{"input:key"}},
	} {
		got, missing := Expand(c.text, lookup)
		if got != c.want || !cmp.Equal(missing, c.missing) {
			t.Errorf("Expand(%q) = %q, %q; want %q, %q", c.text, got, missing, c.want, c.missing)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"command", "args", "env", "idle_ttl", "call_timeout"}
	for key, want := range map[string]string{
		"comand": "command", "idle-ttl": "idle_ttl", "ENV": "env", "calltimeout": "call_timeout", "agrs": "args", "zzz": "", "": "",
	} {
		if got := Nearest(key, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", key, got, want)
		}
	}
}
