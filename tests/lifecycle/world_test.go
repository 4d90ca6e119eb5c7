package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// patience bounds every wait for something that must happen. It is far above what anything takes.
const patience = 30 * time.Second

// settings precede every vak.toml of a world: nothing asks, and nothing happens by the clock.
const settings = "[permissions]\nmode = \"full-access\"\n[reconcile]\ntick = \"1h\"\n"

func testContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Minute)
}

func workspaceOf(folder string) string { return filepath.Join(folder, "workspace") }
func dataOf(folder string) string      { return filepath.Join(folder, "data") }

// world is a workspace, a data folder, and a host on them.
type world struct {
	testing.TB
	folder string
	host   *host.Host
	door   protocol.Door
}

// newWorld makes a workspace of files, by their paths, and starts a host on it. The host is stopped when the test ends,
// and no child may be left then.
func newWorld(t testing.TB, files map[string]string) *world {
	return newWorldWith(t, host.Options{}, files)
}

func newWorldWith(t testing.TB, o host.Options, files map[string]string) *world {
	t.Helper()
	w := emptyWorld(t, files)
	w.start(o)
	return w
}

// emptyWorld has no host.
func emptyWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := &world{TB: t, folder: t.TempDir()}
	w.write("vak.toml", settings)
	for path, text := range files {
		w.write(path, text)
	}
	return w
}

func (w *world) start(o host.Options) {
	w.Helper()
	o.Workspace, o.Data, o.Version = workspaceOf(w.folder), dataOf(w.folder), "test"
	h, err := host.Start(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	w.host, w.door = h, h.Door()
	w.Cleanup(func() { w.stopHost(h) })
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *world) stop() { w.stopHost(w.host) }

func (w *world) stopHost(h *host.Host) {
	w.Helper()
	if err := h.Stop(context.WithoutCancel(w.Context())); err != nil {
		w.Error("the host does not stop in order:", err)
	}
	if left := children(w); len(left) > 0 {
		w.Errorf("the host has stopped, and these children are left: %v", left)
	}
}

// restart stops the host in order and starts another one on the same folders.
func (w *world) restart() {
	w.Helper()
	w.stop()
	w.start(host.Options{})
}

func (w *world) path(name string) string { return filepath.Join(workspaceOf(w.folder), name) }

// outside is a path that lies in no workspace.
func (w *world) outside(name string) string { return filepath.Join(w.folder, name) }

// write writes a file in place, as `echo >` does.
func (w *world) write(name, text string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	w.must(os.WriteFile(w.path(name), []byte(text), 0o600))
}

// replace writes a file beside and renames it, as editors do.
func (w *world) replace(name, text string) {
	w.Helper()
	beside := w.path(name) + ".new~"
	w.must(os.WriteFile(beside, []byte(text), 0o600))
	w.must(os.Rename(beside, w.path(name)))
}

func (w *world) remove(name string) {
	w.Helper()
	w.must(os.RemoveAll(w.path(name)))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// skill is the text of a SKILL.md.
func skill(name, body string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: Says how to %s.\n---\n%s\n", name, name, body)
}

func skillFile(name string) string { return "skills/" + name + "/SKILL.md" }

// eventually returns when done is true; what says what did not come true.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("after %s it is not so that %s", patience, what)
		}
	}
}

// ask sends a command and returns its result, which must come.
func ask[R proto.Message](w *world, command proto.Message) R {
	w.Helper()
	r, err := try[R](w, command)
	if err != nil {
		w.Fatalf("%T: %v", command, err)
	}
	return r
}

// try sends a command whose error is of interest.
func try[R proto.Message](w *world, command proto.Message) (R, error) {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	return protocol.Call[R](ctx, w.door, command)
}

func (w *world) reload() *registryv1.ReloadResult {
	w.Helper()
	return ask[*registryv1.ReloadResult](w, &registryv1.Reload{})
}

func (w *world) report() (report capability.Report, text string) {
	w.Helper()
	r := ask[*registryv1.GetReportResult](w, &registryv1.GetReport{})
	w.must(json.Unmarshal(r.GetReportJson(), &report))
	return report, string(r.GetReportJson())
}

// row is the report's row of an id; nil where there is none.
func (w *world) row(id string) *capability.Row {
	w.Helper()
	report, _ := w.report()
	for i := range report.Capabilities {
		if report.Capabilities[i].ID == id {
			return &report.Capabilities[i]
		}
	}
	return nil
}

func (w *world) epoch() capability.Epoch {
	w.Helper()
	report, _ := w.report()
	return report.Epoch
}

func (w *world) revoke(id string, cancel bool) *registryv1.RevokeResult {
	w.Helper()
	return ask[*registryv1.RevokeResult](w, &registryv1.Revoke{Id: id, Reason: "the audit failed", CancelRunning: cancel})
}

func (w *world) restore(id string) *registryv1.RestoreResult {
	w.Helper()
	return ask[*registryv1.RestoreResult](w, &registryv1.Restore{Id: id})
}

// state is what the pool says of a server.
func (w *world) state(server string) *poolv1.Server {
	w.Helper()
	for _, s := range ask[*poolv1.ListServersResult](w, &poolv1.ListServers{}).GetServers() {
		if s.GetName() == server {
			return s
		}
	}
	return nil
}

// refused fails the test unless err has the code and tells what it must.
func refused(t testing.TB, err error, code vakerr.Code, tells ...string) {
	t.Helper()
	if vakerr.CodeOf(err) != code {
		t.Errorf("refused with %v, want %s", err, code)
		return
	}
	e := vakerr.From(err)
	for _, word := range tells {
		if !strings.Contains(e.Reason+" "+e.Remedy, word) {
			t.Errorf("the error does not tell %q: %s; %s", word, e.Reason, e.Remedy)
		}
	}
}

func hostOptions() host.Options { return host.Options{} }

// logs are the last words of a server.
func (w *world) logs(server string) *poolv1.GetServerLogsResult {
	w.Helper()
	return ask[*poolv1.GetServerLogsResult](w, &poolv1.GetServerLogs{Name: server})
}
