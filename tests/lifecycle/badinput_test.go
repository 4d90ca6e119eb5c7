package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V11, V12, V123, V125: unknown names, names of another kind and turns that are over are typed errors, which have no
// effect and cost nothing.
func TestBadCalls(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("greet"): skill("greet", "Say hello."), "commands/hi.md": "Greet.", "a.txt": "text",
	})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config, "[[hooks]]\nevent = \"stop\"\ncommand = \"true\"\n"))
	a := w.open()
	u := a.begin()
	for _, c := range []struct {
		name      string
		arguments object
		code      vakerr.Code
		tells     string
	}{
		{"raed", object{"path": "a.txt"}, vakerr.UnknownTool, "read"},
		{"", nil, vakerr.UnknownTool, ""},
		{strings.Repeat("x", 100_000), nil, vakerr.UnknownTool, ""},
		{"greet", nil, vakerr.WrongKind, `skill({"name":"greet"})`},
		{"s", nil, vakerr.WrongKind, `mcp({"action":"list","server":"s"})`},
		{"hi", nil, vakerr.WrongKind, "/hi"},
		{"stop/true", nil, vakerr.WrongKind, "hook"},
		{"read", object{"path": 7}, vakerr.InvalidArguments, "path"},
		{"read", object{"path": "a.txt", "more": 1}, vakerr.InvalidArguments, "more"},
		{"read", object{"path": "../outside"}, vakerr.PathEscapes, ""},
		{"read", object{"path": "none.txt"}, vakerr.FileNotFound, "none.txt"},
		{"write", object{"path": "/etc/vak", "content": ""}, vakerr.PathEscapes, ""},
		{"skill", object{"name": "gret"}, vakerr.CapabilityNotAdmitted, "greet"},
		{"mcp", object{"action": "call", "server": "s/../s", "tool": "echo"}, vakerr.UnknownServer, "s"},
	} {
		refused(t, u.call(c.name, c.arguments).err, c.code, c.tells)
	}
	for _, raw := range []string{`{`, `[]`, `"text"`, `{"path":"a.txt"} x`, "{\"path\":\"\xff\"}"} {
		r := ask[*sessionv1.DispatchResult](w, &sessionv1.Dispatch{SessionId: a.id, TurnId: u.GetTurnId(), Name: "read", ArgumentsJson: []byte(raw)})
		if r.GetRefusal().GetCode() != string(vakerr.InvalidArguments) {
			t.Errorf("the arguments %q were answered with %v", raw, r)
		}
	}
	u.want(u.call("read", object{"path": "a.txt"}), "text")
	if n := s.started(); n != 0 {
		t.Errorf("bad calls started the server %d times", n)
	}
	_, err := try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id})
	refused(t, err, vakerr.TurnOpen, u.GetTurnId())
	u.end()
	refused(t, u.call("read", object{"path": "a.txt"}).err, vakerr.TurnEnded, u.GetTurnId())
	never := aTurn{a, &sessionv1.BeginTurnResult{TurnId: "t9.9"}}
	refused(t, never.call("read", object{"path": "a.txt"}).err, vakerr.TurnNotFound, "t9.9")
	for _, id := range []string{"../../etc", "a b", strings.Repeat("x", 129)} {
		_, err = try[*sessionv1.OpenSessionResult](w, &sessionv1.OpenSession{SessionId: id})
		refused(t, err, vakerr.InvalidRequest)
	}
	ask[*sessionv1.CloseSessionResult](w, &sessionv1.CloseSession{SessionId: a.id})
	_, err = try[*sessionv1.BeginTurnResult](w, &sessionv1.BeginTurn{SessionId: a.id})
	refused(t, err, vakerr.SessionClosed)
	if n := len(recorded[ledger.CallRefused](a)); n < 15 {
		t.Errorf("the ledger tells %d refusals only", n)
	}
}

// badFiles are files nobody can read, each with the path and the code of its finding.
var badFiles = []struct{ path, text, code string }{
	{"skills/empty/SKILL.md", "", "file_empty"},
	{"skills/bare/SKILL.md", "Just text.", "frontmatter_missing"},
	{"skills/open/SKILL.md", "---\nname: open\n", "frontmatter_unclosed"},
	{"skills/vast/SKILL.md", "---\nname: vast\n" + strings.Repeat("# comment\n", 1<<20) + "---\n", "frontmatter_too_large"},
	{"skills/wide/SKILL.md", "---\nname: wide\n" + strings.Repeat("# comment\n", 60_000) + "---\nx", "frontmatter_too_large"},
	{"skills/yaml/SKILL.md", "---\n- name\n---\nx", "frontmatter_yaml"},
	{"skills/Bad_Name/SKILL.md", "---\nname: ../x\ndescription: d\n---\nx", "skill_name"},
	{"commands/broken.md", "---\n- description\n---\nx", "frontmatter_yaml"},
	{".mcp.json", "{", "mcp_syntax"},
}

// V38: whatever cannot be read is a finding with its path, and costs nothing but itself.
func TestUnreadableFiles(t *testing.T) {
	w := newWorld(t, map[string]string{
		skillFile("greet"): skill("greet", "Say hello."), "commands/hi.md": "Greet $ARGUMENTS.",
	})
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	for _, f := range badFiles {
		w.write(f.path, f.text)
	}
	w.must(os.MkdirAll(w.path("skills/folder/SKILL.md"), 0o700))
	w.must(os.MkdirAll(w.outside("elsewhere"), 0o700))
	w.must(os.WriteFile(w.outside("elsewhere/SKILL.md"), []byte(skill("elsewhere", "Leak.")), 0o600))
	w.must(os.Symlink(w.outside("elsewhere"), w.path("skills/elsewhere")))
	w.must(os.Symlink("/etc/passwd", w.path("commands/passwd.md")))
	w.must(os.Symlink(w.path("skills"), w.path("skills/loop")))
	w.reload()

	report, text := w.report()
	for _, f := range badFiles {
		checkFinding(t, report.Problems, f.path, f.code)
	}
	for _, path := range []string{"skills/elsewhere", "commands/passwd.md"} {
		checkFinding(t, report.Problems, path, "")
	}
	for _, word := range []string{"root:", "Leak."} {
		if strings.Contains(text, word) {
			t.Errorf("the report tells %q of a file outside", word)
		}
	}
	if w.row("skill:elsewhere") != nil || w.row("command:passwd") != nil {
		t.Error("a link that leaves the workspace was followed")
	}
	u := w.open().prompt("/hi there")
	if u.GetPrompt() != "Greet there." {
		t.Errorf("the good command was expanded to %q", u.GetPrompt())
	}
	u.want(u.call("skill", object{"name": "greet"}), "Say hello.")
	u.want(u.mcp("s", "echo", object{"text": "hello"}), "hello")
}

func checkFinding(t *testing.T, problems []capability.Problem, path, code string) {
	t.Helper()
	for _, p := range problems {
		if strings.HasPrefix(p.Path, path) && (code == "" || p.Code == code) && p.Message != "" && p.Hint != "" {
			return
		}
	}
	var about []string
	for _, p := range problems {
		if strings.HasPrefix(p.Path, filepath.Dir(path)) {
			about = append(about, p.Path+": "+p.Code)
		}
	}
	t.Errorf("there is no finding %s of %s, but %v", code, path, about)
}

// Unknown keys of vak.toml are errors that name the nearest known one; the rest of the file counts.
func TestUnknownKeys(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config, "[mcp.servers.typo]\ncomand = \"x\"\n[reconile]\ntick = \"1s\"\n"))
	report := w.reload()
	for key, near := range map[string]string{"comand": "command", "reconile": "reconcile"} {
		found := false
		for _, p := range report.GetProblems() {
			text := p.GetMessage() + " " + p.GetHint()
			found = found || strings.Contains(text, key) && strings.Contains(text, near) && p.GetLine() > 0
		}
		if !found {
			t.Errorf("no finding names %s and the nearest key %s: %v", key, near, report.GetProblems())
		}
	}
	if w.row("mcp:s") == nil || w.row("mcp:typo") != nil {
		t.Error("the good entry is missing, or the bad one is there")
	}
}

// V98, V125: a server that is missing, exits, hangs, floods or answers garbage fails its own calls with a typed error,
// at once, and touches no other.
func TestBadServersTouchNoOther(t *testing.T) {
	w := newWorldWith(t, host.Options{}, nil)
	good := w.fault("good", nil)
	entries := []string{good.config, serverEntry("missing", w.path("no-such-program"), nil)}
	bad := []struct {
		name  string
		flags []string
		codes []vakerr.Code // nil: it answers in spite of it
	}{
		{"missing", nil, []vakerr.Code{vakerr.ServerStartFailed}},
		{"exits", []string{"-exit-now", "3"}, []vakerr.Code{vakerr.ServerStartFailed, vakerr.ServerDied}},
		{"mute", []string{"-mute-on", "initialize"}, []vakerr.Code{vakerr.ServerStartFailed, vakerr.DeadlineExceeded}},
		{"hangs", []string{"-mute-on", "tools/call"}, []vakerr.Code{vakerr.DeadlineExceeded, vakerr.OutcomeUnknown}},
		{"dies", []string{"-die-on", "tools/call"}, []vakerr.Code{vakerr.OutcomeUnknown, vakerr.ServerDied}},
		{"stops", []string{"-stop-reading-on", "tools/list"}, []vakerr.Code{vakerr.DeadlineExceeded, vakerr.OutcomeUnknown}},
		{"errors", []string{"-error-on", "tools/call"}, []vakerr.Code{vakerr.ServerRejected}},
		{"noisy", []string{"-stderr-flood", "1000000"}, nil},
		{"garbage", []string{"-garbage"}, nil},
		{"bad-text", []string{"-catalog-file", w.outside("bad-text.json")}, []vakerr.Code{vakerr.UnknownTool, vakerr.ServerStartFailed, vakerr.ServerProtocol}},
		{"banner", []string{"-banner", "20"}, nil},
		{"odd-ids", []string{"-string-ids", "-id-last"}, nil},
	}
	w.must(os.WriteFile(w.outside("bad-text.json"), []byte("[{\"name\":\"x\",\"description\":\"\xff\",\"inputSchema\":{\"type\":\"object\",\"title\":\"\xfe\"}}]"), 0o600))
	for _, b := range bad[1:] {
		entries = append(entries, w.fault(b.name, b.flags, `start_timeout = "1s"`, `call_timeout = "300ms"`).config)
	}
	w.write("vak.toml", toml(entries...))
	u := w.open().begin()
	u.want(u.mcp("good", "counter", nil), "1")
	answers := make([]answer, len(bad))
	parallel(len(bad), func(i int) { answers[i] = u.mcp(bad[i].name, "echo", object{"text": "hello"}) })
	for i, b := range bad {
		switch code := vakerr.CodeOf(answers[i].err); {
		case b.codes == nil:
			u.want(answers[i], "hello")
		case !slices.Contains(b.codes, code):
			t.Errorf("%s: answered with %s, want one of %v", b.name, answers[i], b.codes)
		case code != vakerr.ServerRejected && vakerr.From(answers[i].err).Remedy == "":
			t.Errorf("%s: the error says nothing to do: %s", b.name, answers[i])
		}
	}
	u.want(u.mcp("good", "counter", nil), "2")
	u.end()
	u = u.learned("- bad-text: x")
	u.want(u.mcp("good", "counter", nil), "3")
	w.verify()
	if n := good.started(); n != 1 {
		t.Errorf("the good server was started %d times", n)
	}
}

// A server that prints without end is ended, and its last words are kept.
func TestFloodingServerIsEnded(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", []string{"-junk"})
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	eventually(t, "a call of the flooding server fails", func() bool { return u.mcp("s", "echo", nil).err != nil })
	eventually(t, "the flooding server is ended", func() bool { return len(children(t)) == 0 })
	logs := w.logs("s")
	if len(logs.GetJunk()) == 0 || !strings.Contains(logs.GetJunk()[0], "not a frame") {
		t.Errorf("what it printed is not kept: %.200v", logs)
	}
}
