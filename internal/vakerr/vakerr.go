// Package vakerr is the one catalogue of errors that leave a package of this module.
//
// An Error carries a stable code for programs, a reason that says what is wrong and where, and a remedy that says what
// to do about it. Those three are public: they reach models, terminals and wires, so they never hold a secret or the text
// of a foreign error that was not written for strangers. The cause is private: it goes to the log and nowhere else.
//
// A Code belongs to exactly one Kind; the Kind decides everything generic about it (may it be retried, which exit code,
// which Connect and JSON-RPC code), see the table in codes.go.
package vakerr

import (
	"errors"
	"fmt"
	"time"
)

// Error is a refusal or failure with a public face. The zero value is not useful; make one with New.
// An Error is never changed after it was made: the With methods return a copy.
type Error struct {
	Code   Code
	Reason string // what is wrong and where; one sentence, lower case, no full stop
	Remedy string // what to do about it; empty when there is nothing to do

	// RetryAfter is how long to wait before the same request can succeed; zero when waiting alone does not help.
	RetryAfter time.Duration

	cause error
}

// New makes an error of the given code; the reason is formatted with fmt.Sprintf.
func New(code Code, reason string, args ...any) *Error {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	return &Error{Code: code, Reason: reason}
}

// WithRemedy returns a copy that says what to do.
func (e *Error) WithRemedy(remedy string, args ...any) *Error {
	c := *e
	if len(args) > 0 {
		remedy = fmt.Sprintf(remedy, args...)
	}
	c.Remedy = remedy
	return &c
}

// WithCause returns a copy that keeps err for errors.Is, errors.As and the log. Its text stays private.
func (e *Error) WithCause(err error) *Error {
	c := *e
	c.cause = err
	return &c
}

// WithRetryAfter returns a copy that names the wait after which a retry can succeed.
func (e *Error) WithRetryAfter(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Error returns the public text: code and reason. The remedy and the cause are separate on purpose.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Reason }

// Unwrap returns the private cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an *Error of the same code, so that errors.Is(err, vakerr.New(code, "")) works.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Kind is the class the error's code belongs to.
func (e *Error) Kind() Kind { return e.Code.Kind() }

// From returns the *Error in err's chain. An error from elsewhere becomes Internal with a text that says nothing about
// it: foreign errors may hold secrets. From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return New(Internal, "an internal error occurred").
		WithRemedy("look for the cause in the daemon's log").WithCause(err)
}

// CodeOf returns the code of err as From sees it; empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return From(err).Code
}
