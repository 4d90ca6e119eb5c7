package ledger

import (
	"time"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// SessionID names a session within its tenant. See ValidateSessionID for its alphabet.
type SessionID string

// Bounds of names, in bytes.
const (
	MaxSessionID      = 128
	MaxTenant         = 64
	MaxOwner          = 256
	MaxAttributes     = 32 // attributes of one session
	MaxAttributeKey   = 64
	MaxAttributeValue = 1024
)

// State is whether a session still takes entries.
type State string

// The states. A session is closed by an entry of kind session_closed and never opens again.
const (
	StateOpen   State = "open"
	StateClosed State = "closed"
)

// SessionInfo is what the store knows of a session without reading its entries.
type SessionInfo struct {
	Tenant     string            `json:"tenant"`
	ID         SessionID         `json:"id"`
	State      State             `json:"state"`
	Head       Head              `json:"head"`  // its Epoch is the current activation's
	Owner      string            `json:"owner"` // who took that epoch
	CreatedAt  time.Time         `json:"created_at"`
	LastAt     time.Time         `json:"last_at"` // At of the last entry
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ValidateSessionID accepts 1 to 128 ASCII letters, digits and "-._:@+=~" that start with a letter or digit: such an id
// is safe in a path, a URL segment, a log line and a shell. Else it returns invalid_request.
func ValidateSessionID(id SessionID) error { return checkName("session id", string(id), MaxSessionID) }

// ValidateTenant accepts 1 to 64 characters of the alphabet of session ids.
func ValidateTenant(tenant string) error { return checkName("tenant", tenant, MaxTenant) }

// checkName never repeats the name: it may be hostile, and it is not needed to mend the request.
func checkName(what, name string, limit int) error {
	if len(name) < 1 || len(name) > limit {
		return vakerr.New(vakerr.InvalidRequest, "a %s of %d bytes", what, len(name)).
			WithRemedy("use 1 to %d characters", limit)
	}
	for i := range len(name) {
		if c := name[i]; !alphanumeric(c) && (i == 0 || !mark(c)) {
			return vakerr.New(vakerr.InvalidRequest, "a %s with a forbidden character at byte %d", what, i).
				WithRemedy("use letters, digits and -._:@+=~, beginning with a letter or digit")
		}
	}
	return nil
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func mark(c byte) bool {
	switch c {
	case '-', '.', '_', ':', '@', '+', '=', '~':
		return true
	}
	return false
}

// checkText accepts printable ASCII of at most limit bytes.
func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return vakerr.New(vakerr.TooLarge, "%s has %d bytes, the limit is %d", what, len(text), limit)
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return vakerr.New(vakerr.InvalidRequest, "%s holds an unprintable byte at %d", what, i).
				WithRemedy("use printable ASCII")
		}
	}
	return nil
}

func checkAttributes(all map[string]string) error {
	if len(all) > MaxAttributes {
		return vakerr.New(vakerr.TooMany, "%d attributes, the limit is %d", len(all), MaxAttributes)
	}
	for k, v := range all {
		if err := checkName("attribute key", k, MaxAttributeKey); err != nil {
			return err
		}
		if err := checkText("an attribute", v, MaxAttributeValue); err != nil {
			return err
		}
	}
	return nil
}
