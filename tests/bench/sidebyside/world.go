package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// world is a daemon and the direct server.
type world struct {
	folder         string
	daemon, direct string // URLs
	process        *exec.Cmd
	echo           *exec.Cmd
	tools          int
}

func newWorld(o options) (w *world, err error) {
	w = &world{}
	if w.folder, err = os.MkdirTemp("", "sidebyside"); err != nil {
		return nil, err
	}
	config := fmt.Sprintf("[permissions]\nmode = \"full-access\"\n[mcp.servers.echo]\ncommand = %q\nmax_in_flight = 64\n", o.echo)
	if o.catalogs != "" {
		catalog := filepath.Join(w.folder, "catalog.json")
		if w.tools, err = collect(o.catalogs, catalog); err != nil {
			return nil, err
		}
		config += fmt.Sprintf("[mcp.servers.many]\ncommand = %q\nargs = [\"-catalog-file\", %q]\n", o.faultserver, catalog)
	}
	workspace := filepath.Join(w.folder, "workspace")
	if err := errors.Join(os.MkdirAll(workspace, 0o755), os.WriteFile(filepath.Join(workspace, "vak.toml"), []byte(config), 0o600)); err != nil {
		return nil, err
	}
	free, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w.direct = "http://" + free + "/mcp"
	w.echo = exec.Command(o.echo, "-http", free)
	w.echo.Stderr = os.Stderr
	w.process = exec.Command(o.daemon, "serve", "--workspace", workspace, "--data", filepath.Join(w.folder, "data"), "--listen", "127.0.0.1:0")
	w.process.Stderr = os.Stderr
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.echo.Start(), w.process.Start()); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, says := strings.Cut(lines.Text(), "http://"); says {
			w.daemon = "http://" + strings.TrimSuffix(strings.Fields(at)[0], "/mcp")
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return w, awaitListener(free)
		}
	}
	return nil, errors.New("the daemon does not start")
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func awaitListener(address string) error {
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("nothing listens on %s", address)
}

func (w *world) stop() {
	for _, c := range []*exec.Cmd{w.process, w.echo} {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}
	_ = os.RemoveAll(w.folder)
}

// collect writes the tools of all catalogs as one, under names that differ.
func collect(folder, into string) (tools int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return 0, err
	}
	var all []map[string]json.RawMessage
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		var list struct {
			Tools []map[string]json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(raw, &list) != nil {
			continue
		}
		for _, tool := range list.Tools {
			tool["name"] = json.RawMessage(strconv.Quote(fmt.Sprintf("t%04d", len(all))))
			all = append(all, tool)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return 0, err
	}
	return len(all), os.WriteFile(into, text, 0o600)
}

// cpu is what the daemon has used so far, without its children.
func (w *world) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.process.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond // USER_HZ is 100 on Linux
	return time.Duration(user+system) * tick
}

// resident is the daemon's memory in bytes.
func (w *world) resident() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.process.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(raw))[1], 64)
	return pages * float64(os.Getpagesize())
}

// costs are the figures that are no calls.
func (w *world) costs(ctx context.Context) ([]row, error) {
	search, err := connect(ctx, w.daemon+"/mcp?surface=search")
	if err != nil {
		return nil, err
	}
	list, err := search.post(ctx, listTools)
	if err != nil {
		return nil, err
	}
	grown, err := w.attached(ctx)
	if err != nil {
		return nil, err
	}
	rows := []row{{fmt.Sprintf("%d attached sessions", sessions), fmt.Sprintf("%.1f MiB", grown), "<= 60 MiB", grown <= 60}, {"find surface, tools/list", fmt.Sprintf("%d bytes", len(list)), "<= 3 KB", len(list) <= 3<<10}}
	if w.tools > 0 {
		r, err := w.lists(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// attached is how much the daemon grows by sessions that have listed their tools, in MiB.
func (w *world) attached(ctx context.Context) (float64, error) {
	before := w.resident()
	for range sessions {
		c, err := connect(ctx, w.daemon+"/mcp?surface=search")
		if err != nil {
			return 0, err
		}
		if _, err := c.post(ctx, listTools); err != nil {
			return 0, err
		}
	}
	return (w.resident() - before) / (1 << 20), nil
}

const listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

// lists is how long the list of all real tools takes once it is known.
func (w *world) lists(ctx context.Context) (row, error) {
	c, err := connect(ctx, w.daemon+"/mcp")
	if err != nil {
		return row{}, err
	}
	if _, err := c.post(ctx, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mcp","arguments":{"action":"list","server":"many"}}}`); err != nil {
		return row{}, err
	}
	var times []float64
	for i := range 40 {
		begun := time.Now()
		list, err := c.post(ctx, listTools)
		took := time.Since(begun)
		if err != nil {
			return row{}, err
		}
		if known := strings.Count(string(list), `"many__t`); known < w.tools*95/100 {
			if i > 20 {
				return row{}, fmt.Errorf("only %d of %d tools are listed", known, w.tools)
			}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		times = append(times, took.Seconds()*1e3)
	}
	p50 := median(times)
	return row{fmt.Sprintf("tools/list of %d tools, p50", w.tools), fmt.Sprintf("%.1f ms", p50), "<= 5 ms", p50 <= 5}, nil
}
