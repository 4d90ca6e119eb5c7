package lifecycle

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/gateway"
)

// fronts are the doors that MCP clients come through.
type fronts struct {
	*world
	url    string
	client *http.Client
}

// fronts serves the world's host over HTTP until the test ends.
func (w *world) fronts() *fronts {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	at, done := make(chan host.Endpoints, 1), make(chan error, 1)
	go func() {
		done <- w.host.Serve(ctx, host.ServeOptions{
			Listen: "127.0.0.1:0", Listening: func(_ context.Context, e host.Endpoints) { at <- e },
		})
	}()
	f := &fronts{w, "", &http.Client{Transport: &http.Transport{}}}
	select {
	case e := <-at:
		f.url = e.URL
	case err := <-done:
		w.Fatal(err)
	}
	w.Cleanup(func() {
		f.client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	return f
}

func request(method string, params any) string {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err) // made of texts and maps
	}
	return string(text)
}

var hello = object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "test", "version": "1"}}

// http makes requests of one client at a path and returns every answer, that to initialize included.
func (f *fronts) http(path string, requests ...string) string {
	f.Helper()
	var all strings.Builder
	session := ""
	for _, body := range append([]string{request("initialize", hello)}, requests...) {
		r, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
		f.must(err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		answer, err := f.client.Do(r)
		f.must(err)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		f.must(err)
		if session == "" {
			session = answer.Header.Get("Mcp-Session-Id")
		}
		fmt.Fprintf(&all, "%d %s\n", answer.StatusCode, text)
	}
	return all.String()
}

// stdio does the same over standard input and output; server may be empty.
func (f *fronts) stdio(server, surface string, requests ...string) string {
	f.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := gateway.ServeStdio(f.Context(), in, out, gateway.StdioOptions{Door: f.host.Door(), Version: "test", Server: server, Surface: surface})
		_ = out.Close()
		done <- err
	}()
	var all strings.Builder
	answers := bufio.NewReader(read)
	for _, body := range append([]string{request("initialize", hello)}, requests...) {
		_, err := io.WriteString(write, body+"\n")
		f.must(err)
		for {
			line, err := answers.ReadString('\n')
			f.must(err)
			all.WriteString(line)
			if strings.Contains(line, `"id":1`) {
				break
			}
		}
	}
	f.must(write.Close())
	_, err := io.Copy(&all, answers)
	f.must(err)
	f.must(<-done)
	return all.String()
}
