// Command sidebyside compares, in one run and interleaved, a call of a tool that a client makes directly over HTTP with the
// same call through a daemon to the same server over pipes, and measures what the daemon costs besides. It prints a table
// with the target of each figure.
//
//	sidebyside -daemon vak-actors -echo echo -faultserver faultserver [-catalogs folder] [-rounds 5]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type options struct {
	daemon, echo, faultserver, catalogs string
	rounds                              int
}

func main() {
	var o options
	flag.StringVar(&o.daemon, "daemon", "", "path of vak-actors")
	flag.StringVar(&o.echo, "echo", "", "path of the echo server")
	flag.StringVar(&o.faultserver, "faultserver", "", "path of the fault server, which serves the catalogs")
	flag.StringVar(&o.catalogs, "catalogs", "", "folder of results of tools/list, a server a file; empty: none are listed")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median counts")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	sequential = 400 // calls of a batch, one after another
	callers    = 32
	sessions   = 1000
	window     = 1500 * time.Millisecond // of callers at once
)

// row is a line of the table.
type row struct {
	what, figure, target string
	met                  bool
}

func run(ctx context.Context, o options) error {
	w, err := newWorld(o)
	if err != nil {
		return err
	}
	defer w.stop()
	direct, err := connect(ctx, w.direct)
	if err != nil {
		return err
	}
	through, err := connect(ctx, w.daemon+"/mcp/default/server/echo")
	if err != nil {
		return err
	}
	for range 3 { // demand, and warm
		for _, c := range []*client{direct, through} {
			if _, err := c.batch(ctx, "read"); err != nil {
				return err
			}
		}
	}
	var p50, p50write, p50direct, cpu, cpuWrite, p99, p99direct, rate, rateDirect []float64
	for range o.rounds {
		d, err := direct.batch(ctx, "read")
		if err != nil {
			return err
		}
		before := w.cpu()
		t, err := through.batch(ctx, "read")
		if err != nil {
			return err
		}
		between := w.cpu()
		wr, err := through.batch(ctx, "write")
		if err != nil {
			return err
		}
		after := w.cpu()
		p50direct, p50, p50write = append(p50direct, quantile(d, .5)), append(p50, quantile(t, .5)), append(p50write, quantile(wr, .5))
		p99direct, p99 = append(p99direct, quantile(d, .99)), append(p99, quantile(t, .99))
		cpu = append(cpu, (between-before).Seconds()*1e3/sequential)
		cpuWrite = append(cpuWrite, (after-between).Seconds()*1e3/sequential)
		rd, err := direct.many(ctx)
		if err != nil {
			return err
		}
		rt, err := through.many(ctx)
		if err != nil {
			return err
		}
		rateDirect, rate = append(rateDirect, rd), append(rate, rt)
	}
	ratio := median(p50) / median(p50direct)
	share := 100 * median(rate) / median(rateDirect)
	rows := []row{
		{"direct, p50", fmt.Sprintf("%.0f µs", median(p50direct)), "", true},
		{"direct, p99", fmt.Sprintf("%.0f µs", median(p99direct)), "", true},
		{"through the daemon, a reading call, p50", fmt.Sprintf("%.0f µs", median(p50)), "", true},
		{"through the daemon, a reading call, p99", fmt.Sprintf("%.0f µs", median(p99)), "", true},
		{"through the daemon, a writing call, p50", fmt.Sprintf("%.0f µs", median(p50write)), "", true},
		{"p50 of a reading call, of the direct one", fmt.Sprintf("%.2fx", ratio), "<= 1.8x", ratio <= 1.8},
		{"CPU of the daemon, a reading call", fmt.Sprintf("%.3f ms", median(cpu)), "<= 0.32 ms", median(cpu) <= .32},
		{"CPU of the daemon, a writing call", fmt.Sprintf("%.3f ms", median(cpuWrite)), "", true},
		{fmt.Sprintf("direct calls/s, %d callers", callers), fmt.Sprintf("%.0f", median(rateDirect)), "", true},
		{fmt.Sprintf("calls/s through the daemon, %d callers", callers), fmt.Sprintf("%.0f (%.0f %%)", median(rate), share), ">= 80 %", share >= 80},
	}
	more, err := w.costs(ctx)
	if err != nil {
		return err
	}
	return show(append(rows, more...))
}

func show(rows []row) error {
	missed := 0
	for _, r := range rows {
		verdict := ""
		switch {
		case r.target == "":
		case r.met:
			verdict = "met"
		default:
			verdict = "MISSED"
			missed++
		}
		fmt.Printf("%-48s %18s   %-12s %s\n", r.what, r.figure, r.target, verdict)
	}
	if missed > 0 {
		return fmt.Errorf("%d targets were missed", missed)
	}
	return nil
}

// client is one MCP session over HTTP.
type client struct{ url, session string }

var transport = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * callers, DisableCompression: true}}

func connect(ctx context.Context, url string) (*client, error) {
	c := &client{url: url}
	_, err := c.post(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sidebyside","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	_, err = c.post(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, err
}

func (c *client) post(ctx context.Context, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	answer, err := transport.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	text := make([]byte, 0, max(answer.ContentLength, 512)+bytes.MinRead)
	buffer := bytes.NewBuffer(text)
	_, err = buffer.ReadFrom(answer.Body)
	text = buffer.Bytes()
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s: %.200s", c.url, answer.Status, text)
	}
	return text, err
}

var numbers atomic.Int64

func (c *client) call(ctx context.Context, tool string) error {
	n := numbers.Add(1)
	answer, err := c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"text":"hi %d"}}}`, n, tool, n))
	if err == nil && !bytes.Contains(answer, fmt.Appendf(nil, `"hi %d"`, n)) {
		err = fmt.Errorf("%s answered call %d with %.200s", c.url, n, answer)
	}
	return err
}

// batch is the times of calls one after another, in microseconds, sorted.
func (c *client) batch(ctx context.Context, tool string) ([]float64, error) {
	times := make([]float64, sequential)
	for i := range times {
		begun := time.Now()
		if err := c.call(ctx, tool); err != nil {
			return nil, err
		}
		times[i] = float64(time.Since(begun).Nanoseconds()) / 1e3
	}
	slices.Sort(times)
	return times, nil
}

// many is how many calls a second so many callers get answered.
func (c *client) many(ctx context.Context) (float64, error) {
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	until := time.Now().Add(window)
	begun := time.Now()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for time.Now().Before(until) {
				if err := c.call(ctx, "read"); err != nil {
					failed.Store(&err)
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(calls.Load()) / time.Since(begun).Seconds(), nil
}

func quantile(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }

func median(values []float64) float64 {
	all := slices.Clone(values)
	slices.Sort(all)
	return quantile(all, .5)
}
