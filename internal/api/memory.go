package api

import (
	"bytes"
	"io"
	"net/http"
)

// NewMemory returns an HTTP client whose requests run a handler of this process, on the caller's goroutine: no listener,
// no port, and the same code on both ends as over a network. Answers are held in memory as a whole, so it is for the
// unary calls of vak.v1, not for streams.
func NewMemory(h http.Handler) *http.Client { return &http.Client{Transport: memory{h}} }

type memory struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "memory"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	w := &answer{header: http.Header{}}
	m.handler.ServeHTTP(w, in)
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// answer is an http.ResponseWriter in memory.
type answer struct {
	header http.Header
	sent   http.Header // as they were when the status was written
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status, a.sent = status, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
