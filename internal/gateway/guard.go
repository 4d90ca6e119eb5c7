package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// anyHost in Options.AllowedHosts allows every name.
const anyHost = "*"

// overSocket reports whether the request came over a unix socket, which no web page can reach.
func overSocket(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}

// checkHost refuses requests that were addressed to another machine: a web page whose name was pointed at this one sends
// its own name.
func (h *Handler) checkHost(r *http.Request) error {
	name := hostName(r.Host)
	if len(h.options.AllowedHosts) == 0 && loopback(name) || h.namedHost(name) || slices.Contains(h.options.AllowedHosts, anyHost) {
		return nil
	}
	return vakerr.New(vakerr.PermissionDenied, "the Host header names another machine").
		WithRemedy("use the address that the daemon listens on, or allow the name in its configuration")
}

func (h *Handler) namedHost(name string) bool {
	return slices.ContainsFunc(h.options.AllowedHosts, func(allowed string) bool { return strings.EqualFold(allowed, name) })
}

// checkOrigin refuses the requests of web pages, but for those that may ask. Programs send no Origin.
func (h *Handler) checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.options.AllowedOrigins, origin) {
		return nil
	}
	u, err := url.Parse(origin)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && (loopback(u.Hostname()) || h.namedHost(u.Hostname())) {
		return nil
	}
	return vakerr.New(vakerr.PermissionDenied, "requests of this web page are not taken").
		WithRemedy("allow its origin in the daemon's configuration")
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func loopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(name)
	return err == nil && a.Unmap().IsLoopback()
}

// principal tells those apart who bring different credentials, without keeping any.
func principal(r *http.Request, local bool) string {
	if local {
		return "socket"
	}
	credential := r.Header.Get("Authorization")
	if credential == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(credential))
	return hex.EncodeToString(sum[:])
}
