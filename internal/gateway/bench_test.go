package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/protocol"
)

// instant is a door that costs nothing, so that what is measured is the front.
type instant struct{}

var (
	instantResult proto.Message = &sessionv1.DispatchResult{ResultJson: []byte(`{"content":[{"type":"text","text":"hi"}]}`)}
	instantOpen   proto.Message = &sessionv1.OpenSessionResult{}
)

func (instant) Attend(protocol.Client) (string, func()) { return "", func() {} }

func (instant) Subscribe(string, func()) (func(), error) { return func() {}, nil }

func (instant) Ask(_ context.Context, command proto.Message) (proto.Message, error) {
	if _, call := command.(*sessionv1.Dispatch); call {
		return instantResult, nil
	}
	return instantOpen, nil
}

const benchCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`

// BenchmarkSession is the core alone, BenchmarkHandler with the HTTP handler around it.
func BenchmarkSession(b *testing.B) {
	s, err := newFront(instant{}, "bench", nil).attach(b.Context(), everything, "x", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.close(errDeleted)
	b.ReportAllocs()
	for b.Loop() {
		m, _ := decode([]byte(benchCall))
		_, work := s.accept(m, nil)
		work()
	}
}

func BenchmarkHandler(b *testing.B) {
	h := NewHandler(Options{Door: instant{}})
	defer h.Close()
	request := func(id, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", id)
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		return out
	}
	id := request("", initText).Header().Get("Mcp-Session-Id")
	b.ReportAllocs()
	for b.Loop() {
		request(id, benchCall)
	}
}

// BenchmarkHTTP is a call over a loopback connection; BenchmarkHTTP/floor the same bytes with a handler that only reads and
// answers. cpu-µs/op is user and system time of the whole process, the client's share in both; the difference is the
// gateway's own.
func BenchmarkHTTP(b *testing.B) {
	h := NewHandler(Options{Door: instant{}})
	defer h.Close()
	floor := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Mcp-Session-Id", "x")
		writeJSON(w, http.StatusOK, []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`))
	})
	for name, handler := range map[string]http.Handler{"gateway": h, "floor": floor} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(handler)
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			call := func(id, body string) *http.Response {
				_, _ = fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				return resp
			}
			id := call("", initText).Header.Get("Mcp-Session-Id")
			before := cpu(b)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				call(id, benchCall)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpu is the user and system time of this process, in µs.
func cpu(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}
