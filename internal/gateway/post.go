package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	contentJSON   = "application/json"
	contentEvents = "text/event-stream"

	// bodyStart is how much is set aside for a body before it arrives, in bytes, whatever length it announces.
	bodyStart = 64 << 10
)

// post takes one message.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, at request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != contentJSON {
		refuse(w, http.StatusUnsupportedMediaType, vakerr.New(vakerr.InvalidRequest, "the content type is not %s", contentJSON))
		return
	}
	json, events := accepts(r.Header, contentJSON), accepts(r.Header, contentEvents)
	if !json && !events {
		refuse(w, http.StatusNotAcceptable, vakerr.New(vakerr.InvalidRequest, "the client accepts neither %s nor %s", contentJSON, contentEvents).
			WithRemedy("send Accept: %s, %s", contentJSON, contentEvents))
		return
	}
	body, err := h.body(w, r)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	m, bad := decode(body)
	if bad != nil {
		refuseMessage(w, m.ID, bad)
		return
	}
	if modernRequest(r.Header, m) {
		h.modern(w, r, at, m)
		return
	}
	if err := checkVersion(r); err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	c, err := h.connection(r, at, m)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	defer h.sessions.release(c)
	if m.Method == string(mcp.MethodInitialize) {
		w.Header().Set(mcp.HeaderSessionID, c.key)
	}
	if m.request() && events {
		p := &response{h: h, w: w, r: r, c: c}
		p.serve(m, c.legacyAsker(m, p), json)
		return
	}
	answer, work := c.accept(m, nil)
	if work != nil {
		answer = work()
	}
	switch {
	case !m.request():
		w.WriteHeader(http.StatusAccepted)
	case answer == nil: // the client cancelled it, and has most likely left
		writeJSON(w, http.StatusOK, failure(errCancelled).frame(m.ID))
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// body reads the whole message.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	errLarge := vakerr.New(vakerr.TooLarge, "the message is larger than %d bytes", h.options.MaxBody).WithRemedy("send less at once")
	if r.ContentLength > h.options.MaxBody {
		return nil, errLarge
	}
	var buffer bytes.Buffer
	if r.ContentLength > 0 {
		buffer.Grow(int(min(r.ContentLength, bodyStart)) + bytes.MinRead)
	}
	if _, err := io.Copy(&buffer, http.MaxBytesReader(w, r.Body, h.options.MaxBody)); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, errLarge
		}
		return nil, vakerr.New(vakerr.InvalidRequest, "the message did not arrive whole").WithCause(err)
	}
	return buffer.Bytes(), nil
}

// connection is the session the message belongs to, in use until it is released: the one the client names, or a new one
// for initialize.
func (h *Handler) connection(r *http.Request, at request, m message) (*connection, error) {
	key := r.Header.Get(mcp.HeaderSessionID)
	if key == "" && m.Method == string(mcp.MethodInitialize) && m.request() {
		return h.connect(r.Context(), at, r.Header.Get(SessionKeyHeader))
	}
	return h.find(key, at)
}

var errNeedsSession = vakerr.New(vakerr.InvalidRequest, "the request names no MCP session").
	WithRemedy("send initialize first, and then the Mcp-Session-Id of its answer")

// find is the session of that key, when it is this principal's and of this endpoint.
func (h *Handler) find(key string, at request) (*connection, error) {
	switch {
	case key == "":
		return nil, errNeedsSession
	case !plain(key): // what stands behind other keys is no client's to name
		return nil, errNoSession
	}
	c := h.sessions.use(key, at)
	if c == nil {
		return nil, errNoSession
	}
	return c, nil
}

// connect makes a session. The client may name the runtime's session; otherwise it gets one of its own.
func (h *Handler) connect(ctx context.Context, at request, runtimeID string) (*connection, error) {
	switch {
	case runtimeID == "":
		runtimeID = newSessionKey()
	case !plain(runtimeID):
		return nil, vakerr.New(vakerr.InvalidRequest, "%s is not 1-%d of [A-Za-z0-9._-]", SessionKeyHeader, maxName)
	}
	return h.enter(ctx, rand.Text(), at, runtimeID)
}

// enter makes a session with that key, in use until it is released.
func (h *Handler) enter(ctx context.Context, key string, at request, runtimeID string) (*connection, error) {
	c := &connection{key: key, principal: at.principal, streams: newStreams()}
	s, err := h.attach(ctx, at.endpoint, runtimeID, c.streams.standing)
	if err != nil {
		return nil, err
	}
	c.session = s
	if err := h.sessions.add(c); err != nil {
		s.close(errStopping)
		return nil, err
	}
	return c, nil
}

// delete ends a session at its client's wish.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, at request) {
	c, err := h.find(r.Header.Get(mcp.HeaderSessionID), at)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	h.sessions.release(c)
	if h.sessions.remove(c) {
		c.finish(errDeleted)
		c.leave(r.Context())
	}
	w.WriteHeader(http.StatusNoContent)
}

var errDeleted = vakerr.New(vakerr.Canceled, "the client ended its MCP session")

// accepts reports whether the client takes answers of a type; one that says nothing takes all.
func accepts(header http.Header, want string) bool {
	lines := header.Values("Accept")
	if len(lines) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	for _, line := range lines {
		for entry := range strings.SplitSeq(line, ",") {
			kind, _, _ := strings.Cut(entry, ";")
			kind = strings.TrimSpace(kind)
			if strings.EqualFold(kind, want) || kind == "*/*" || strings.EqualFold(kind, family+"/*") {
				return true
			}
		}
	}
	return false
}
