package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// arguments are those of all tools together.
type arguments struct {
	Text  string  `json:"text"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	MS    int     `json:"ms"`
	Steps int     `json:"steps"`
	Bytes int     `json:"bytes"`
	URI   string  `json:"uri"`

	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type callParams struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
	Meta      struct {
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func (s *server) call(m message, send sender) {
	var p callParams
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.fail(m, send, -32602, "bad params")
		return
	}
	if s.o.callLog != "" {
		appendLine(s.o.callLog, p.Name)
	}
	askClient(s.o.askOnCall, send)
	for range s.o.listChangedStorm {
		listChanged(send)
	}
	if s.o.listChangedOnCall {
		listChanged(send)
	}
	switch p.Name {
	case "sleep": // others may run meanwhile
		go func() {
			time.Sleep(time.Duration(p.Arguments.MS) * time.Millisecond)
			s.text(m, send, "slept")
		}()
	case "slow":
		s.progress(p, send)
		s.text(m, send, "done")
	case "ask":
		s.ask(m, send, p.Arguments.Method, p.Arguments.Params)
	case "crash":
		fmt.Fprintln(os.Stderr, "fatal: out of luck"+s.leak(" with "))
		os.Exit(3)
	case "nan":
		s.answer(m, send, `{"content":[],"value":NaN}`)
	case "fail":
		s.answer(m, send, `{"isError":true,"content":[{"type":"text","text":"it failed"}]}`)
	case "leak":
		fmt.Fprintln(os.Stderr, "using"+s.leak(" "))
		s.fail(m, send, -32000, "upstream refused the key"+s.leak(" "))
	default:
		s.simple(m, send, p)
	}
	if n := s.calls.Add(1); s.o.exitAfter > 0 && n >= int64(s.o.exitAfter) {
		os.Exit(0)
	}
}

// simple answers the tools whose result is one text.
func (s *server) simple(m message, send sender, p callParams) {
	switch p.Name {
	case "echo":
		s.text(m, send, p.Arguments.Text)
	case "add":
		s.text(m, send, fmt.Sprint(p.Arguments.A+p.Arguments.B))
	case "env":
		s.text(m, send, strings.Join(os.Environ(), "\n"))
	case "big":
		s.text(m, send, strings.Repeat("b", p.Arguments.Bytes))
	case "counter":
		s.text(m, send, fmt.Sprint(s.counter.Add(1)))
	case "write":
		s.text(m, send, "written")
	case "cancelled":
		s.text(m, send, fmt.Sprint(s.cancelled.Load()))
	case "log":
		s.log(p.Arguments.Text, send)
		s.text(m, send, "logged")
	case "touch":
		s.touch(p.Arguments.URI, send)
		s.text(m, send, "touched")
	case "level":
		s.mu.Lock()
		level := s.level
		s.mu.Unlock()
		s.text(m, send, level)
	case "asked":
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		s.text(m, send, asked)
	case "grandchild":
		s.text(m, send, fmt.Sprint(s.grandchild))
	default:
		if strings.HasPrefix(p.Name, "plain") || s.o.catalogFile != "" {
			s.text(m, send, p.Name)
			return
		}
		s.fail(m, send, -32602, "unknown tool: "+p.Name)
	}
}

func (s *server) progress(p callParams, send sender) {
	if p.Meta.ProgressToken == nil {
		return
	}
	for i := range p.Arguments.Steps {
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`,
			p.Meta.ProgressToken, i+1))
	}
}

func (s *server) text(m message, send sender, text string) {
	quoted, _ := json.Marshal(text)
	s.answer(m, send, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}
