package hookrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
)

// newClient returns a client that follows no redirection and reaches no address that only machines of a cloud know.
func newClient() *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: reachable}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reachable is asked with the address that a name resolved to, so that no name leads around it.
func reachable(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	if ip = ip.Unmap(); ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return errors.New("the address is not one that hooks may be at")
	}
	return nil
}

// allowedURL reports whether a hook may be at an address: https, or http on this machine.
func allowedURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("its url is no address without a user")
	}
	switch u.Scheme {
	case "https":
		return nil
	case "http":
		if ip, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
			return nil
		}
		return errors.New("its url is http and leads to another machine; https is needed")
	}
	return fmt.Errorf("its url has the scheme %q; https is needed", u.Scheme)
}

// post asks a hook over HTTP. A status of 2xx is exit 0 with the body as stdout; anything else is a failure.
func (r *Runner) post(ctx context.Context, h *capability.Hook, told []byte) hook.Run {
	if err := allowedURL(h.URL); err != nil {
		return hook.Run{StartError: err.Error()}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(told))
	if err != nil {
		return hook.Run{StartError: "its url cannot be used"}
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range h.Headers {
		request.Header.Set(name, r.header(h, value))
	}
	response, err := r.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return hook.Run{TimedOut: true, ExitCode: -1}
		}
		return hook.Run{StartError: "its server cannot be reached"}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, captureLimit+1))
	switch {
	case ctx.Err() != nil:
		return hook.Run{TimedOut: true, ExitCode: -1}
	case err != nil:
		return hook.Run{StartError: "its answer broke off"}
	case response.StatusCode < 200 || response.StatusCode > 299:
		return hook.Run{StartError: fmt.Sprintf("its server answered with status %d", response.StatusCode)}
	}
	run := hook.Run{Stdout: body[:min(len(body), captureLimit)], Truncated: len(body) > captureLimit}
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] != '{' {
		return hook.Run{StartError: "its answer is no JSON object"}
	}
	return run
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// header puts the values of variables that the hook may use into a header; any other becomes empty.
func (r *Runner) header(h *capability.Hook, text string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		parts := variable.FindStringSubmatch(match)
		name := parts[1] + parts[2]
		if r.lookup == nil || !slices.Contains(h.AllowedEnv, name) {
			return ""
		}
		value, _ := r.lookup(name)
		return value
	})
}
