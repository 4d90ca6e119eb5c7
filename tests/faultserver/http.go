package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

const sessionHeader = "Mcp-Session-Id"

// endpoint is the Streamable HTTP side of a server.
type endpoint struct {
	s *server

	mu        sync.Mutex // guards the fields below
	sessions  map[string]bool
	streams   map[chan []byte]bool   // open GET streams
	bySession map[string]chan []byte // of HTTP+SSE
	calls     int
	lost      bool
}

// serveHTTP serves until the process is killed.
func serveHTTP(s *server) {
	l, err := net.Listen("tcp", s.o.http)
	if err != nil {
		fatal(err)
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	e := &endpoint{s: s, sessions: map[string]bool{}, streams: map[chan []byte]bool{}, bySession: map[string]chan []byte{}}
	fatal(http.Serve(l, e))
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := e.s.o
	switch {
	case o.redirect != "":
		http.Redirect(w, r, o.redirect, http.StatusTemporaryRedirect)
	case o.status != 0:
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		http.Error(w, "refused", o.status)
	case o.oldSSE:
		e.oldSSE(w, r)
	case r.Method == http.MethodPost:
		e.post(w, r)
	case r.Method == http.MethodGet && !o.noStream && !o.modern:
		e.stream(w, r)
	case r.Method == http.MethodDelete && e.known(r):
		e.forget(r.Header.Get(sessionHeader))
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (e *endpoint) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, "bad frame", http.StatusBadRequest)
		return
	}
	switch {
	case e.s.o.modern:
		if !modernHeaders(r, m) {
			e.reply(w, r, m, http.StatusBadRequest)
			return
		}
	case m.Method == "initialize":
		w.Header().Set(sessionHeader, e.newSession())
	case !e.known(r):
		e.noSession(w, m)
		return
	}
	if m.Method == "tools/call" && e.loses() {
		e.noSession(w, m)
		return
	}
	if m.ID == nil || m.Method == "" {
		e.s.handle(m, e.broadcast)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	e.reply(w, r, m, http.StatusOK)
}

// noSession says that the session is not known, in one of the ways that servers have.
func (e *endpoint) noSession(w http.ResponseWriter, m message) {
	status := e.s.o.lostStatus
	if status != http.StatusOK {
		http.Error(w, "no such session", status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, m.ID)
}

// modernHeaders reports whether the headers repeat what the body says.
func modernHeaders(r *http.Request, m message) bool {
	return r.Header.Get("Mcp-Method") == m.Method && r.Header.Get("MCP-Protocol-Version") == "2026-07-28"
}

// reply lets the server handle m and writes what it sends, up to the response.
func (e *endpoint) reply(w http.ResponseWriter, r *http.Request, m message, status int) {
	frames := make(chan []byte, 64)
	send := func(frame []byte) {
		select {
		case frames <- frame:
		case <-r.Context().Done():
		}
	}
	go e.s.handle(m, send)
	stream := e.s.o.sse || m.Method == "subscriptions/listen"
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		flush(w)
	}
	if e.s.o.answerElsewhere && m.Method == "tools/call" {
		_, _ = io.WriteString(w, "id: 1\ndata:\n\n") // and the stream ends
		e.broadcast(<-frames)
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case frame := <-frames:
			response := bytes.Contains(frame, []byte(`"result":`)) || bytes.Contains(frame, []byte(`"error":`))
			switch {
			case stream:
				writeEvent(w, frame)
			case response:
				w.Header().Set("Content-Type", "application/json")
				if e.s.o.modern && bytes.Contains(frame, []byte("-32601")) {
					status = http.StatusNotFound
				}
				w.WriteHeader(status)
				_, _ = w.Write(frame)
			default:
				e.broadcast(frame)
			}
			if response {
				return
			}
		}
	}
}

// stream is the GET stream for what the server says of itself.
func (e *endpoint) stream(w http.ResponseWriter, r *http.Request) {
	if !e.known(r) {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	frames := make(chan []byte, 64)
	e.mu.Lock()
	e.streams[frames] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.streams, frames)
		e.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, ": hello\n\n")
	flush(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case frame := <-frames:
			writeEvent(w, frame)
		}
	}
}

func writeEvent(w http.ResponseWriter, frame []byte) {
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", frame)
	flush(w)
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// broadcast sends a frame on every open GET stream; a full one loses it.
func (e *endpoint) broadcast(frame []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for frames := range e.streams {
		select {
		case frames <- frame:
		default:
		}
	}
}

func (e *endpoint) newSession() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := rand.Text()
	e.sessions[id] = true
	return id
}

func (e *endpoint) known(r *http.Request) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[r.Header.Get(sessionHeader)]
}

func (e *endpoint) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sessions, id)
}

// loses counts a call and reports whether this is the one at which the sessions are forgotten.
func (e *endpoint) loses() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if e.lost || e.s.o.loseSessionAfter == 0 || e.calls <= e.s.o.loseSessionAfter {
		return false
	}
	e.lost = true
	clear(e.sessions)
	return true
}

// oldSSE serves HTTP+SSE: a stream that names the address for messages, by which all answers come.
func (e *endpoint) oldSSE(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet:
		frames := make(chan []byte, 64)
		id := e.newSession()
		e.mu.Lock()
		e.streams[frames] = true
		e.bySession[id] = frames
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: endpoint\ndata: %s/messages?session=%s\n\n", e.s.o.elsewhere, id)
		flush(w)
		for {
			select {
			case <-r.Context().Done():
				return
			case frame := <-frames:
				writeEvent(w, frame)
			}
		}
	case r.URL.Path == "/messages":
		var m message
		e.mu.Lock()
		frames := e.bySession[r.URL.Query().Get("session")]
		e.mu.Unlock()
		if json.NewDecoder(r.Body).Decode(&m) != nil || frames == nil {
			http.Error(w, "bad message", http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		e.s.handle(m, func(frame []byte) { frames <- frame })
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}
