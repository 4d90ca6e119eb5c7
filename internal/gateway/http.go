package gateway

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Options configure a Handler. Door alone is required.
type Options struct {
	Door    protocol.Door
	Version string       // of the program, as clients are told
	Log     *slog.Logger // nil: nothing is logged

	// Authorize is nil for a request that may speak to the tenant; unauthenticated becomes 401, everything else 403. It is
	// not asked about requests over a unix socket, whose file mode is its authorization. Nil: everybody may.
	Authorize func(tenant string, header http.Header) error

	// AllowedHosts are the host names, without a port, by which the server may be addressed, against DNS rebinding. Empty:
	// loopback names only. "*" allows every name. Requests over a unix socket are not checked.
	AllowedHosts []string

	// AllowedOrigins are the origins (scheme://host[:port]) of web pages that may ask, besides those of loopback and of a
	// host that AllowedHosts names.
	AllowedOrigins []string

	MaxBody        int64         // bytes of a POST; default 8 MiB
	MaxSessions    int           // MCP sessions at once; default 10,000
	SessionIdleTTL time.Duration // after which a session nobody uses ends; default 1 h
}

// Defaults of Options.
const (
	DefaultMaxBody        = 8 << 20
	DefaultMaxSessions    = 10_000
	DefaultSessionIdleTTL = time.Hour
)

// SessionKeyHeader lets a client that attaches for another program name the runtime's session, see SessionKey.
const SessionKeyHeader = "Vak-Session-Key"

// Handler serves MCP over Streamable HTTP at /mcp (tenant "default"), /mcp/<tenant> and /mcp/<tenant>/server/<name>, each
// with ?surface=full or search, and &write-path=P for each path that write and edit may touch, where that is restricted. Close ends its sessions; call it before waiting for requests in flight, as a client's
// listening stream ends by itself only with its session.
type Handler struct {
	*front
	options  Options
	sessions *table
	stop     chan struct{}  // closed by Close
	stopOnce sync.Once      // guards stop
	work     sync.WaitGroup // the sweep
	making   sync.Mutex     // held while a session of the modern era is looked for and made
}

// NewHandler starts a handler.
func NewHandler(o Options) *Handler {
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.SessionIdleTTL == 0 {
		o.SessionIdleTTL = DefaultSessionIdleTTL
	}
	h := &Handler{
		front: newFront(o.Door, o.Version, o.Log), options: o, sessions: newTable(o.MaxSessions), stop: make(chan struct{}),
	}
	h.work.Go(h.sweep)
	return h
}

// Close ends every session, cancels its calls, and waits for both. Requests that arrive later are answered with 503. The
// runtime's sessions stay: the clients come back to the daemon's next life.
func (h *Handler) Close() {
	h.stopOnce.Do(func() { close(h.stop) })
	var ending sync.WaitGroup
	for _, c := range h.sessions.closeAll() {
		ending.Go(func() { c.finish(errStopping) })
	}
	ending.Wait()
	h.work.Wait()
}

// stopped reports whether Close was called.
func (h *Handler) stopped() bool {
	select {
	case <-h.stop:
		return true
	default:
		return false
	}
}

var errStopping = vakerr.New(vakerr.ShuttingDown, "the daemon is stopping").WithRemedy("try again when it is back")

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, err := h.admit(r)
	if err == nil && h.stopped() {
		err = errStopping
	}
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	if r.Method != http.MethodPost && mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		w.Header().Set("Allow", "POST") // this era has no sessions to end, and no stream of its own
		refuse(w, http.StatusMethodNotAllowed, vakerr.New(vakerr.InvalidRequest, "MCP %s is served by POST only", modernVersion))
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, at)
	case http.MethodGet:
		h.get(w, r, at)
	case http.MethodDelete:
		h.delete(w, r, at)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		refuse(w, http.StatusMethodNotAllowed, vakerr.New(vakerr.InvalidRequest, "the method %.20s is not served here", r.Method))
	}
}

// request is what is known of an HTTP request before its body is read.
type request struct {
	endpoint
	principal string // whoever asks; sessions belong to one
}

// admit checks everything that is in the headers.
func (h *Handler) admit(r *http.Request) (request, error) {
	local := overSocket(r)
	if !local {
		if err := h.checkHost(r); err != nil {
			return request{}, err
		}
	}
	if err := h.checkOrigin(r); err != nil {
		return request{}, err
	}
	at, err := route(r)
	if err != nil {
		return request{}, err
	}
	if h.options.Authorize != nil && !local {
		if err := h.options.Authorize(at.Tenant, r.Header); err != nil {
			return request{}, err
		}
	}
	return request{at, principal(r, local)}, nil
}

// route reads the path.
func route(r *http.Request) (endpoint, error) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/mcp")
	parts := strings.Split(rest, "/")
	tenant, server := protocol.DefaultTenant, ""
	switch {
	case !ok:
	case rest == "":
	case len(parts) == 2 && parts[0] == "":
		tenant = parts[1]
	case len(parts) == 4 && parts[0] == "" && parts[2] == "server" && parts[3] != "":
		tenant, server = parts[1], parts[3]
	default:
		ok = false
	}
	if !ok {
		return endpoint{}, errNoRoute
	}
	if r.URL.RawQuery == "" {
		return newEndpoint(tenant, server, "", nil)
	}
	query := r.URL.Query()
	return newEndpoint(tenant, server, query.Get("surface"), query["write-path"])
}

var errNoRoute = vakerr.New(vakerr.InvalidRequest, "nothing is served at this path").
	WithRemedy("use /mcp, /mcp/<tenant> or /mcp/<tenant>/server/<name>")

// modernRequest reports whether a message is one of the stateless era: its header or its body says so.
func modernRequest(header http.Header, m message) bool {
	if mcp.IsModernProtocol(header.Get(mcp.HeaderProtocolVersion)) || m.Method == string(mcp.MethodServerDiscover) {
		return true
	}
	_, claims := readMeta(m.Params)
	return claims
}

// checkVersion refuses legacy revisions of the protocol that this server does not speak.
func checkVersion(r *http.Request) error {
	v := r.Header.Get(mcp.HeaderProtocolVersion)
	if v == "" || mcp.IsValidProtocolVersion(v) && !mcp.IsModernProtocol(v) {
		return nil
	}
	return errVersion
}

var errVersion = vakerr.New(vakerr.InvalidRequest, "this MCP-Protocol-Version is not served here").
	WithRemedy("use one of %s, and begin with initialize", strings.Join(mcp.LegacyProtocolVersions(), ", "))
