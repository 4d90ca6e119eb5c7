package ledger

import (
	"errors"
	"fmt"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// errUnknown marks failures after which a write may or may not have happened.
var errUnknown = errors.New("the outcome of the write is unknown")

// IsUnknown reports whether err leaves it open if the write happened. Without it, a write that failed did not happen.
func IsUnknown(err error) bool { return errors.Is(err, errUnknown) }

// Unknown is the ledger_unavailable error of a write that may or may not have happened. cause stays private.
func Unknown(cause error) error {
	return vakerr.New(vakerr.LedgerUnavailable, "it is not known whether the ledger took the entry").
		WithRemedy("activate the session anew and look for the operation before repeating it").
		WithCause(fmt.Errorf("%w: %w", errUnknown, cause))
}

// NotFound is session_not_found: no such session for this tenant. An id that no session can have is not repeated.
func NotFound(id SessionID) error {
	e := vakerr.New(vakerr.SessionNotFound, "there is no session %s", id)
	if ValidateSessionID(id) != nil {
		e = vakerr.New(vakerr.SessionNotFound, "there is no such session")
	}
	return e.WithRemedy("open it, or list the sessions there are")
}

// Exists is session_exists.
func Exists(id SessionID) error {
	return vakerr.New(vakerr.SessionExists, "session %s exists already", id).WithRemedy("activate it, or choose another id")
}

// SessionIsClosed is session_closed.
func SessionIsClosed(id SessionID) error {
	return vakerr.New(vakerr.SessionClosed, "session %s is closed", id).WithRemedy("open a new session")
}

// OperationTaken is invalid_request: the session has an entry of that operation already.
func OperationTaken(id SessionID, operation string) error {
	return vakerr.New(vakerr.InvalidRequest, "session %s has recorded operation %s already", id, operation).
		WithRemedy("look the operation up in place of repeating it")
}

func fenced(id SessionID, format string, args ...any) error {
	return vakerr.New(vakerr.LedgerFenced, "session %s refused the append: "+format, append([]any{id}, args...)...).
		WithRemedy("stop this activation; a new one reads the ledger first")
}
