package corpus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
)

// naturalPath is where the program that a file was written for keeps it in a project.
func naturalPath(group []row) string {
	file := group[0].file
	base, ext := path.Base(file), path.Ext(file)
	root := ""
	for _, r := range group {
		root = cmp.Or(root, r.detail.Root)
	}
	in := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(file, p) })
	}
	switch {
	case ext == ".toml":
		return ".codex/config.toml"
	case ext == ".yml" || ext == ".yaml":
		return ".continue/config.yaml"
	case root == "context_servers", in("/.zed/", "/zed"):
		return ".zed/settings.json"
	case root == "mcp", strings.HasPrefix(base, "opencode"):
		return "opencode.json"
	case root == "mcp.servers":
		return ".vscode/settings.json"
	case in("/.cursor/", "/cursor"):
		return ".cursor/mcp.json"
	case root == "servers", in("/.vscode/"):
		return ".vscode/mcp.json"
	case in("/.gemini/", "gemini.json", "gemini-cli"):
		return ".gemini/settings.json"
	case in("/.roo/"):
		return ".roo/mcp.json"
	case in("claude_desktop", "claude-desktop"):
		return "claude_desktop_config.json"
	}
	return ".mcp.json"
}

// readServers reads a file at its natural path: through a workspace where the path is part of one.
func readServers(t *testing.T, dir, file, at string) (servers []declare.MCPServer, problems []capability.Problem) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	read := declare.ReadMCP(at, text)
	if !slices.ContainsFunc(declare.WorkspaceLayout().Files, func(f declare.File) bool { return f.Path == at }) {
		return read.Servers, read.Problems
	}
	old := time.Unix(1_000_000, 0)
	result, err := declare.NewScanner(declare.Options{}).Scan(fstest.MapFS{at: {Data: text, ModTime: old}}, old.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	declared := slices.DeleteFunc(slices.Clone(read.Servers), func(s declare.MCPServer) bool { return !s.Server.Enabled })
	inWorkspace := slices.DeleteFunc(slices.Clone(result.Declarations), func(d capability.Declaration) bool { return d.ID.Kind != capability.KindMCP })
	if len(declared) != len(inWorkspace) {
		t.Errorf("%s: %d servers are read and %d declared", file, len(declared), len(inWorkspace))
	}
	for _, s := range declared {
		if !slices.ContainsFunc(result.Declarations, func(d capability.Declaration) bool { return d.ID.Name == s.ID && d.Source == at }) {
			t.Errorf("%s: %s is read and not declared", file, s.ID)
		}
	}
	return read.Servers, result.Problems
}

// Every server of every file, in the dialect of the program it was written for: what the table calls ok is read exactly,
// what it calls an error costs that entry alone, and what it leaves to us is decided below. V209
func TestServers(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	c := newTally()
	for _, group := range rows(t, dir, "mcp") {
		servers, problems := readServers(t, dir, group[0].file, naturalPath(group))
		for _, r := range group {
			c.count(r, serverRow(r, group, servers, problems))
		}
		if extra := len(servers) - declaredRows(group); extra != 0 {
			t.Errorf("%s: %d servers more than the table knows", group[0].file, extra)
		}
	}
	for _, verdict := range slices.Sorted(maps.Keys(c.rows)) {
		t.Logf("servers %s: %d of %d rows match", verdict, c.matched[verdict], c.rows[verdict])
	}
	for _, d := range c.differ {
		t.Error(d)
	}
}

// declaredRows counts the servers that a file is expected to declare, those that are switched off included.
func declaredRows(group []row) (n int) {
	for _, r := range group {
		if r.expect != "file" && r.verdict != "error" {
			n++
		}
	}
	return n
}

// broken are the problems that cost a whole file.
var broken = []string{"mcp_syntax", "config_syntax", "file_empty"}

// serverRow compares one server, or the file as a whole, with its row.
func serverRow(r row, group []row, servers []declare.MCPServer, problems []capability.Problem) error {
	if r.expect == "file" {
		return serverFile(r, group, problems)
	}
	name := strings.TrimPrefix(r.expect, "mcp:")
	i := slices.IndexFunc(servers, func(s declare.MCPServer) bool { return s.Name == name })
	about := func(p capability.Problem) bool {
		return p.Line > 0 && (strings.HasPrefix(p.Message, fmt.Sprintf("server %q ", name)) || strings.HasPrefix(p.Message, "server "+name+" "))
	}
	failed := slices.ContainsFunc(problems, func(p capability.Problem) bool { return p.Severity == capability.SeverityError && about(p) })
	switch {
	case r.verdict == "error":
		if i >= 0 || !failed {
			return fmt.Errorf("declared %t, reported %t: %v", i >= 0, failed, problems)
		}
		return nil
	case i < 0 || failed:
		return fmt.Errorf("declared %t, reported %t: %v", i >= 0, failed, problems)
	case servers[i].Server.Enabled == (r.reason == "switched off"):
		return fmt.Errorf("switched on %t", servers[i].Server.Enabled)
	case r.reason == "env is list": // decided: a list of NAME=value is what it looks like
		if _, found := servers[i].Server.Env["API_KEY"]; !found {
			return fmt.Errorf("env %v", servers[i].Server.Env)
		}
		return nil
	}
	ignores := slices.ContainsFunc(problems, func(p capability.Problem) bool {
		return about(p) && (p.Code == "mcp_unsupported" || p.Code == "mcp_unknown_key")
	})
	return sameServer(r, servers[i], ignores)
}

func serverFile(r row, group []row, problems []capability.Problem) error {
	code := func(codes ...string) bool {
		return slices.ContainsFunc(problems, func(p capability.Problem) bool { return slices.Contains(codes, p.Code) })
	}
	switch {
	case (r.verdict == "error") != code(broken...):
		return fmt.Errorf("problems %v", problems)
	case strings.Contains(r.reason, "jsonc:") && r.verdict == "ok" && !code("mcp_jsonc"):
		return fmt.Errorf("comments or trailing commas are not reported")
	case strings.HasPrefix(r.reason, "yaml dialect") && !code("file_not_read"): // decided: YAML is named and not read
		return fmt.Errorf("problems %v", problems)
	case strings.HasPrefix(r.reason, "server section is a list") && !code("mcp_entry"): // decided: refused
		return fmt.Errorf("problems %v", problems)
	case strings.HasPrefix(r.reason, "duplicate key") && !code("mcp_duplicate_same"): // decided: alike is a warning
		return fmt.Errorf("problems %v", problems)
	case r.verdict == "ok" && r.detail.N != len(group)-1:
		return fmt.Errorf("the table has %d servers", len(group)-1)
	}
	return nil
}

// sameServer compares a server with its row. ignores tells that a key of it is named and not read.
func sameServer(r row, got declare.MCPServer, ignores bool) error {
	s, d := got.Server, r.detail
	if name := strings.TrimPrefix(r.expect, "mcp:"); got.ID != name && s.Title != name {
		return fmt.Errorf("addressed as %s, called %s", got.ID, s.Title)
	}
	args := d.args()
	for i := range args {
		args[i] = portable(args[i])
	}
	headers := slices.Sorted(maps.Keys(s.Headers))
	if d.BearerVar != "" {
		if s.Headers["Authorization"] != "Bearer ${"+d.BearerVar+"}" {
			return fmt.Errorf("no bearer token of %s", d.BearerVar)
		}
		headers = slices.DeleteFunc(headers, func(h string) bool { return h == "Authorization" })
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if s.Env[name] != "${"+name+":-}" { // passed on by env_vars, which the table does not list
			env = append(env, name)
		}
	}
	switch {
	case d.Transport == "http?" && s.Transport != capability.TransportHTTP && !strings.Contains(r.file, "gemini"),
		d.Transport != "http?" && d.Transport != string(s.Transport):
		return fmt.Errorf("transport %s", s.Transport)
	case portable(d.Command) != s.Command || portable(d.URL) != s.URL || !slices.Equal(args, s.Args):
		return fmt.Errorf("command %q, args %q, url %q", s.Command, s.Args, s.URL)
	case portable(d.Cwd) != s.Cwd:
		return fmt.Errorf("cwd %q", s.Cwd)
	case !slices.Equal(d.Env, env) || !slices.Equal(d.Headers, headers):
		return fmt.Errorf("env %v, headers %v", env, headers)
	case len(d.IncludeTools)+len(d.EnabledTools) > 0 && !slices.Equal(slices.Concat(d.IncludeTools, d.EnabledTools), s.EnabledTools),
		!slices.Equal(slices.Concat(d.ExcludeTools, d.DisabledTools, d.DisabledToolsTOML), s.DisabledTools):
		return fmt.Errorf("tools %v, without %v", s.EnabledTools, s.DisabledTools)
	case d.StartupSeconds > 0 && s.StartTimeout != time.Duration(d.StartupSeconds*float64(time.Second)):
		return fmt.Errorf("start timeout %v", s.StartTimeout)
	case len(d.AutoApprove)+len(d.AlwaysAllow) != len(got.Proposals) && !d.Trust:
		return fmt.Errorf("proposals %v", got.Proposals)
	}
	want, found := d.vars(), vars(r, s)
	if ignores { // its placeholders are in the table, too
		want = slices.DeleteFunc(want, func(name string) bool { return !slices.Contains(found, name) })
	}
	if !slices.Equal(want, found) {
		return fmt.Errorf("placeholders %v, want %v", found, want)
	}
	return nil
}

var (
	foreign    = regexp.MustCompile(`\$\{env:([A-Za-z0-9_]+)\}`)
	separators = strings.NewReplacer("${/}", "/")
)

// portable writes the placeholders of a row as this program does.
func portable(text string) string {
	return separators.Replace(foreign.ReplaceAllString(text, "$${$1}"))
}

// vars are the names of the placeholders of a row, whatever they look like there.
func (d detail) vars() []string {
	var all []string
	for kind, names := range d.Vars {
		for _, name := range names {
			if kind == "input" {
				name = config.InputName(name)
			}
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// vars are the names of the placeholders that a server was read with. Those that this program never fills stand for no
// name, and a null of env is none in the table.
func vars(r row, s config.Server) []string {
	var all []string
	for name := range s.Env {
		if s.Env[name] == "${"+name+":-}" { // passed on by env_vars
			s.Env = maps.Clone(s.Env)
			delete(s.Env, name)
		}
	}
	for text := range s.Texts {
		for _, p := range config.Placeholders(text) {
			if !p.Malformed && p.Name != r.detail.BearerVar && (r.reason != "env value not a string" || p.Name != "FALLBACK_VAR") {
				all = append(all, p.Name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// serverDetail is what the table says of a server.
type serverDetail struct {
	N         int                 `json:"n"`
	Root      string              `json:"root"`
	Transport string              `json:"transport"`
	Command   string              `json:"command"`
	Args      json.RawMessage     `json:"args"` // of a server a list, of a command of another dialect a flag
	URL       string              `json:"url"`
	Cwd       string              `json:"cwd"`
	Env       []string            `json:"env"`
	Headers   []string            `json:"headers"`
	Vars      map[string][]string `json:"vars"`

	IncludeTools      []string `json:"includeTools"`
	EnabledTools      []string `json:"enabled_tools"`
	ExcludeTools      []string `json:"excludeTools"`
	DisabledTools     []string `json:"disabledTools"`
	DisabledToolsTOML []string `json:"disabled_tools"`
	StartupSeconds    float64  `json:"startup_timeout_sec"`
	BearerVar         string   `json:"bearer_token_env_var"`
	AutoApprove       []string `json:"autoApprove"`
	AlwaysAllow       []string `json:"alwaysAllow"`
	Trust             bool     `json:"trust"`
}

func (d serverDetail) args() []string {
	var args []string
	if len(d.Args) > 0 && json.Unmarshal(d.Args, &args) != nil {
		return nil
	}
	return args
}
