package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/ledger"
	"github.com/vak-actors/vak-actors/internal/vakerr"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// learned returns the next turn's section of a prompt once it names what is wanted.
func (a *agent) learned(want string) *aTurn {
	a.Helper()
	var u *aTurn
	eventually(a.TB, "the prompt of a turn names "+want, func() bool {
		if u = a.begin(); strings.Contains(u.GetPromptSection(), want) {
			return true
		}
		u.end()
		return false
	})
	return u
}

// V1, V47, V48, V57, V70: what demand taught is published in the next epoch, and the next turn's prompt names the tools; to
// learn the same again is no news.
func TestObservationIsPublished(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	if !strings.HasSuffix(u.GetPromptSection(), "\n- s") {
		t.Errorf("V70: before its first use a server is not shown by its name alone: %s", u.GetPromptSection())
	}
	u.want(u.mcp("s", "echo", object{"text": "one"}), "one")
	before := u.GetEpoch()
	u.end()
	u = a.learned("- s: add, ask, asked, big, cancelled, counter, crash, echo, env")
	if u.GetEpoch() <= before || !slices.Equal(u.GetDelta().GetUpdated(), []string{"mcp:s"}) {
		t.Errorf("V47: the observation is in epoch %d after %d, as %v", u.GetEpoch(), before, u.GetDelta())
	}
	u.end()
	s.kill()
	u = a.begin()
	u.want(u.mcp("s", "echo", object{"text": "two"}), "two")
	if w.reload(); w.epoch() != capability.Epoch(u.GetEpoch()) {
		t.Errorf("V57: learning the same catalog again moved the epoch from %d to %d", u.GetEpoch(), w.epoch())
	}
}

// V49, V50, V53, V115, V119, V130, V211: a failure is a reason on a server that can be called, and no name; within the
// backoff a demand gets that reason and the seconds, and starts nothing.
func TestFailureIsAReason(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", []string{"-exit-now", "4"})
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	refused(t, u.mcp("s", "echo", nil).err, vakerr.ServerStartFailed, "API_KEY is required", "next attempt in 5 s")
	again := u.mcp("s", "echo", nil)
	refused(t, again.err, vakerr.ServerBackingOff, "API_KEY is required", "next attempt in ")
	if e := vakerr.From(again.err); e.RetryAfter <= 0 || e.RetryAfter > 5*time.Second {
		t.Errorf("V53: the refusal says to wait %s", e.RetryAfter)
	}
	if n := s.started(); n != 1 {
		t.Errorf("V50: demand within the backoff led to %d starts", n)
	}
	u.end()
	eventually(t, "the report tells the failure", func() bool { return strings.Contains(w.row("mcp:s").Status, "API_KEY is required") })
	if row := w.row("mcp:s"); !row.Usable || !strings.HasPrefix(row.Status, "ready (last attempt failed") || !strings.Contains(row.Remedy, "[mcp.servers.s]") {
		t.Errorf("V115: the row of a failed server is %+v", row)
	}
	u = a.begin()
	if !strings.HasSuffix(u.GetPromptSection(), "\n- s") {
		t.Errorf("V49: a failure became a name: %s", u.GetPromptSection())
	}
	if strings.Contains(u.GetNotice(), "API_KEY") {
		t.Errorf("V119: a server that can be called is in the standing section: %s", u.GetNotice())
	}
	tools := ask[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: a.id, Server: "s"})
	if string(tools.GetToolsJson()) != "[]" {
		t.Errorf("V130: a failure became a tool: %s", tools.GetToolsJson())
	}
}

// V51, V56, V130: the first demand after the window tries again, and however often the same goes wrong, the epoch moves
// once.
func TestRetryAfterTheWindow(t *testing.T) {
	w := newWorldWith(t, host.Options{RetryServers: time.Millisecond}, nil)
	s := w.fault("s", []string{"-exit-now", "4"})
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	u.mcp("s", "echo", nil)
	eventually(t, "the failure is published", func() bool { return w.state("s").GetFailure() != "" })
	epoch := w.epoch()
	eventually(t, "demand has started the server ten times", func() bool {
		u.mcp("s", "echo", nil)
		return s.started() >= 10
	})
	if after := w.epoch(); after != epoch {
		t.Errorf("V56: repeating one failure moved the epoch from %d to %d", epoch, after)
	}
}

// V2, V212: a server that is not there at first becomes usable once it is, without anybody's help but the next call's.
func TestServerThatComesLater(t *testing.T) {
	w := newWorldWith(t, host.Options{RetryServers: time.Millisecond}, nil)
	w.write("vak.toml", toml(serverEntry("late", "./bin/late", nil)))
	u := w.open().begin()
	refused(t, u.mcp("late", "echo", nil).err, vakerr.ServerStartFailed, "./bin/late")
	w.install("bin/late")
	var got answer
	eventually(t, "the server answers", func() bool {
		got = u.mcp("late", "echo", object{"text": "here"})
		return got.err == nil
	})
	u.want(got, "here")
}

// install puts a fault server into the workspace.
func (w *world) install(name string) {
	w.Helper()
	command, _ := faulttest.Command(w.TB)
	program, err := os.ReadFile(command)
	w.must(err)
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	w.must(os.WriteFile(w.path(name), program, 0o700))
}

// V54, V95: an announced change forgets the catalog; the next use learns it, and the next prompt names it.
func TestListChangedForgetsTheCatalog(t *testing.T) {
	w := newWorld(t, nil)
	catalog := w.outside("catalog.json")
	list := func(names ...string) {
		tools := make([]string, len(names))
		for i, n := range names {
			tools[i] = fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, n)
		}
		w.must(os.WriteFile(catalog, []byte("["+strings.Join(tools, ",")+"]"), 0o600))
	}
	list("one")
	s := w.fault("s", []string{"-catalog-file", catalog, "-list-changed-on-call"})
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	u.want(u.call("mcp", object{"action": "list", "server": "s"}), `"one"`)
	u.end()
	a.learned("- s: one").end()

	list("one", "two")
	u = a.begin()
	u.want(u.mcp("s", "one", nil), "one")
	u.end()
	eventually(t, "the announced change forgets the catalog", func() bool { return w.state("s").GetTools() == -1 })
	u = a.begin()
	u.want(u.call("mcp", object{"action": "list", "server": "s"}), `"one"`, `"two"`)
	u.end()
	u = a.learned("- s: one, two")
	u.want(u.mcp("s", "two", nil), "two")
	if n := s.started(); n != 1 {
		t.Errorf("learning the catalog again led to %d starts", n)
	}
}

// V62, V125: unknown actions, servers and tools are error values that name what exists.
func TestUnknownNames(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	refused(t, u.call("mcp", object{"action": "jump"}).err, vakerr.UnknownAction, "list", "call")
	refused(t, u.mcp("nowhere", "echo", nil).err, vakerr.UnknownServer, "s")
	if n := s.started(); n != 0 {
		t.Errorf("errors started the server %d times", n)
	}
	refused(t, u.mcp("s", "ecko", nil).err, vakerr.UnknownTool, "echo", "add")
	if n := s.called(); n != 0 {
		t.Errorf("%d calls of unknown tools reached the server", n)
	}
}

// V63: arguments are checked before anything is sent.
func TestInvalidArgumentsAreNotSent(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	for range 2 { // before the catalog is known to the turn, and after
		refused(t, u.mcp("s", "add", object{"a": "one", "b": 2}).err, vakerr.InvalidArguments, "a")
		refused(t, u.mcp("s", "add", object{"a": 1}).err, vakerr.InvalidArguments, "b")
		u.end()
		u = a.learned("- s: add")
	}
	if n := s.called(); n != 0 {
		t.Errorf("%d calls with invalid arguments reached the server", n)
	}
	u.want(u.mcp("s", "add", object{"a": 1, "b": 2}), "3")
}

// V64: a result that is too large is put into a file, with a preview in its place.
func TestOversizedResult(t *testing.T) {
	w := newWorld(t, nil)
	s := w.fault("s", nil)
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	const size = 3 << 20
	got := u.mcp("s", "big", object{"bytes": size})
	u.want(got, "bbbb", ".vak/artifacts/")
	if len(got.text) > 8<<10 {
		t.Errorf("the preview has %d bytes", len(got.text))
	}
	files, err := os.ReadDir(w.path(".vak/artifacts"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are %d artifacts, want one: %v", len(files), err)
	}
	info, err := files[0].Info()
	if err != nil || info.Size() < size {
		t.Errorf("the artifact is not the whole result: %v bytes, %v", info.Size(), err)
	}
}

// V65, V67: a secret of a server's env reaches the server, and nobody else.
func TestSecretsStayInside(t *testing.T) {
	const secret = "sk-live-31415926535"
	w := newWorld(t, nil)
	w.must(os.WriteFile(filepath.Join(dataOf(w.folder), "secrets.env"), []byte("LIFECYCLE_KEY="+secret+"\n"), 0o600))
	s := w.fault("s", []string{"-leak-env", "KEY"}, `env = { KEY = "${LIFECYCLE_KEY}" }`)
	w.write("vak.toml", toml(s.config))
	a := w.open()
	u := a.begin()
	said := []string{
		u.call("mcp", object{"action": "list", "server": "s"}).String(),
		u.mcp("s", "leak", object{"key": "mine"}).String(),
		u.mcp("s", "env", nil).String(), // a result
		u.mcp("s", "crash", nil).String(),
		ask[*poolv1.GetServerLogsResult](w, &poolv1.GetServerLogs{Name: "s"}).String(),
	}
	u.end()
	u = a.learned("leak")
	said = append(said, u.String(), ask[*sessionv1.ListToolsResult](w, &sessionv1.ListTools{SessionId: a.id, Server: "s"}).String())
	u.end()
	eventually(t, "the calls are on the ledger", func() bool { return len(recorded[ledger.CallFinished](a)) == 4 })
	for _, body := range a.record() {
		said = append(said, fmt.Sprintf("%T %+v", body, body))
	}
	_, report := w.report()
	for _, text := range append(said, report, ask[*poolv1.ListServersResult](w, &poolv1.ListServers{}).String()) {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("V65: the secret is told: ...%s", text[max(0, at-200):min(len(text), at+len(secret)+50)])
		}
	}
	if !strings.Contains(said[1], "upstream refused the key") {
		t.Errorf("the server was not asked: %s", said[1])
	}
	if !strings.Contains(said[2], "KEY=[redacted]") {
		t.Errorf("the result does not say that a secret was taken out: %s", said[2])
	}
}

// V39, V67, V68: a server's environment is PATH and what is declared; a placeholder nobody set starts nothing.
func TestEnvironmentIsMinimal(t *testing.T) {
	t.Setenv("LIFECYCLE_SET", "value")
	t.Setenv("LIFECYCLE_PRIVATE", "private")
	w := newWorldWith(t, host.Options{RetryServers: time.Millisecond}, nil)
	s := w.fault("s", nil, `env = { DECLARED = "a ${LIFECYCLE_SET}" }`)
	unset := w.fault("unset", nil, `env = { KEY = "${LIFECYCLE_UNSET}" }`)
	w.write("vak.toml", toml(s.config, unset.config))
	u := w.open().begin()
	got := u.mcp("s", "env", nil)
	u.want(got, "DECLARED=a value") // only what goes by the name of a secret is taken out of results
	for line := range strings.SplitSeq(got.text, "\n") {
		if name, _, _ := strings.Cut(line, "="); name != "PATH" && name != "DECLARED" {
			t.Errorf("V68: the server sees %q", line)
		}
	}
	refused(t, u.mcp("unset", "echo", nil).err, vakerr.SecretUnresolved, "LIFECYCLE_UNSET")
	if n := unset.started(); n != 0 {
		t.Errorf("V67: a server without its secret was started %d times", n)
	}
	w.must(os.WriteFile(filepath.Join(dataOf(w.folder), "secrets.env"), []byte("LIFECYCLE_UNSET=now\n"), 0o600))
	if !w.reload().GetChanged() {
		t.Error("V39: a secret that can be resolved now does not move the epoch")
	}
	u.end()
	u = u.begin()
	eventually(t, "the server works once its secret is there", func() bool { return u.mcp("unset", "echo", nil).err == nil })
}

// V69: a relative command with a path is a file of the workspace.
func TestRelativeCommand(t *testing.T) {
	w := newWorld(t, nil)
	w.install("tools/server")
	w.write("vak.toml", toml(serverEntry("s", "tools/server", nil)))
	u := w.open().begin()
	u.want(u.mcp("s", "echo", object{"text": "from the workspace"}), "from the workspace")
}
