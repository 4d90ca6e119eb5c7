package host

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxTokenBytes bounds a token file.
const maxTokenBytes = 4096

// tokens say who may speak for which tenant. The zero value asks nobody for a token.
type tokens struct {
	any     string            // of [auth]; for every tenant without one of its own
	tenants map[string]string // of [tenants.<id>]
}

// readTokens reads the token files; a name that is empty stands for none.
func readTokens(file string, tenants map[string]string) (tokens, error) {
	t := tokens{tenants: map[string]string{}}
	var err error
	if t.any, err = readToken(file); err != nil {
		return tokens{}, err
	}
	for tenant, file := range tenants {
		if t.tenants[tenant], err = readToken(file); err != nil {
			return tokens{}, err
		}
	}
	return t, nil
}

func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", vakerr.New(vakerr.ConfigInvalid, "the token file %s cannot be read", file).
			WithRemedy("create it, for instance with `openssl rand -hex 32 > %s`, readable for this user only", file).WithCause(err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > maxTokenBytes || strings.ContainsAny(token, " \t\r\n") {
		return "", vakerr.New(vakerr.ConfigInvalid, "the token file %s does not hold one token on one line", file).
			WithRemedy("write a token into it, for instance with `openssl rand -hex 32 > %s`", file)
	}
	return token, nil
}

// allow is nil when the bearer of these headers may speak for the tenant. The comparison takes the same time for every
// wrong token.
func (t tokens) allow(tenant string, header http.Header) error {
	want := t.tenants[tenant]
	if want == "" {
		want = t.any
	}
	if want == "" {
		return nil
	}
	scheme, got, _ := strings.Cut(header.Get("Authorization"), " ")
	sumWant, sumGot := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(got)))
	if strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sumWant[:], sumGot[:]) == 1 {
		return nil
	}
	return vakerr.New(vakerr.Unauthenticated, "the request brings no valid token").
		WithRemedy("send the header `Authorization: Bearer TOKEN`; programs of vak-actors read it from --token-file")
}

// mayListen reports whether an address is on loopback; beyond it everybody can knock, so a token is required.
func (f *front) mayListen(address string) (loopback bool, err error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, vakerr.New(vakerr.ConfigInvalid, "%q is no address to listen on", address).
			WithRemedy("write it as host:port, for instance 127.0.0.1:7717").WithCause(err)
	}
	if isLoopback(name) {
		return true, nil
	}
	if f.tokens.any == "" {
		return false, vakerr.New(vakerr.ConfigInvalid, "%s can be reached from other machines, and no token is required there", address).
			WithRemedy("name a file that holds a token with --token-file or with token_file of [auth], or listen on 127.0.0.1")
	}
	return false, nil
}

// isLoopback reports whether a host name or address is this machine for itself.
func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}

// guard keeps web pages out. A page of any site can make a browser send requests to 127.0.0.1, and with a DNS name of its
// own that points there it can even read the answers; but the browser tells both names.
type guard struct{ loopback bool }

func (g guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.loopback && !isLoopback(hostName(r.Host)) {
			http.Error(w, "the Host header names another machine; use the address that the daemon printed", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !g.mayCome(origin, r.Host) {
			http.Error(w, "requests of web pages are not taken: the Origin header names another site", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mayCome reports whether a page of that origin may ask: one of this machine, or of the very host that it asks.
func (g guard) mayCome(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return false
	}
	if g.loopback {
		return isLoopback(u.Hostname())
	}
	return strings.EqualFold(u.Host, host)
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
