package mcpio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// RPCError is an error response of a server. It is the cause of an error of code vakerr.ServerRejected. Its texts are
// redacted and bounded.
type RPCError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Error implements error.
func (e *RPCError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// StatusError is the HTTP status a server refused a request with. It is in the chain of the error that says so.
type StatusError struct {
	Status    int
	Challenge string // the WWW-Authenticate header, redacted; empty if there was none
}

// Error implements error.
func (e *StatusError) Error() string { return fmt.Sprintf("HTTP status %d", e.Status) }

// JSON-RPC codes. The first two also mean "not this era".
const (
	codeMethodNotFound     = -32601
	codeUnsupportedVersion = -32022
	codeInvalidRequest     = -32600
	codeInternal           = -32603
	codeNoSession          = -32001 // what MCP's own libraries say with 404
)

const (
	maxErrorText = 1 << 10  // bytes of a server's own words in an error
	maxErrorData = 16 << 10 // bytes of the data of an error response
	tailLines    = 5        // last lines of stderr in an error
	tailBytes    = 600      // bytes of them
)

// words is what a server said, fit to stand in an error: redacted, on one line, bounded.
func (c *Conn) words(s string) string { return oneLine(c.redact.String(s), maxErrorText) }

func oneLine(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return clip(strings.Join(strings.Fields(s), " "), n)
}

// lastWords are the last lines of redacted stderr, for an error; empty if there are none.
func lastWords(stderr string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(stderr), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	joined := strings.Join(lines, " | ")
	if n := len(joined) - tailBytes; n > 0 {
		joined = strings.ToValidUTF8(joined[n:], "")
	}
	return oneLine(joined, tailBytes)
}

func withLastWords(reason, tail string) string {
	if tail == "" {
		return reason
	}
	return reason + "; its last words: " + tail
}

// rpcError turns an error response into the error of the request.
func (c *Conn) rpcError(method string, code int, message string, data json.RawMessage) error {
	switch code {
	case codeFrameTooLarge:
		return c.tooLarge(method)
	case codeFrameInvalid:
		return vakerr.New(vakerr.ServerProtocol, "server %q answered %s with text that is no JSON", c.spec.Name, method).
			WithRemedy("report it to the author of the server; a number such as NaN is a common cause")
	}
	if len(data) > maxErrorData {
		data = nil
	}
	cause := &RPCError{Code: code, Message: c.words(message), Data: c.redact.JSON(data)}
	return vakerr.New(vakerr.ServerRejected, "server %q rejected %s: %s", c.spec.Name, method, cause).
		WithRemedy("correct the request").WithCause(cause)
}

func (c *Conn) tooLarge(method string) error {
	return vakerr.New(vakerr.TooLarge, "server %q answered %s with more than %d bytes",
		c.spec.Name, method, min(c.spec.Limits.Frame, c.spec.Limits.Result)).
		WithRemedy("ask for less at a time")
}

// contextError is the error of a request whose context ended first.
func (c *Conn) contextError(ctx context.Context, method string) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, errTooLate) {
		return vakerr.New(vakerr.DeadlineExceeded, "server %q did not answer %s in time", c.spec.Name, method).
			WithRemedy("raise call_timeout of the server, or ask for less at a time").WithCause(ctx.Err())
	}
	return vakerr.New(vakerr.Canceled, "%s to server %q was canceled", method, c.spec.Name).WithCause(context.Cause(ctx))
}

// statusError is the error of a request that was refused with an HTTP status.
func (c *Conn) statusError(method string, s *StatusError) error {
	switch s.Status {
	case 401, 403:
		return vakerr.New(vakerr.Unauthenticated, "server %q wants authentication: it answered %s with HTTP status %d",
			c.spec.Name, method, s.Status).
			WithRemedy("check the credentials in the headers of the server's configuration").WithCause(s)
	case 429:
		return vakerr.New(vakerr.QueueFull, "server %q takes no more requests now (HTTP status 429)", c.spec.Name).
			WithRemedy("wait and repeat the request").WithCause(s)
	}
	return vakerr.New(vakerr.ServerProtocol, "server %q answered %s with HTTP status %d", c.spec.Name, method, s.Status).
		WithRemedy("check the URL of the server and its log").WithCause(s)
}

// hasEffect reports whether a request of this method may change something outside.
func hasEffect(method string) bool { return method == "tools/call" }

// lostError is the error of a request that got no answer because the connection ended, for the reason in death. sent says
// that the server may have seen the request.
func (c *Conn) lostError(method string, sent bool, death *vakerr.Error) error {
	if !sent || !hasEffect(method) {
		return death
	}
	return vakerr.New(vakerr.OutcomeUnknown, "it is not known whether %s took effect: %s", method, death.Reason).
		WithRemedy("check what the call was to change before it is repeated").WithCause(death)
}

// refusedMethod reports whether a server does not know the method of a request.
func refusedMethod(err error) bool {
	refused := (*RPCError)(nil)
	return errors.As(err, &refused) && refused.Code == codeMethodNotFound
}
