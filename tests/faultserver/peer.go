package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ask sends the client a request on the way of the call m, and answers the call with what the client said.
func (s *server) ask(m message, send sender, method string, params json.RawMessage) {
	id := fmt.Sprintf("ask-%d", s.asks.Add(1))
	answer := make(chan string, 1)
	s.mu.Lock()
	s.waiting[id] = answer
	s.mu.Unlock()
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params))
	s.work.Go(func() { s.text(m, send, <-answer) })
}

// answered hears the client's answer to one of our requests.
func (s *server) answered(m message) {
	said := string(m.Result) + string(m.Error)
	id := strings.Trim(string(m.ID), `"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = said
	if waiting := s.waiting[id]; waiting != nil {
		delete(s.waiting, id)
		waiting <- said
	}
}

// capabilities are what the server declares.
func (s *server) capabilities() string {
	if !s.o.features {
		return `{"tools":{"listChanged":true}}`
	}
	return `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},` +
		`"completions":{},"logging":{}}`
}

// feature answers the requests that are not about tools.
func (s *server) feature(m message, send sender) {
	var p struct {
		URI       string            `json:"uri"`
		Name      string            `json:"name"`
		Level     string            `json:"level"`
		Arguments map[string]string `json:"arguments"`
		Argument  struct {
			Value string `json:"value"`
		} `json:"argument"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if !s.o.features {
		m.Method = ""
	}
	switch m.Method {
	case "resources/list":
		s.answer(m, send, `{"resources":[{"uri":"fault://one","name":"one","mimeType":"text/plain"},{"uri":"fault://two","name":"two"}]}`)
	case "resources/templates/list":
		s.answer(m, send, `{"resourceTemplates":[{"uriTemplate":"fault://item/{id}","name":"item"}]}`)
	case "resources/read":
		if !strings.HasPrefix(p.URI, "fault://") {
			s.fail(m, send, -32002, "resource not found")
			return
		}
		s.answer(m, send, fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":"text/plain","text":"content of %s"}]}`, p.URI, p.URI))
	case "resources/subscribe", "resources/unsubscribe":
		s.mu.Lock()
		s.subscribed[p.URI] = m.Method == "resources/subscribe"
		s.mu.Unlock()
		s.answer(m, send, `{}`)
	case "logging/setLevel":
		s.mu.Lock()
		s.level = p.Level
		s.mu.Unlock()
		s.answer(m, send, `{}`)
	case "prompts/list":
		s.answer(m, send, `{"prompts":[{"name":"greet","description":"Greets.","arguments":[{"name":"who","required":true}]}]}`)
	case "prompts/get":
		s.answer(m, send, fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":"Greet %s."}}]}`, p.Arguments["who"]))
	case "completion/complete":
		s.answer(m, send, fmt.Sprintf(`{"completion":{"values":["%sa","%sb"],"total":2,"hasMore":false}}`, p.Argument.Value, p.Argument.Value))
	default:
		s.fail(m, send, -32601, "method not found: "+m.Method)
	}
}

// touch says that a resource was updated, if the client subscribed to it.
func (s *server) touch(uri string, send sender) {
	s.mu.Lock()
	wanted := s.subscribed[uri]
	s.mu.Unlock()
	if wanted {
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q}}`, uri))
	}
}

// log sends a log message on the way of a call.
func (s *server) log(text string, send sender) {
	quoted, _ := json.Marshal(text)
	send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%s}}`, quoted))
}
