package importer

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// clientFiles has one user-level file of every client, each with one server, one secret and one server that is off.
var clientFiles = map[string]string{
	".claude.json": `{"numStartups": 3, "mcpServers": {"cl-user": {"command": "c", "env": {"API_KEY": "CANARY-claude"}},
		"both": {"command": "user"}}, "projects": {"WS": {"mcpServers": {"both": {"command": "local"}}}, "/elsewhere": {"mcpServers": {"not": {"command": "c"}}}}}`,
	".claude/settings.json":                     `{"permissions": {"allow": ["Bash(git:*)"]}}`,
	".config/Claude/claude_desktop_config.json": `{"mcpServers": {"cd": {"command": "c", "args": ["--api-key", "CANARY-desktop", "x"]}}}`,
	".cursor/mcp.json":                          `{"mcpServers": {"cu": {"url": "https://h/mcp?api_key=CANARY-cursor&a=b"}, "old": {"type": "ws", "url": "wss://h/x"}, "str": {"type": "sse", "url": "https://h/stream"}}}`,
	".config/Code/User/mcp.json":                `{"inputs": [{"id": "k", "type": "promptString"}], "servers": {"vs": {"command": "c", "env": {"K": "${input:k}"}, "autoApprove": ["t"]}}}`,
	".codex/config.toml":                        "[mcp_servers.co]\nurl = \"https://h/mcp\"\nhttp_headers = { Authorization = \"Bearer CANARY-codex\" }\n[mcp_servers.off]\ncommand = \"c\"\nenabled = false\n",
	".gemini/settings.json":                     `{"mcpServers": {"ge": {"httpUrl": "https://u:CANARY-gemini@h/mcp", "trust": true, "timeout": 5000, "excludeTools": ["x"]}}}`,
}

type setup struct {
	Request
	foreign map[string]stat
}

type stat struct {
	text string
	time time.Time
}

func newSetup(t *testing.T, client string) *setup {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{Request: Request{Client: client, Home: dir + "/home", Workspace: dir + "/ws", Target: dir + "/ws", Data: dir + "/data"}}
	if err := os.MkdirAll(s.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range clientFiles {
		file := filepath.Join(s.Home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "WS", s.Workspace)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.foreign = s.home(t)
	return s
}

func (s *setup) home(t *testing.T) map[string]stat {
	t.Helper()
	all := map[string]stat{}
	err := filepath.WalkDir(s.Home, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[name] = stat{time: info.ModTime()}
		if d.IsDir() {
			return nil
		}
		text, err := os.ReadFile(name)
		all[name] = stat{string(text), info.ModTime()}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *setup) untouched(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(s.foreign, s.home(t), cmp.AllowUnexported(stat{})); diff != "" {
		t.Errorf("files of other programs were touched: %s", diff)
	}
}

func (s *setup) read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *setup) run(t *testing.T) *Plan {
	t.Helper()
	p, err := Prepare(s.Request, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	return p
}

func actions(p *Plan) map[string]Action {
	all := map[string]Action{}
	for _, i := range p.Items {
		all[i.Name] = i.Action
	}
	return all
}

// Each client's servers come in, their secrets and approvals do not, the client's files stay as they are, and undo leaves
// nothing behind.
func TestImport(t *testing.T) {
	for client, want := range map[string]struct {
		actions   map[string]Action
		secret    string
		lacks     string
		proposals []string
	}{
		"claude":         {map[string]Action{"cl-user": Take, "both": Take}, "CL_USER_API_KEY=CANARY-claude\n", `"user"`, []string{"Bash(git:*)"}},
		"claude-desktop": {map[string]Action{"cd": Take}, "CD_API_KEY=CANARY-desktop\n", "CANARY", nil},
		"cursor":         {map[string]Action{"cu": Take, "old": Skip, "str": Take}, "CU_API_KEY=CANARY-cursor\n", "wss", nil},
		"vscode":         {map[string]Action{"vs": Take}, "", "input:", []string{"vs/t"}},
		"codex":          {map[string]Action{"co": Take, "off": Skip}, "CO_AUTHORIZATION=Bearer CANARY-codex\n", "off", nil},
		"gemini":         {map[string]Action{"ge": Take}, "GE_USER=u:CANARY-gemini\n", "trust", []string{"ge/*"}},
	} {
		t.Run(client, func(t *testing.T) {
			s := newSetup(t, client)
			const own = "# mine\r\n[permissions]\ndeny = [\"bash\"]" // without a line end
			settings, secrets := filepath.Join(s.Target, configFile), filepath.Join(s.Data, secretsFile)
			if err := os.WriteFile(settings, []byte(own), 0o640); err != nil {
				t.Fatal(err)
			}
			plan, err := Prepare(s.Request, now)
			if err != nil {
				t.Fatal(err)
			}
			if s.read(t, settings) != own {
				t.Error("preparing writes")
			}
			if _, err := os.Stat(s.Data); err == nil {
				t.Error("preparing makes the data folder")
			}
			if diff := cmp.Diff(want.actions, actions(plan)); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(plan.Diff, "CANARY") {
				t.Errorf("the diff tells a secret:\n%s", plan.Diff)
			}
			if !slices.Equal(want.proposals, plan.Proposals) && len(want.proposals)+len(plan.Proposals) > 0 {
				t.Errorf("proposals %q", plan.Proposals)
			}
			if err := plan.Apply(); err != nil {
				t.Fatal(err)
			}
			text := s.read(t, settings)
			if !strings.HasPrefix(text, own+"\n") || strings.Contains(text, "CANARY") || strings.Contains(text, want.lacks) || strings.Contains(text, "allow") {
				t.Errorf("written: %s", text)
			}
			if want.secret != "" {
				info, err := os.Stat(secrets)
				if err != nil || info.Mode().Perm() != 0o600 || s.read(t, secrets) != want.secret {
					t.Errorf("secrets %v, %v", info, err)
				}
			}
			got, problems := config.Parse(configFile, []byte(text))
			for name, action := range want.actions {
				if _, there := got.MCP[name]; there != (action == Take) {
					t.Errorf("%s: %v", name, problems)
				}
			}
			s.untouched(t)

			again := s.run(t)
			if len(again.edits) != 0 || s.read(t, settings) != text {
				t.Errorf("a second import writes: %s", again.Diff)
			}
			if _, err := Undo(s.Request); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(settings); err != nil || s.read(t, settings) != own || info.Mode().Perm() != 0o640 {
				t.Errorf("after undo: %v, %q", err, s.read(t, settings))
			}
			if _, err := os.Stat(secrets); err == nil {
				t.Error("undo leaves the secrets")
			}
			s.untouched(t)
			if _, err := Undo(s.Request); vakerr.CodeOf(err) != vakerr.InvalidRequest {
				t.Errorf("a second undo: %v", err)
			}
		})
	}
}

// What somebody changed since is not overwritten, neither by undo nor by an import that was prepared before.
func TestChangedSince(t *testing.T) {
	s := newSetup(t, "claude")
	settings := filepath.Join(s.Target, configFile)
	plan, err := Prepare(s.Request, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, []byte("# edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); vakerr.CodeOf(err) != vakerr.ConfigInvalid {
		t.Errorf("apply: %v", err)
	}
	s.run(t)
	edited := s.read(t, settings) + "# and more\n"
	if err := os.WriteFile(settings, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	before := s.read(t, filepath.Join(s.Data, secretsFile))
	if _, err := Undo(s.Request); vakerr.CodeOf(err) != vakerr.ConfigInvalid {
		t.Errorf("undo: %v", err)
	}
	if s.read(t, settings) != edited || s.read(t, filepath.Join(s.Data, secretsFile)) != before {
		t.Error("a refused undo writes")
	}
}

// A name that the workspace has is reported, wherever it is declared, and so is a secret of another value.
func TestTakenNames(t *testing.T) {
	s := newSetup(t, "claude")
	files := map[string]string{
		filepath.Join(s.Target, configFile):   "[mcp.servers.both]\ncommand = \"mine\"\n",
		filepath.Join(s.Target, ".mcp.json"):  `{"mcpServers": {"cl-user": {"command": "mine"}}}`,
		filepath.Join(s.Target, ".keep"):      "",
		filepath.Join(s.Target, "other.json"): "{}",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plan := s.run(t)
	if diff := cmp.Diff(map[string]Action{"cl-user": Taken, "both": Taken}, actions(plan)); diff != "" {
		t.Error(diff)
	}
	for name, text := range files {
		if s.read(t, name) != text {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Data, secretsFile)); err == nil {
		t.Error("secrets of a server that is not taken are kept")
	}

	other := newSetup(t, "claude")
	if err := os.MkdirAll(other.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other.Data, secretsFile), []byte("CL_USER_API_KEY=else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := actions(other.run(t)); got["cl-user"] != Skip || got["both"] != Take {
		t.Errorf("actions %v", got)
	}
}

// Secrets that were readable for others are not any more, until the import is taken back.
func TestSecretsAreClosed(t *testing.T) {
	s := newSetup(t, "claude")
	secrets := filepath.Join(s.Data, secretsFile)
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secrets, []byte("OTHER=1"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run(t)
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o600 || s.read(t, secrets) != "OTHER=1\nCL_USER_API_KEY=CANARY-claude\n" {
		t.Errorf("%v, %v, %q", info.Mode(), err, s.read(t, secrets))
	}
	if _, err := Undo(s.Request); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(secrets); err != nil || info.Mode().Perm() != 0o644 || s.read(t, secrets) != "OTHER=1" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A vak.toml that cannot be read is left alone.
func TestBrokenSettings(t *testing.T) {
	s := newSetup(t, "cursor")
	settings := filepath.Join(s.Target, configFile)
	if err := os.WriteFile(settings, []byte("[mcp\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(s.Request, now); vakerr.CodeOf(err) != vakerr.ConfigInvalid {
		t.Errorf("%v", err)
	}
	s.Client = "emacs"
	if _, err := Prepare(s.Request, now); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("%v", err)
	}
}

// Whatever an entry holds, it is read back as it was written.
func FuzzWrite(f *testing.F) {
	f.Add("a.b", "c", "x\ny", "K", "v\"\\", "")
	f.Add("n", "", "", "H", "${A:-b}", "https://h/\u0085")
	f.Fuzz(func(t *testing.T, name, command, arg, key, text, url string) {
		s := config.DefaultServer()
		s.Command, s.URL = command, url
		if command != "" {
			s.Args, s.Env, s.URL, s.Transport = []string{arg}, map[string]string{key: text}, "", "stdio"
		} else {
			s.Headers, s.Transport = map[string]string{key: text}, "http"
		}
		if name = strictName(name); name == "" || !utf8.ValidString(strings.Join([]string{command, arg, key, text, url}, "\n")) {
			return // every reader refuses what is no text
		}
		got, problems := config.Parse(configFile, []byte("listen = \"127.0.0.1:1\"\n"+write(name, s)))
		if got.Unreadable {
			t.Fatalf("it is no TOML: %v", problems)
		}
		if read, there := got.MCP[name]; there && !same(read, s) {
			t.Errorf("%s: %+v, written %+v, %v", name, read, s, problems)
		}
	})
}
