package real

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A file is read through every door a client has: over HTTP and pipes, attached to a daemon and with the runtime inside, on
// the surface that lists everything and on the one that is searched.
func TestInspectorReadsAFile(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	t.Run("runtime inside", func(t *testing.T) {
		w.on(t).reads(w.overStdio("search"), w.overStdio("full"))
	})
	d := w.serve()
	t.Run("daemon over HTTP", func(t *testing.T) {
		w.on(t).reads(d.overHTTP("?surface=search"), d.overHTTP(""))
	})
	t.Run("daemon by its tenant's name", func(t *testing.T) {
		w.on(t).reads(d.overHTTP("/default?surface=search"), d.overHTTP("/default?surface=full"))
	})
	t.Run("daemon over pipes", func(t *testing.T) {
		w.on(t).reads(w.overStdio("search"), w.overStdio("full"))
	})
}

// on is the world for a subtest.
func (w *world) on(t *testing.T) *world {
	sub := *w
	sub.T = t
	return &sub
}

func (w *world) reads(search, full []string) {
	w.Helper()
	got := w.call(search, "mcp", "action=call", "server=files", "tool=read_text_file", `arguments={"path":"`+w.path()+`"}`)
	if got.IsError || !strings.Contains(got.text(), fileText) {
		w.Errorf("on the search surface: %+v", got)
	}
	listed := w.list(search)
	if _, ok := listed["find_tools"]; !ok || len(listed) > 10 {
		w.Errorf("the search surface lists %v", slices.Sorted(maps.Keys(listed)))
	}
	listed = w.list(full)
	if _, ok := listed["files__read_text_file"]; !ok {
		w.Errorf("the full surface lists %v", slices.Sorted(maps.Keys(listed)))
	}
	got = w.call(full, "files__read_text_file", "path="+w.path())
	if got.IsError || !strings.Contains(got.text(), fileText) {
		w.Errorf("on the full surface: %+v", got)
	}
}

// A server behind the gateway offers what it offers without it, under the names it gives, with the schemas it gives.
func TestTransparentServer(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	d := w.serve()
	for server, script := range map[string][]string{
		"files":      {w.files, w.dir + "/files"},
		"everything": {w.everyfile},
	} {
		w.call(d.overHTTP(""), "mcp", "action=list", "server="+server) // demand, so that its catalog is known
		want := w.list(append([]string{w.node}, script...))
		got := w.list(d.overHTTP("/default/server/" + server))
		delete(want, "get-roots-list") // offered to clients with roots only; a shared connection has none
		for _, asks := range []string{"trigger-elicitation-request", "trigger-sampling-request", "trigger-url-elicitation"} {
			delete(got, asks) // offered to clients that can be asked only; the one that asked for the list cannot
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s through the gateway (+) differs from itself (-):\n%s", server, diff)
		}
	}
	if got := w.call(d.overHTTP("/default/server/everything"), "echo", "message=hi"); !strings.Contains(got.text(), "hi") {
		t.Errorf("echo: %+v", got)
	}
}

// V62: what leads nowhere is a value that names what exists, as real clients see it. V125: so is every refusal, and it has
// had no effect.
func TestInspectorSeesRefusals(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	w.write("vak.toml", w.config(`deny = ["mcp(files/write_file)"]`))
	d := w.serve()
	search := d.overHTTP("?surface=search")
	for name, c := range map[string]struct {
		arguments []string
		code      string
		names     string
	}{
		"unknown action": {[]string{"action=explode"}, "unknown_action", "list"},
		"unknown server": {[]string{"action=list", "server=nope"}, "unknown_server", "everything, files"},
		"unknown tool":   {[]string{"action=call", "server=files", "tool=read_txt_file"}, "unknown_tool", "read_text_file"},
		"denied":         {[]string{"action=call", "server=files", "tool=write_file", `arguments={"path":"` + w.dir + `/files/b.txt","content":"x"}`}, "permission_denied", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			if name == "unknown tool" {
				w.call(search, "mcp", "action=list", "server=files")
			}
			got := w.call(search, "mcp", c.arguments...)
			if e := got.Structured.Error; !got.IsError || e.Code != c.code || e.Reason == "" || !strings.Contains(e.Remedy, c.names) {
				t.Errorf("%+v, want %s that names %q", got, c.code, c.names)
			}
		})
	}
	if _, err := os.Stat(w.dir + "/files/b.txt"); err == nil {
		t.Error("the refused call wrote its file")
	}
}

// A real client that connects and lists costs no process: only a call starts a server.
func TestListingStartsNothing(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	d := w.serve()
	for _, era := range []string{"legacy", "auto"} {
		w.list(d.overHTTP(""), "--protocol-era", era)
		w.list(w.overStdio("full"), "--protocol-era", era)
	}
	if n := d.children(); n != 0 {
		t.Errorf("the daemon has %d children after clients listed", n)
	}
	w.call(d.overHTTP(""), "mcp", "action=list", "server=files")
	if n := d.children(); n != 1 {
		t.Errorf("the daemon has %d children after a call of one server", n)
	}
}

// children is how many processes the daemon has started and not lost.
func (d *daemon) children() int {
	d.w.Helper()
	pid := strconv.Itoa(d.cmd.Process.Pid)
	tasks, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		d.w.Fatal(err)
	}
	n := 0
	for _, task := range tasks {
		children, err := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/children")
		if err == nil {
			n += len(strings.Fields(string(children)))
		}
	}
	return n
}
