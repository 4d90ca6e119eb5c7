package supervision

import (
	"fmt"
	"time"
)

// Status is how a supervised child is doing.
type Status uint8

const (
	// Running says that the child is there.
	Running Status = iota
	// Restarting says that it failed, and is started again at NextAttempt.
	Restarting
	// GaveUp says that it failed more often than its budget allows, and gets one attempt at NextAttempt.
	GaveUp
)

var statusNames = [...]string{Running: "running", Restarting: "restarting", GaveUp: "gave-up"}

// String is the name as reports print it.
func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return fmt.Sprintf("status(%d)", uint8(s))
	}
	return statusNames[s]
}

// MarshalText makes JSON show the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Health is one row of the report about supervised children.
type Health struct {
	Name        string    `json:"name"`
	Kind        string    `json:"kind"`
	State       Status    `json:"state"`
	Restarts    int       `json:"restarts"`             // attempts to start it again, since it was added
	LastError   string    `json:"last_error,omitempty"` // public text of the last failure; stays after a restart
	NextAttempt time.Time `json:"next_attempt,omitzero"`
}
