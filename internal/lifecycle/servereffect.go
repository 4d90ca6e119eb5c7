package lifecycle

import (
	"fmt"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// ServerEffect is something the owner of a server has to do.
type ServerEffect interface{ fmt.Stringer }

// Start asks for a connection of that generation; Started, StartFailed or Died answers.
type Start struct{ Generation uint64 }

// Close ends a connection, calls in flight included; Closed answers, when nothing of it lives any more.
type Close struct {
	Generation uint64
	Then       ServerPhase // for the log: Idle after an eviction, Cold otherwise
}

// List asks that connection for its catalog; Listed answers.
type List struct{ Generation uint64 }

// Grant lets demands send their calls on that connection; each is Released once.
type Grant struct {
	Generation uint64
	IDs        []DemandID
}

// Refuse answers demands that get no connection.
type Refuse struct {
	IDs []DemandID
	Err *vakerr.Error
}

// Observe publishes what demand taught; nil: what was known is forgotten.
type Observe struct{ Observation *capability.Observation }

func (e Start) String() string { return fmt.Sprintf("start %d", e.Generation) }
func (e Close) String() string { return fmt.Sprintf("close %d, then %s", e.Generation, e.Then) }
func (e List) String() string  { return fmt.Sprintf("list %d", e.Generation) }
func (e Grant) String() string { return fmt.Sprintf("grant %v on %d", e.IDs, e.Generation) }
func (e Refuse) String() string {
	return fmt.Sprintf("refuse %v: %v", e.IDs, e.Err)
}

func (e Observe) String() string {
	if e.Observation == nil {
		return "observe nothing"
	}
	var text strings.Builder
	text.WriteString("observe")
	if e.Observation.Catalog == nil {
		text.WriteString(" no catalog")
	}
	for _, t := range e.Observation.Catalog {
		text.WriteString(" " + t.Name)
	}
	if e.Observation.Failure != "" {
		text.WriteString(" failure " + fmt.Sprintf("%q", e.Observation.Failure))
	}
	return text.String()
}
