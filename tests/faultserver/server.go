package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// sender puts one frame on the way to the client. It may be called from several goroutines.
type sender func(frame []byte)

// server is the behaviour shared by both transports.
type server struct {
	o          options
	grandchild int

	calls     atomic.Int64 // answered
	counter   atomic.Int64 // state of tool counter
	cancelled atomic.Int64 // notifications/cancelled received

	asks atomic.Int64 // requests of ours
	work sync.WaitGroup

	mu         sync.Mutex             // guards what follows
	asked      string                 // the client's last answer to a request of ours
	waiting    map[string]chan string // calls that wait for such an answer, by its id
	subscribed map[string]bool        // resources
	level      string                 // of log messages
}

// handle deals with one message. It answers through send, at once or later.
func (s *server) handle(m message, send sender) {
	if m.Method == "" {
		s.answered(m)
		return
	}
	switch m.Method {
	case s.o.dieOn:
		fmt.Fprintf(os.Stderr, "panic: cannot handle %s\n", m.Method)
		os.Exit(3)
	case s.o.muteOn:
		return
	case s.o.errorOn:
		s.fail(m, send, -32603, "backend is down")
		return
	}
	if m.ID == nil {
		s.notified(m, send)
		return
	}
	switch m.Method {
	case "initialize":
		s.initialize(m, send)
	case "server/discover":
		s.discover(m, send)
	case "subscriptions/listen":
		s.afterStart(send) // the request stays open
	case "ping":
		s.answer(m, send, `{}`)
	case "tools/list":
		s.list(m, send)
	case "tools/call":
		s.call(m, send)
	default:
		s.feature(m, send)
	}
}

func (s *server) notified(m message, send sender) {
	switch m.Method {
	case "notifications/cancelled":
		s.cancelled.Add(1)
	case "notifications/initialized":
		s.afterStart(send)
	}
}

func (s *server) initialize(m message, send sender) {
	if s.o.modern {
		s.fail(m, send, -32601, "method not found: initialize")
		return
	}
	version := s.o.protocol
	if version == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(m.Params, &p)
		version = p.ProtocolVersion
	}
	s.answer(m, send, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,`+
		`"serverInfo":{"name":"faultserver","version":"1.0"},"instructions":"be kind%s"}`, version, s.capabilities(), s.leak(" ")))
}

func (s *server) discover(m message, send sender) {
	if !s.o.modern {
		s.fail(m, send, -32601, "method not found: server/discover")
		return
	}
	s.answer(m, send, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+s.capabilities()+`,`+
		`"instructions":"be modern","ttlMs":0,"cacheScope":"private",`+
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"faultserver","version":"1.0"}}}`)
}

// afterStart begins what a server does of itself, once a client is there.
func (s *server) afterStart(send sender) {
	askClient(s.o.ask, send)
	if s.o.junk {
		go func() {
			line := []byte(strings.Repeat("not a frame ", 100))
			for {
				send(line)
			}
		}()
	}
	if s.o.listChangedAfter > 0 {
		time.AfterFunc(s.o.listChangedAfter, func() { listChanged(send) })
	}
}

func askClient(method string, send sender) {
	if method != "" {
		send([]byte(`{"jsonrpc":"2.0","id":"ask-1","method":"` + method + `","params":{}}`))
	}
}

func listChanged(send sender) {
	send([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
}

// answer sends the result, which is JSON, and the misbehaviour that goes with an answer.
func (s *server) answer(m message, send sender, result string) {
	s.before(send)
	if s.o.idLast {
		send([]byte(`{"result":` + result + `,"jsonrpc":"2.0","id":` + s.id(m) + `}`))
		return
	}
	send([]byte(`{"jsonrpc":"2.0","id":` + s.id(m) + `,"result":` + result + `}`))
}

func (s *server) fail(m message, send sender, code int, text string) {
	s.before(send)
	quoted, _ := json.Marshal(text)
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, s.id(m), code, quoted))
}

func (s *server) before(send sender) {
	if n := s.o.stderrFlood; n > 0 {
		_, _ = os.Stderr.WriteString(strings.Repeat("e", n))
	}
	if s.o.garbage {
		send([]byte(`{"jsonrpc":"2.0","id":`))
		send([]byte(`{"jsonrpc":"2.0","id":99999999,"result":{}}`))
		send([]byte("\x00\xff{}"))
		send([]byte(`[]`))
		send(nil)
	}
}

func (s *server) id(m message) string {
	if s.o.stringIDs {
		return `"` + strings.Trim(string(m.ID), `"`) + `"`
	}
	return string(m.ID)
}

// leak is the value of the variable that the server betrays, behind prefix; empty without -leak-env.
func (s *server) leak(prefix string) string {
	if s.o.leakEnv == "" {
		return ""
	}
	return prefix + os.Getenv(s.o.leakEnv)
}
