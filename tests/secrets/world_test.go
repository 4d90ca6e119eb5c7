package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/cmd/vak-actors/cli"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// asProgram makes this test binary the program.
const asProgram = "VAK_SECRETS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	code := m.Run()
	faulttest.Cleanup()
	os.Exit(code)
}

const patience = 60 * time.Second

// world is a workspace, a data folder, and everything that came out of the program so far.
type world struct {
	*testing.T
	folder   string
	canaries map[string]string // by where they stand; each is unlike every other text
	env      []string          // of the daemon

	mu  sync.Mutex // guards what follows
	out []output
}

// output is something that came out, and where.
type output struct{ from, text string }

func (w *world) path(name string) string { return filepath.Join(w.folder, name) }

// canary is the secret that stands in a place.
func (w *world) canary(place string) string {
	w.Helper()
	c, ok := w.canaries[place]
	if !ok {
		c = fmt.Sprintf("CANARY-%s-%d", strings.ReplaceAll(place, " ", "-"), 7919*(len(w.canaries)+13))
		w.canaries[place] = c
	}
	return c
}

func (w *world) write(name, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o700); err != nil {
		w.Fatal(err)
	}
}

func (w *world) heard(from, text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = append(w.out, output{from, text})
	return text
}

// run runs a verb to its end and returns what it said. Whether it succeeds is not the question here.
func (w *world) run(stdin string, args ...string) string {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	r, err := childproc.Run(ctx, childproc.Spec{
		Owner: "verb", Command: program, Args: args, Env: w.env, Dir: w.path("ws"), StdoutLimit: 8 << 20, StderrLimit: 8 << 20,
	}, []byte(stdin))
	if err != nil {
		w.Fatalf("%v: %v", args, err)
	}
	return w.heard(strings.Join(args, " "), string(r.Stdout)+string(r.Stderr))
}

// verb runs a verb of the daemon's workspace, plainly, and for scripts with everything logged.
func (w *world) verb(args ...string) string {
	w.Helper()
	args = append(args, "--data", w.path("data"))
	return w.run("", args...) + w.run("", append(slices.Clone(args), "--json", "-v")...)
}

// daemon starts the program as a daemon that logs everything, and returns its address and the process.
func (w *world) daemon() (url string, p *childproc.Process) {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	p, err = childproc.Start(childproc.Spec{
		Owner: "daemon", Command: "sh", Env: w.env, Dir: w.path("ws"),
		Args: []string{
			"-c", `exec "$0" "$@" >` + w.path("daemon.out") + ` 2>` + w.path("daemon.log"), program,
			"serve", "--listen", "127.0.0.1:0", "--token-file", w.path("token"), "--data", w.path("data"), "--json", "-v",
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(p.Kill)
	var at struct{ Listen string }
	w.eventually("the daemon answers", func() bool {
		text, _ := os.ReadFile(w.path("daemon.out"))
		return json.Unmarshal(text, &at) == nil && at.Listen != ""
	})
	return at.Listen, p
}

// end stops the daemon in order and takes in all that it left.
func (w *world) end(p *childproc.Process) {
	w.Helper()
	if err := syscall.Kill(p.PID(), syscall.SIGINT); err != nil {
		w.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
		w.Fatal("the daemon does not stop")
	}
	for _, name := range []string{"daemon.out", "daemon.log"} {
		text, err := os.ReadFile(w.path(name))
		if err != nil {
			w.Fatal(err)
		}
		w.heard(name, string(text))
	}
	w.left()
}

// left takes in all that lies around, but for what the user wrote and the file that secrets belong into.
func (w *world) left() {
	w.Helper()
	w.files("data", "secrets.env", "plugin.json")
	w.files("ws", "vak.toml", ".mcp.json", "mcp.json", "settings.json", "config.toml")
	w.files("home", ".claude.json", "mcp.json", "settings.json", "config.toml", "claude_desktop_config.json")
}

// files takes in every file below a folder, but those of these names.
func (w *world) files(folder string, but ...string) {
	w.Helper()
	err := filepath.WalkDir(w.path(folder), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() || slices.Contains(but, d.Name()) {
			return nil //nolint:nilerr // what is not there holds nothing
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w.heard(strings.TrimPrefix(path, w.folder), string(text))
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(what string, done func() bool) {
	w.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(5*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			text, _ := os.ReadFile(w.path("daemon.log"))
			w.Fatalf("it is not so that %s\n%s", what, text)
		}
	}
}

// post sends a request to the daemon and returns the answer, headers included.
func (w *world) post(url, token, session, body string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return w.heard("POST "+url, err.Error())
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	var headers bytes.Buffer
	if err := answer.Header.Write(&headers); err != nil {
		w.Fatal(err)
	}
	return w.heard("POST "+url+" "+body, headers.String()+string(text))
}

// talkative is an HTTP server that answers everything with a failure that repeats what it was sent.
func (w *world) talkative() (url string, heard func() string) {
	var mu sync.Mutex
	var all strings.Builder
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said := fmt.Sprintf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		mu.Lock()
		all.WriteString(said + "\n")
		mu.Unlock()
		quoted, _ := json.Marshal(said)
		switch r.URL.Path {
		case "/401":
			rw.Header().Set("WWW-Authenticate", `Bearer realm=`+string(quoted))
			http.Error(rw, said, http.StatusUnauthorized)
		case "/500":
			http.Error(rw, said, http.StatusInternalServerError)
		case "/redirect":
			http.Redirect(rw, r, "http://127.0.0.1:1/elsewhere?"+r.URL.RawQuery, http.StatusFound)
		case "/html":
			rw.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(rw, "<html>%s</html>", said)
		case "/error":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":%s,"data":%s}}`, quoted, quoted)
		case "/broken":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":1,"result":%s`, quoted)
		default:
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, "event: message\ndata: {\"oops\": %s\n\n", quoted)
		}
	}))
	w.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}
