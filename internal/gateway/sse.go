package gateway

import (
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	// keepAlive is how often a silent stream says something, so that no proxy takes it for dead.
	keepAlive = 15 * time.Second

	// writeTime is how long one write may take; a client that reads nothing for so long is cut off.
	writeTime = 30 * time.Second
)

// get opens the stream for what answers no request, or resumes any stream of the session.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, at request) {
	if !accepts(r.Header, contentEvents) {
		refuse(w, http.StatusNotAcceptable, vakerr.New(vakerr.InvalidRequest, "the client does not accept %s", contentEvents))
		return
	}
	c, err := h.find(r.Header.Get(mcp.HeaderSessionID), at)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	defer h.sessions.release(c)
	st, from := c.streams.standing, c.streams.standing.unread()
	if id := r.Header.Get(mcp.HeaderLastEventID); id != "" {
		var ok bool
		if st, from, ok = c.streams.resume(id); !ok {
			refuse(w, http.StatusBadRequest, vakerr.New(vakerr.InvalidRequest, "the Last-Event-ID is none of this server"))
			return
		}
	}
	if st == c.streams.standing {
		c.listen(+1)
		defer c.listen(-1)
	}
	h.follow(w, r, c, st, from, false)
}

// follow writes the events behind a sequence, and further ones as they come, until the stream ends, the client leaves, or
// another request takes the stream over. In the modern era events have no ids, and nobody comes back for them.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, c *connection, st *stream, from uint64, modern bool) {
	mine := st.take()
	defer st.leave(mine)
	out := newEventWriter(w)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		events, ended, more := st.after(from)
		for _, e := range events {
			id := eventID(st, e)
			if modern {
				id = ""
			}
			if out.event(id, e.frame) != nil {
				c.streams.leave(st, modern)
				return
			}
			from = e.sequence
			st.written(from)
		}
		switch {
		case ended:
			c.streams.finished(st)
			return
		case out.flush() != nil:
			c.streams.leave(st, modern)
			return
		}
		select {
		case <-more:
		case <-tick.C:
			out.comment("keep-alive")
		case <-r.Context().Done():
			c.streams.leave(st, modern)
			return
		case <-mine:
			return
		}
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  []byte
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", contentEvents)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx and its like would hold events back
	w.WriteHeader(http.StatusOK)
	return &eventWriter{w: w, control: http.NewResponseController(w)}
}

// event writes one frame, which is one line; an empty id is none.
func (e *eventWriter) event(id string, frame []byte) error {
	b := e.buffer[:0]
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(b, "event: message\ndata: "...)
	b = append(b, frame...)
	b = append(b, "\n\n"...)
	e.buffer = b
	if cap(b) > bodyStart {
		e.buffer = nil
	}
	return e.write(b)
}

// comment writes what clients skip; an error shows at the next flush.
func (e *eventWriter) comment(text string) { _ = e.write([]byte(": " + text + "\n\n")) }

func (e *eventWriter) write(b []byte) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime)) // where it cannot be set, the server's own holds
	_, err := e.w.Write(b)
	return err
}

func (e *eventWriter) flush() error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime))
	return e.control.Flush()
}
