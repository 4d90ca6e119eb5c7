package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// modernVersion is the revision of the stateless era that is spoken here.
const modernVersion = "2026-07-28"

// servedVersions are all revisions that are spoken, newest first.
var servedVersions = append([]string{modernVersion}, legacyVersions()...)

func legacyVersions() []string {
	all := slices.Clone(mcp.LegacyProtocolVersions())
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(b, a) })
	return all
}

// modernMeta is what each request of the modern era says of itself and of its client.
type modernMeta struct {
	Version      string
	Capabilities json.RawMessage // an object
	Level        string          // least level of log messages; empty: none are wanted
}

// readMeta reads the _meta of a request. ok is false for a request that does not claim to be of the modern era.
func readMeta(params json.RawMessage) (meta modernMeta, ok bool) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if !bytes.Contains(params, []byte("protocolVersion")) || json.Unmarshal(params, &p) != nil { // a slash in a key may be escaped
		return modernMeta{}, false
	}
	_ = json.Unmarshal(p.Meta[mcp.MetaKeyProtocolVersion], &meta.Version)
	_ = json.Unmarshal(p.Meta[mcp.MetaKeyLogLevel], &meta.Level)
	meta.Capabilities = bounded(p.Meta[mcp.MetaKeyClientCapabilities])
	return meta, meta.Version != ""
}

// refusal is why a request of the modern era is not taken in; nil when it is. header is that of HTTP; nil on pipes.
func (m message) refusal(meta modernMeta, claims bool, header http.Header) *rpcError {
	stated := ""
	if header != nil {
		stated = header.Get(mcp.HeaderProtocolVersion)
	}
	switch {
	case !m.request():
		return nil
	case !claims:
		return invalidParams("_meta lacks %s", mcp.MetaKeyProtocolVersion)
	case header != nil && stated != meta.Version:
		return mismatch("the header MCP-Protocol-Version says %.40q, _meta %.40q", stated, meta.Version)
	case meta.Version != modernVersion:
		return unsupported(meta.Version)
	case len(meta.Capabilities) == 0:
		return invalidParams("_meta lacks the object %s", mcp.MetaKeyClientCapabilities)
	case header == nil:
		return nil
	}
	return m.mismatch(header)
}

// mismatch compares the headers that repeat what the body says.
func (m message) mismatch(header http.Header) *rpcError {
	if got := header.Get(mcp.HeaderMethod); got != m.Method {
		return mismatch("the header Mcp-Method says %.80q, the body %.80q", got, m.Method)
	}
	name, has := mcp.ExtractHeaderName(mcp.MCPMethod(m.Method), m.Params)
	if !has || !mcp.MethodRequiresNameHeader(mcp.MCPMethod(m.Method)) {
		return nil
	}
	if got, readable := mcp.DecodeHeaderValue(strings.TrimSpace(header.Get(mcp.HeaderName))); !readable || got != name {
		return mismatch("the header Mcp-Name says %.80q, the body %.80q", got, name)
	}
	return nil
}

func mismatch(reason string, args ...any) *rpcError {
	return &rpcError{mcp.HEADER_MISMATCH, vakerr.New(vakerr.InvalidRequest, reason, args...).
		WithRemedy("send headers that say what the body says")}
}

// unsupported is the error for a revision that is not spoken here.
func unsupported(version string) *rpcError {
	return &rpcError{mcp.UNSUPPORTED_PROTOCOL_VERSION, vakerr.New(vakerr.InvalidRequest, "MCP %.40q is not served here", version).
		WithRemedy("use one of %s", strings.Join(servedVersions, ", "))}
}

// versionFrame is unsupported as the answer to id, with what a client needs to choose another revision.
func versionFrame(id json.RawMessage, e *rpcError, requested string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{mcp.JSONRPC_VERSION, id, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{e.code, e.err.Reason, struct {
		op.Refusal
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{op.Refusal{Code: e.err.Code, Reason: e.err.Reason, Remedy: e.err.Remedy}, servedVersions, requested}}})
}

// modern serves one message of the stateless era.
func (h *Handler) modern(w http.ResponseWriter, r *http.Request, at request, m message) {
	meta, claims := readMeta(m.Params)
	if bad := m.refusal(meta, claims, r.Header); bad != nil {
		if bad.code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
			writeJSON(w, http.StatusBadRequest, versionFrame(m.ID, bad, meta.Version))
			return
		}
		refuseMessage(w, m.ID, bad)
		return
	}
	if !m.request() {
		w.WriteHeader(http.StatusAccepted) // nothing of this era is told by a notification over HTTP
		return
	}
	c, err := h.stateless(r.Context(), at, r.Header.Get(SessionKeyHeader))
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	defer h.sessions.release(c)
	if bad := c.paramHeaders(m, r.Header); bad != nil && r.Header.Get(SessionKeyHeader) == "" { // behind a bridge is a client without headers
		refuseMessage(w, m.ID, bad)
		return
	}
	events := accepts(r.Header, contentEvents)
	p := &response{h: h, w: w, r: r, c: c, modern: true, noEvents: !events}
	by := asker{modern: true, key: c.requestKey(), peer: peer{meta.Capabilities, meta.Level}, to: p}
	json := accepts(r.Header, contentJSON)
	switch {
	case m.Method == string(mcp.MethodSubscriptionsListen) && !events:
		refuse(w, http.StatusNotAcceptable, vakerr.New(vakerr.InvalidRequest, "the client does not accept %s", contentEvents))
	case m.Method == string(mcp.MethodSubscriptionsListen):
		h.subscribed(p, m, at) //nolint:contextcheck // it takes that of the request
	case mayAsk(m.Method):
		p.call(m, by, json) //nolint:contextcheck // the call outlives the request where it is held
	default:
		stop := context.AfterFunc(r.Context(), func() { c.abandon(by.key) })
		defer stop()
		p.serve(m, by, json)
	}
}

// acceptStateless is accept for a request of the stateless era on pipes, where ids are those of one client. A server cannot ask
// in between: the call says so to it.
func (s *session) acceptStateless(m message, stream outlet) (answer []byte, work func() []byte) {
	meta, claims := readMeta(m.Params)
	if bad := m.refusal(meta, claims, nil); bad != nil {
		if bad.code == mcp.UNSUPPORTED_PROTOCOL_VERSION {
			return versionFrame(m.ID, bad, meta.Version), nil
		}
		return bad.frame(m.ID), nil
	}
	by := asker{modern: true, key: string(m.ID), peer: peer{meta.Capabilities, meta.Level}, to: stream}
	if m.Method == string(mcp.MethodSubscriptionsListen) {
		return s.prepareSubscription(m, by)
	}
	return s.acceptFrom(m, by)
}

// stateless is the session behind all requests of the modern era of one principal at one endpoint, in use until it is
// released. The runtime's session is the one that the client names, or one for all of them.
func (h *Handler) stateless(ctx context.Context, at request, runtimeID string) (*connection, error) {
	if runtimeID != "" && !plain(runtimeID) {
		return nil, vakerr.New(vakerr.InvalidRequest, "%s is not 1-%d of [A-Za-z0-9._-]", SessionKeyHeader, maxName)
	}
	key := strings.Join([]string{"stateless", at.principal, at.Tenant, at.Server, at.Surface, at.WritePaths, runtimeID}, "\x00")
	h.making.Lock()
	defer h.making.Unlock()
	if c := h.sessions.use(key, at); c != nil {
		return c, nil
	}
	return h.enter(ctx, key, at, cmp.Or(runtimeID, newSessionKey()))
}

// requestKey is a key for one request of many clients, whose ids may be equal.
func (c *connection) requestKey() string { return "m" + strconv.FormatUint(c.requests.Add(1), 36) }

// abandon gives up a request whose client has closed the stream.
func (s *session) abandon(key string) {
	s.mu.Lock()
	cancel := s.calls[key]
	s.mu.Unlock()
	if cancel != nil {
		cancel(errCancelled)
	}
}

// discover answers what this server is.
func (s *session) discover(m message, by asker) []byte {
	return by.result(m.ID, true, encode(struct {
		Versions     []string       `json:"supportedVersions"`
		Capabilities capabilities   `json:"capabilities"`
		Instructions string         `json:"instructions"`
		Meta         map[string]any `json:"_meta"`
	}{servedVersions, s.capabilities(), s.instructions(), map[string]any{mcp.MetaKeyServerInfo: s.identity()}}))
}

// modernResult adds to a result what it lacks of what the modern era wants.
func modernResult(cacheable bool, raw ...[]byte) []byte {
	whole := bytes.Join(raw, nil)
	var has struct {
		Type  json.RawMessage `json:"resultType"`
		TTL   json.RawMessage `json:"ttlMs"`
		Scope json.RawMessage `json:"cacheScope"`
	}
	if bytes.Contains(whole, []byte(`"resultType"`)) || bytes.Contains(whole, []byte(`"ttlMs"`)) || bytes.Contains(whole, []byte(`"cacheScope"`)) {
		_ = json.Unmarshal(whole, &has) // it is JSON, and an object
	}
	var more []byte
	if has.Type == nil {
		more = append(more, `"resultType":"complete",`...)
	}
	if cacheable && has.TTL == nil {
		more = append(more, `"ttlMs":0,`...)
	}
	if cacheable && has.Scope == nil {
		more = append(more, `"cacheScope":"private",`...)
	}
	open := bytes.IndexByte(whole, '{')
	if len(more) == 0 || open < 0 {
		return whole
	}
	rest := bytes.TrimLeft(whole[open+1:], " \t\r\n")
	if len(rest) > 0 && rest[0] == '}' {
		more = more[:len(more)-1]
	}
	return append(append([]byte{'{'}, more...), rest...)
}

// statusOfAnswer is the HTTP status of an answer in the modern era.
func statusOfAnswer(m message, answer []byte) int {
	head := len(`{"jsonrpc":"2.0","id":`) + len(m.ID)
	if head > len(answer) || !bytes.HasPrefix(answer[head:], []byte(`,"error"`)) {
		return http.StatusOK
	}
	var e struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(answer, &e) // it was made here
	switch e.Error.Code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
