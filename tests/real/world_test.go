package real

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/tests/realparts"
)

// program is the built vak-actors.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "vak")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "vak-actors")
	build := exec.Command("go", "build", "-o", program, "github.com/vak-actors/vak-actors/cmd/vak-actors")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the program:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// world is a workspace with two published servers in it, and the state of its daemons.
type world struct {
	*testing.T
	dir, data string
	node      string
	inspector string
	everyfile string // script of server-everything
	files     string // script of server-filesystem
}

const fileText = "hello from a file"

// newWorld makes the workspace; ok is false, and the test over, where a part is not installed.
func newWorld(t *testing.T) (w *world, ok bool) {
	t.Helper()
	w = &world{
		T: t, dir: t.TempDir(), node: realparts.Require(t, realparts.Node), inspector: realparts.Require(t, realparts.Inspector),
		everyfile: realparts.Require(t, realparts.ServerEverything), files: realparts.Require(t, realparts.ServerFilesystem),
	}
	if w.node == "" || w.inspector == "" || w.everyfile == "" || w.files == "" {
		return nil, false
	}
	w.data = t.TempDir()
	w.write("files/a.txt", fileText)
	w.write("vak.toml", w.config())
	return w, true
}

// config declares both servers, and whatever else is given.
func (w *world) config(more ...string) string {
	return fmt.Sprintf(`
[mcp.servers.everything]
command = %[1]q
args = [%[2]q]
start_timeout = "60s"

[mcp.servers.files]
command = %[1]q
args = [%[3]q, %[4]q]
start_timeout = "60s"

[permissions]
allow = ["mcp(**)"]
`, w.node, w.everyfile, w.files, filepath.Join(w.dir, "files")) + strings.Join(more, "\n")
}

func (w *world) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.Fatal(err)
	}
}

// path is that of the file that the filesystem server serves.
func (w *world) path() string { return filepath.Join(w.dir, "files", "a.txt") }

func (w *world) args(verb string, more ...string) []string {
	return append([]string{verb, "--workspace", w.dir, "--data", w.data}, more...)
}

// vak runs a verb and returns what it printed.
func (w *world) vak(args ...string) string {
	w.Helper()
	var stderr bytes.Buffer
	c := exec.CommandContext(w.Context(), program, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		w.Fatalf("vak-actors %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// daemon is a running `vak-actors serve`.
type daemon struct {
	w   *world
	cmd *exec.Cmd
	url string
}

// serve starts a daemon and waits until it listens. It is stopped at the test's end.
func (w *world) serve() *daemon {
	w.Helper()
	d := &daemon{w: w, cmd: exec.Command(program, w.args("serve", "--listen", "127.0.0.1:0")...)}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(d.stop)
	lines := bufio.NewScanner(out)
	for d.url == "" && lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 2 && f[0] == "mcp" {
			d.url = f[1]
		}
	}
	if d.url == "" {
		w.Fatal("the daemon ended before it listened")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the daemon
	return d
}

// stop ends the daemon in order.
func (d *daemon) stop() {
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		d.w.Errorf("the daemon ended with %v", err)
	}
}

// overHTTP and overStdio are what the Inspector is told to reach a server.
func (d *daemon) overHTTP(suffix string) []string {
	return []string{d.url + suffix, "--transport", "http"}
}

func (w *world) overStdio(surface string) []string {
	return append([]string{program}, w.args("mcp", "--surface", surface)...)
}

// inspect has the Inspector do one thing and returns its exit status and what it printed.
func (w *world) inspect(target []string, args ...string) (int, string) {
	w.Helper()
	c := exec.CommandContext(w.Context(), w.node, append(append([]string{w.inspector, "--cli"}, target...), args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	if len(out) == 0 {
		w.Fatalf("the Inspector printed nothing for %v %v: %v\n%s", target, args, err, stderr.String())
	}
	return c.ProcessState.ExitCode(), string(out)
}

// definition is a tool as a client sees it.
type definition struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
	Annotations map[string]any `json:"annotations"`
}

// list is what the Inspector sees, by name.
func (w *world) list(target []string, args ...string) map[string]definition {
	w.Helper()
	code, out := w.inspect(target, append([]string{"--method", "tools/list"}, args...)...)
	var in struct{ Tools []definition }
	if err := json.Unmarshal([]byte(out), &in); err != nil || code != 0 {
		w.Fatalf("tools/list: exit %d, %v: %.500s", code, err, out)
	}
	tools := map[string]definition{}
	for _, d := range in.Tools {
		tools[d.Name] = d
	}
	return tools
}

// result is a CallToolResult as a client sees it.
type result struct {
	Content    []struct{ Type, Text string }
	IsError    bool
	Structured struct {
		Error struct{ Code, Reason, Remedy string }
	} `json:"structuredContent"`
}

func (r result) text() string {
	var all strings.Builder
	for _, c := range r.Content {
		all.WriteString(c.Text)
	}
	return all.String()
}

// call has the Inspector call a tool; arguments are name=value.
func (w *world) call(target []string, tool string, arguments ...string) result {
	w.Helper()
	args := []string{"--method", "tools/call", "--tool-name", tool}
	for _, a := range arguments {
		args = append(args, "--tool-arg", a)
	}
	_, out := w.inspect(target, args...)
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.Fatalf("tools/call %s: %v: %.500s", tool, err, out)
	}
	return r
}
