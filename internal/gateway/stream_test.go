package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func frames(st *stream, after uint64) string {
	events, ended, _ := st.after(after)
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%d:%s", e.sequence, e.frame))
	}
	return fmt.Sprintf("%s ended=%v", strings.Join(all, " "), ended)
}

func TestStream(t *testing.T) {
	st := newStream(0)
	st.send([]byte("a"))
	st.send([]byte("a")) // nobody has read the first
	if got, want := frames(st, 0), "1:a ended=false"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st.written(1)
	st.send([]byte("a"))
	st.send([]byte("b"))
	if got, want := frames(st, 1), "2:a 3:b ended=false"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	st.end()
	st.send([]byte("late"))
	if got, want := frames(st, 2), "3:b ended=true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	full := newStream(1)
	for i := range 10 * keptEvents {
		full.send(fmt.Append(nil, i))
	}
	if events, _, _ := full.after(0); len(events) != keptEvents || events[0].sequence != 9*keptEvents+1 {
		t.Errorf("%d events are kept, the first is %d", len(events), events[0].sequence)
	}
	if events, _, _ := full.after(1 << 60); len(events) != 0 {
		t.Errorf("%d events lie behind the end", len(events))
	}
}

// Answers whose clients left are kept within bounds, the newest.
func TestAbandonedStreamsAreBounded(t *testing.T) {
	s := newStreams()
	var all []*stream
	for range 100 {
		st := s.add()
		s.abandoned(st)
		all = append(all, st)
	}
	if len(s.open) != keptStreams || len(s.left) != keptStreams {
		t.Errorf("%d streams are kept, %d of them for clients that left", len(s.open), len(s.left))
	}
	if st, _, ok := s.resume("1-0"); !ok || st != s.standing {
		t.Error("a stream that is not kept does not resume as the standing one")
	}
	if st, from, ok := s.resume("100-7"); !ok || st != all[99] || from != 7 {
		t.Error("the newest stream cannot be resumed")
	}
	all[98].send(bytes.Repeat([]byte("x"), keptBytes+1))
	s.bound()
	if len(s.open) != 1 || s.open[100] == nil {
		t.Errorf("%d streams are kept beside one that is too large", len(s.open))
	}
}

// The session of a call whose client left stays until the call has ended, however long nobody asks.
func TestSessionStaysWhileItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, g := newWorld(), newGate()
		w.tools["wait"] = g.tool("wait")
		h := NewHandler(Options{Door: w, SessionIdleTTL: time.Hour})
		post := func(ctx context.Context, id, accept, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", accept)
			r.Header.Set("Mcp-Session-Id", id)
			out := httptest.NewRecorder()
			h.ServeHTTP(out, r)
			return out
		}
		id := post(t.Context(), "", "*/*", initText).Header().Get("Mcp-Session-Id")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { defer close(left); post(ctx, id, contentEvents, callText(1, "wait", "{}")) }()
		<-g.entered
		leave()
		time.Sleep(3 * time.Hour)
		close(g.release)
		<-left
		if len(g.ended) != 0 {
			t.Error("the call was cancelled")
		}
		if got := post(t.Context(), id, "*/*", pingText).Code; got != 200 {
			t.Errorf("the session: %d", got)
		}
		time.Sleep(3 * time.Hour)
		if got := post(t.Context(), id, "*/*", pingText).Code; got != 404 {
			t.Errorf("the session, long after the call: %d", got)
		}
		h.Close()
	})
}

// What announces to be too large is refused before it is read.
func TestLargeBodyIsNotRead(t *testing.T) {
	h := NewHandler(Options{Door: newWorld(), MaxBody: 10})
	defer h.Close()
	body := &counted{in: strings.NewReader(strings.Repeat("x", 1000))}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/mcp", body)
	r.ContentLength = 1000
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	h.ServeHTTP(out, r)
	if out.Code != 413 || body.read != 0 {
		t.Errorf("%d after %d bytes", out.Code, body.read)
	}
}

type counted struct {
	in   io.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read += n
	return n, err
}
