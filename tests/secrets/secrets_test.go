package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// remotes are the paths of the talkative server; each is a server of its own.
var remotes = []string{"401", "500", "redirect", "html", "error", "broken", "stream"}

// newWorld puts a canary into every place.
func newWorld(t *testing.T) (w *world, servers []string, heard func() string) {
	w = &world{T: t, folder: t.TempDir(), canaries: map[string]string{}}
	url, heard := w.talkative()
	command, _ := faulttest.Command(t)
	var vak strings.Builder
	server := func(name, entry string, args ...any) {
		servers = append(servers, name)
		fmt.Fprintf(&vak, "[mcp.servers.%s]\n"+entry+"\n", append([]any{name}, args...)...)
	}
	vak.WriteString("[permissions]\nmode = \"full-access\"\n")
	server("leaky", "command = %q\nargs = [\"-leak-env\", \"API_TOKEN\"]\nenv = { API_TOKEN = \"${FILE_TOKEN}\", OTHER_KEY = \"x ${ENV_TOKEN} y\" }", command)
	server("literal", "command = %q\nargs = [\"-leak-env\", \"API_TOKEN\"]\nenv = { API_TOKEN = %q }", command, w.canary("a literal of vak.toml"))
	server("args", "command = %q\nargs = [\"-stderr-flood\", \"10\", \"--\", \"--token=${ARGS_TOKEN}\"]", command)
	server("exits", "command = \"sh\"\nargs = [\"-c\", \"echo bad key $API_TOKEN >&2; exit 7\"]\nenv = { API_TOKEN = \"${FILE_TOKEN}\" }")
	server("babbles", "command = \"sh\"\nargs = [\"-c\", \"echo $API_TOKEN; echo '{' $API_TOKEN; echo '{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"error\\\":{\\\"code\\\":1,\\\"message\\\":\\\"'$API_TOKEN'\\\"}}'; sleep 1\"]\nenv = { API_TOKEN = \"${ENV_TOKEN}\" }\nstart_timeout = \"2s\"")
	server("absent", "command = \"/nowhere/${FILE_TOKEN}\"\nenv = { API_TOKEN = \"${FILE_TOKEN}\" }")
	server("elsewhere", "command = \"sh\"\ncwd = \"/nowhere/${FILE_TOKEN}\"")
	server("unresolved", "command = \"sh\"\nenv = { API_TOKEN = \"${FILE_TOKEN}${SET_NOWHERE}\" }")
	server("refuses", "url = \"http://127.0.0.1:1/mcp?key=${URL_TOKEN}\"")
	vak.WriteString("[mcp.servers.unreadable]\nurl = \"http://user:${URL_PASSWORD}@[::1:x/mcp\"\n") // is left out
	for _, path := range remotes {
		server("remote-"+path, "url = \"%s/%s?key=${URL_TOKEN}&literal_token=%s\"\nheaders = { Authorization = \"Bearer ${HEADER_TOKEN}\", X-Api-Key = %q }",
			url, path, w.canary("a literal of an url"), w.canary("a literal of a header"))
	}
	fmt.Fprintf(&vak, "[[hooks]]\nevent = \"pre-tool-use\"\nmatch = \"grep\"\ncommand = \"./hook.sh\"\nfailure_mode = \"closed\"\n")
	w.write("ws/vak.toml", vak.String())
	w.write("ws/hook.sh", "#!/bin/sh\nenv\nenv >&2\nexit 2\n")
	w.write("ws/.mcp.json", fmt.Sprintf(`{"mcpServers":{
		"json":{"command":%q,"args":["-leak-env","API_TOKEN"],"env":{"API_TOKEN":%q}},
		"bad1":{"command":["x"],"env":{"API_TOKEN":%q}},
		"bad2":{"command":"x","env":["API_TOKEN=%s"]},
		"bad3":{"type":"http","url":7,"headers":"Bearer %s"},
		"bad4":{"command":"x","api_tokn":%q}}}`, command, w.canary("a literal of mcp.json"),
		w.canary("an entry with a wrong command"), w.canary("env as a list"), w.canary("headers as a text"), w.canary("an unknown key")))
	w.write("ws/.claude/settings.json", fmt.Sprintf(`{"env":{"API_TOKEN":%q},"hooks":{"PreToolUse":[{"matcher":"Glob","hooks":[
		{"type":"http","url":"%s/500?key=%s","headers":{"Authorization":"Bearer $HOOK_TOKEN"},"allowedEnvVars":["HOOK_TOKEN"]}]}]}}`,
		w.canary("env of settings.json"), url, w.canary("the url of a hook")))
	servers = append(servers, "json", "plugin.kit.s")
	// Other programs' files, in the workspace and at home. They are followed, imported, or not read at all.
	for path, text := range map[string]string{
		"ws/.cursor/mcp.json":                            `{"mcpServers":{"cursor":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"ws/.vscode/mcp.json":                            `{"servers":{"vscode":{"type":"stdio","command":%q,"env":{"API_TOKEN":%q}}}}`,
		"ws/.codex/config.toml":                          "[mcp_servers.codex]\ncommand = %q\nenv = { API_TOKEN = %q }\n",
		"ws/.gemini/settings.json":                       `{"mcpServers":{"gemini":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"home/.claude.json":                              `{"mcpServers":{"c":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"home/.cursor/mcp.json":                          `{"mcpServers":{"c":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"home/.codex/config.toml":                        "[mcp_servers.c]\ncommand = %q\nenv = { API_TOKEN = %q }\n",
		"home/.gemini/settings.json":                     `{"mcpServers":{"c":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"home/.config/Claude/claude_desktop_config.json": `{"mcpServers":{"c":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
		"home/.config/Code/User/mcp.json":                `{"servers":{"c":{"command":%q,"env":{"API_TOKEN":%q}}}}`,
	} {
		w.write(path, fmt.Sprintf(text, command, w.canary(strings.ReplaceAll(strings.TrimPrefix(path, "ws/"), "/", " "))))
	}
	w.install(fmt.Sprintf(`{"name":"kit","version":"1.0.0",
		"userConfig":{"token":{"type":"string","title":"Token","description":"of the service","sensitive":true}},
		"mcpServers":{"s":{"command":%q,"args":["-leak-env","API_TOKEN"],"env":{"API_TOKEN":"${user_config.token}"}},
			"t":{"command":"/nowhere/x","args":["--token","${user_config.token}"],"env":{"API_TOKEN":%q}}}}`, command, w.canary("a literal of a plugin")))
	w.write("data/secrets.env", plugin.SecretName("kit", "token")+"="+w.canary("an option of a plugin")+fmt.Sprintf("\nFILE_TOKEN=%s\"\\x\nHEADER_TOKEN=%s\nURL_PASSWORD=%s\n",
		w.canary("secrets.env"), w.canary("a header"), w.canary("a password of an url")))
	w.write("token", w.canary("the token of the daemon")+"\n")
	w.write("home/.keep", "")
	w.env = childproc.Environment([]string{
		asProgram + "=1", "HOME=" + w.path("home"), "GORACE=atexit_sleep_ms=0",
		"ENV_TOKEN=" + w.canary("the environment"), "URL_TOKEN=" + w.canary("the query of an url"),
		"ARGS_TOKEN=" + w.canary("args"), "HOOK_TOKEN=" + w.canary("the environment of a hook"),
		"UNUSED_TOKEN=" + w.canary("what nobody asks for"),
	})
	return w, servers, heard
}

// install puts a plugin of that manifest in force.
func (w *world) install(manifest string) {
	w.Helper()
	w.write("kit/.claude-plugin/plugin.json", manifest)
	store := pluginstore.Open(host.PluginFolder(w.path("data"), ""))
	_, c, err := store.Install(w.Context(), pluginstore.Request{Source: w.path("kit"), Scope: "user"})
	if err == nil {
		_, err = store.Enable("kit", "user", plugin.Consent{Digest: c.Digest, Scope: "user", Brings: c.Brings.Digest()}, nil)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// No canary appears in any log, report, ledger, file, argv or error, whatever fails and whoever asks.
func TestNoSecretComesOut(t *testing.T) {
	w, servers, heard := newWorld(t)
	url, daemon := w.daemon()
	servers = w.declared(servers)
	w.useVerbs(servers)
	w.useMCP(url, servers)
	w.useAPI(url)
	w.processes(daemon.PID())
	w.verb("ledger", "verify")
	for id := range w.sessions() {
		w.verb("ledger", "show", id)
		w.verb("ledger", "export", id)
		w.verb("session", "show", id)
	}
	w.restart(daemon)

	// What was meant for it did arrive, and what came back went by the redactor.
	for place := range map[string]bool{"a header": true, "the query of an url": true, "a literal of an url": true, "a literal of a header": true} {
		if !strings.Contains(heard(), w.canaries[place]) {
			t.Errorf("the remote servers were not sent %s", place)
		}
	}
	if all := w.all(); strings.Count(all, "[redacted]") < 20 {
		t.Errorf("only %d secrets were taken out of what came", strings.Count(all, "[redacted]"))
	}
	w.search()
}

// declared are all servers that the daemon knows of, these among them.
func (w *world) declared(these []string) []string {
	w.Helper()
	var list struct{ Servers []struct{ Name string } }
	said := w.run("", "servers", "list", "--json", "--data", w.path("data"))
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&list); err != nil {
		w.Fatalf("no servers: %v in %s", err, said)
	}
	var all []string
	for _, s := range list.Servers {
		all = append(all, s.Name)
	}
	for _, s := range these {
		if s != "unreadable" && !slices.Contains(all, s) {
			w.Errorf("the server %s is not declared", s)
		}
	}
	return all
}

// restart stops the daemon, and looks at what the next one says of the same world.
func (w *world) restart(p *childproc.Process) {
	w.Helper()
	w.end(p)
	w.verb("report")
	w.verb("doctor")
	brought := 0
	for _, client := range clients {
		brought += strings.Count(w.run("", "import", client, "--user", "--data", w.path("data"), "-v"), "API_TOKEN")
	}
	if brought == 0 {
		w.Error("nothing was imported")
	}
	w.left()
	w.verb("check")
	w.verb("report")
	for _, client := range clients {
		w.run("", "import", client, "--user", "--undo", "--data", w.path("data"), "--json")
	}
}

var clients = []string{"claude", "claude-desktop", "cursor", "vscode", "codex", "gemini"}

// useVerbs runs every verb that tells something, against the daemon; what this program does not know of them it refuses.
func (w *world) useVerbs(servers []string) {
	w.Helper()
	for _, args := range [][]string{
		{"check", "--strict"},
		{"report"},
		{"doctor"},
		{"config"},
		{"servers", "list"},
		{"session", "list"},
		{"find", "key token"},
		{"approvals", "list"},
		{"learned", "list"},
		{"pins", "list"},
		{"plugin", "list"},
		{"preflight", "mcp:leaky", "mcp:exits"},
		{"surface", "lock"},
		{"surface", "check"},
		{"import", "claude", "--dry-run"},
		{"import", "claude-desktop", "--dry-run"},
		{"import", "cursor", "--dry-run"},
		{"import", "vscode", "--dry-run"},
		{"import", "codex", "--dry-run"},
		{"import", "gemini", "--dry-run"},
		{"call", "grep", `{"pattern":"x"}`},
		{"call", "glob", `{"pattern":"*"}`},
		{"call", "mcp", `{"action":"list"}`},
		{"reload"},
	} {
		if args[0] == "check" || args[0] == "config" { // they read the workspace themselves
			w.run("", args...)
			w.run("", append(args, "--json", "-v")...)
			continue
		}
		w.verb(args...)
	}
	for _, client := range clients {
		w.verb("import", client, "--dry-run")
	}
	for _, s := range servers {
		w.verb("servers", "probe", s)
		for _, tool := range []string{"env", "leak", "fail", "crash", "nothing"} {
			w.verb("call", "mcp", fmt.Sprintf(`{"action":"call","server":%q,"tool":%q}`, s, tool), "--session", "verbs")
		}
		w.verb("call", "mcp", fmt.Sprintf(`{"action":"list","server":%q}`, s))
		w.verb("servers", "logs", s)
	}
	w.verb("find", "uses the key")
	w.verb("report")
	w.verb("doctor")
	w.verb("servers", "list")
	w.verb("revoke", "mcp:leaky", "--reason", "a test")
	w.verb("call", "mcp", `{"action":"call","server":"leaky","tool":"env"}`)
	w.verb("restore", "mcp:leaky")
}

// useMCP speaks MCP with the daemon, over HTTP and over stdio.
func (w *world) useMCP(url string, servers []string) {
	w.Helper()
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	calls := []string{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`}
	for i, s := range append(servers, "nobody") {
		for j, tool := range []string{"env", "leak", "fail"} {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s__%s","arguments":{}}}`, 10*i+j+10, s, tool))
		}
	}
	w.post(url+"/mcp", "wrong-"+w.canaries["the token of the daemon"], "", initialize)
	answer := w.post(url+"/mcp", w.canaries["the token of the daemon"], "", initialize)
	session := ""
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, "Mcp-Session-Id: "); ok {
			session = strings.TrimSpace(value)
		}
	}
	for _, c := range calls {
		w.post(url+"/mcp", w.canaries["the token of the daemon"], session, c)
	}
	frames := initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + strings.Join(calls, "\n") + "\n"
	if said := w.run(frames, "mcp", "-v", "--data", w.path("data")); !strings.Contains(said, "[redacted]") {
		w.Errorf("over stdio no server was reached: %.2000s", said)
	}
}

// useAPI speaks with the Connect API, rightly and wrongly.
func (w *world) useAPI(url string) {
	w.Helper()
	token := w.canaries["the token of the daemon"]
	for _, call := range [][2]string{
		{"vak.v1.SessionService/OpenSession", `{"sessionId":"api"}`},
		{"vak.v1.SessionService/Dispatch", `{"sessionId":"api","name":"leaky/env"}`},
		{"vak.v1.SessionService/Dispatch", `{"sessionId":"api","name":"literal/leak"}`},
		{"vak.v1.SessionService/ListTools", `{"sessionId":"api"}`},
		{"vak.v1.SessionService/BeginTurn", `{"sessionId":"api","format":"nothing"}`},
		{"vak.v1.RegistryService/GetReport", `{}`},
		{"vak.v1.ServerService/ListServers", `{}`},
		{"vak.v1.ServerService/GetServerLogs", `{"name":"leaky"}`},
		{"vak.v1.ServerService/ProbeServer", `{"name":"exits"}`},
		{"vak.v1.LedgerService/ReadLedger", `{"sessionId":"verbs"}`},
		{"vak.v1.LedgerService/ReadLedger", `{"sessionId":["x"]}`},
	} {
		for _, t := range []string{token, "x" + token, ""} {
			w.post(url+"/"+call[0], t, "", call[1])
		}
	}
}

// sessions are the ids of all sessions.
func (w *world) sessions() map[string]bool {
	w.Helper()
	said := w.run("", "session", "list", "--json", "--limit", "1000", "--data", w.path("data"))
	var list struct{ Sessions []struct{ Session string } }
	if err := json.NewDecoder(strings.NewReader(said)).Decode(&list); err != nil || len(list.Sessions) == 0 {
		w.Fatalf("no sessions: %v in %s", err, said)
	}
	all := map[string]bool{}
	for i, s := range list.Sessions { // those of verbs are alike; a few of them will do
		if i < 8 || !strings.HasPrefix(s.Session, "s-") {
			all[s.Session] = true
		}
	}
	return all
}

// processes looks at the command lines and environments of everything that the daemon started and that still runs.
func (w *world) processes(daemon int) {
	w.Helper()
	running := 0
	for _, pid := range descendants(w.T, daemon) {
		folder := filepath.Join("/proc", strconv.Itoa(pid))
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		running++
		if args := strings.ReplaceAll(string(line), "\x00", " "); !strings.Contains(args, "--token="+w.canaries["args"]) {
			w.heard("the command line of a child", args)
		}
		env, _ := os.ReadFile(filepath.Join(folder, "environ"))
		for _, place := range []string{"what nobody asks for", "the token of the daemon", "the query of an url", "a header", "args"} {
			if strings.Contains(string(env), w.canaries[place]) {
				w.Errorf("%s has inherited %s", strings.ReplaceAll(string(line), "\x00", " "), place)
			}
		}
	}
	if running < 3 {
		w.Errorf("only %d children run", running)
	}
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(daemon), "cmdline"))
	if err != nil {
		w.Fatal(err)
	}
	w.heard("the command line of the daemon", string(line))
}

// descendants lists the processes below a process.
func descendants(t *testing.T, root int) []int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	var below []int
	for pid := range parents {
		for p := parents[pid]; p > 1; p = parents[p] {
			if p == root {
				below = append(below, pid)
				break
			}
		}
	}
	return below
}

func (w *world) all() string {
	var all strings.Builder
	for _, o := range w.out {
		all.WriteString(o.text + "\n")
	}
	return all.String()
}

// search looks for every canary in everything, plainly and in base64.
func (w *world) search() {
	w.Helper()
	size, reported := 0, map[string]int{}
	for _, o := range w.out {
		size += len(o.text)
		for place, canary := range w.canaries {
			for _, form := range forms(canary) {
				at := strings.Index(o.text, form)
				if at < 0 {
					continue
				}
				if reported[place]++; reported[place] <= 4 {
					w.Errorf("the secret of %s comes out of %.100s: ...%q", place, o.from, o.text[max(0, at-160):min(len(o.text), at+len(form)+40)])
				}
				break
			}
		}
	}
	w.Logf("%d canaries in %d outputs of %d bytes", len(w.canaries), len(w.out), size)
}

// forms are the texts by which a secret is known. In base64 it has three, by where it begins.
func forms(canary string) []string {
	all := []string{canary}
	for shift := range 3 {
		code := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		all = append(all, code[(shift*8+5)/6+1:len(code)-2])
	}
	return all
}

// Files that cannot be read are reported without what stands in them.
func TestNoSecretOfABrokenFileComesOut(t *testing.T) {
	for name, file := range map[string][2]string{
		"a table of TOML":         {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = %q oops }\n"},
		"a text of TOML":          {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = %q\n"},
		"a list of TOML":          {"vak.toml", "[mcp.servers.s]\nurl = \"http://x\"\nheaders = [%q]\n"},
		"an open text of TOML":    {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = \"%s\n"},
		"an unknown key":          {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\napi_tokn = %q\n"},
		"a duration":              {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nidle_ttl = %q\n"},
		"a default":               {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = \"${X:-%s}\" }\n"},
		"a default in args":       {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nargs = [\"--api-key=${X:-%s}\"]\n"},
		"a default in a URL":      {"vak.toml", "[mcp.servers.s]\nurl = \"http://h/?api_key=${X:-%s}\"\n"},
		"a default in JSON":       {".mcp.json", `{"mcpServers":{"s":{"command":"x","env":{"API_TOKEN":"${X:-%s}"}}}}`},
		"text before a name":      {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = \"%s${X}\" }\n"},
		"an open placeholder":     {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = \"${%s\" }\n"},
		"a URL that is none":      {"vak.toml", "[mcp.servers.s]\nurl = \"http://user:%s@[::1\"\n"},
		"a second key of TOML":    {"vak.toml", "[mcp.servers.s]\ncommand = \"x\"\nenv = { API_TOKEN = \"a\", API_TOKEN = %q }\n"},
		"JSON that breaks off":    {".mcp.json", `{"mcpServers":{"s":{"command":"x","env":{"API_TOKEN":%q`},
		"JSON with a bad escape":  {".mcp.json", `{"mcpServers":{"s":{"command":"x","env":{"API_TOKEN":"\x%s"}}}}`},
		"JSON of another type":    {".mcp.json", `{"mcpServers":{"s":{"command":"x","env":%q}}}`},
		"JSON without a key":      {".mcp.json", `{"mcpServers":{"s":{"command":"x","env":{%q}}}}`},
		"settings that break off": {".claude/settings.json", `{"env":{"API_TOKEN":%q`},
		"settings of a type":      {".claude/settings.json", `{"env":%q,"permissions":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, folder: t.TempDir(), canaries: map[string]string{}}
			w.write("ws/"+file[0], fmt.Sprintf(file[1], w.canary(name)))
			w.write("home/.keep", "")
			w.env = childproc.Environment([]string{asProgram + "=1", "HOME=" + w.path("home"), "GORACE=atexit_sleep_ms=0"})
			for _, verb := range []string{"check", "config", "report", "doctor", "servers list"} {
				w.run("", append(strings.Fields(verb), "-v")...)
				w.run("", append(strings.Fields(verb), "--json")...)
			}
			w.files("home")
			w.search()
		})
	}
}
