package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// errNoSession is told of ids that were never given, have ended, or are another's alike: whoever guesses learns nothing.
var errNoSession = vakerr.New(vakerr.SessionNotFound, "there is no such MCP session").WithRemedy("send initialize again")

// codeNoSession is the JSON-RPC code that MCP's own libraries use with 404.
const codeNoSession = -32001

// statusOf is the HTTP status of a refusal that is not about one message.
func statusOf(err error) int {
	if err == error(errNoRoute) { //nolint:errorlint // this very refusal
		return http.StatusNotFound
	}
	switch vakerr.CodeOf(err) {
	case vakerr.Unauthenticated:
		return http.StatusUnauthorized
	case vakerr.PermissionDenied:
		return http.StatusForbidden
	case vakerr.UnknownTenant, vakerr.UnknownServer, vakerr.SessionNotFound:
		return http.StatusNotFound
	case vakerr.TooLarge:
		return http.StatusRequestEntityTooLarge
	case vakerr.ShuttingDown, vakerr.TooMany, vakerr.QueueFull:
		return http.StatusServiceUnavailable
	default: // by its kind
	}
	switch vakerr.From(err).Kind() {
	case vakerr.KindInvalid, vakerr.KindNotFound, vakerr.KindConflict:
		return http.StatusBadRequest
	case vakerr.KindDenied:
		return http.StatusForbidden
	case vakerr.KindExhausted, vakerr.KindUnavailable, vakerr.KindTimeout, vakerr.KindCanceled:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// refuse answers a request as a whole.
func refuse(w http.ResponseWriter, status int, err error) {
	e := failure(err)
	switch {
	case e.err == errNoSession:
		e.code = codeNoSession
	case e.err == errVersion:
		e.code = mcp.UNSUPPORTED_PROTOCOL_VERSION
	}
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="vak-actors"`)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(int(max(e.err.RetryAfter, time.Second).Seconds())))
	}
	writeJSON(w, status, e.frame(nil))
}

// refuseMessage answers a request whose body is no message to be taken in.
func refuseMessage(w http.ResponseWriter, id json.RawMessage, e *rpcError) {
	writeJSON(w, http.StatusBadRequest, e.frame(id))
}

func writeJSON(w http.ResponseWriter, status int, frame []byte) {
	w.Header().Set("Content-Type", contentJSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
	w.WriteHeader(status)
	_, _ = w.Write(frame) // a client that is gone is nobody to tell
}
