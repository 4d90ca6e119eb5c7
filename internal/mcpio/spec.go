package mcpio

import (
	"encoding/json"
	"time"
)

// Transport is how a server is reached.
type Transport uint8

// The transports.
const (
	Stdio Transport = iota // a child process
	HTTP                   // Streamable HTTP; HTTP+SSE where the server refuses that as one that does not know it
	SSE                    // HTTP+SSE, of 2024-11-05
)

// Era is the generation of the protocol a server speaks.
type Era uint8

// The eras. A caller that remembers the era of a server saves it a refused greeting.
const (
	EraAuto   Era = iota // legacy first; modern if that is refused and server/discover is answered
	EraLegacy            // initialize, sessions; up to 2025-11-25
	EraModern            // server/discover, no sessions; 2026-07-28
)

// String is the name of the era as documents print it.
func (e Era) String() string {
	switch e {
	case EraLegacy:
		return "legacy"
	case EraModern:
		return "modern"
	case EraAuto:
		return "auto"
	}
	return "unknown"
}

// The defaults of Spec.
const (
	DefaultStartTimeout = 10 * time.Second
	DefaultCallTimeout  = 60 * time.Second
)

// Spec says which server to connect to, and how. Name and either Command or URL are needed.
type Spec struct {
	Name      string
	Transport Transport
	Era       Era

	// Stdio. Env is the complete environment of the child as KEY=VALUE; see childproc.Environment.
	Command  string
	Args     []string
	Env      []string
	Dir      string
	GroupDir string // folder for the record of the process group; empty means none

	// HTTP.
	URL     string
	Headers map[string]string

	ClientName, ClientVersion string

	// Capabilities is what a legacy server is told that the clients behind the connection may be able to do: an object. A
	// modern one is told with each request. Empty: nothing.
	Capabilities json.RawMessage

	StartTimeout time.Duration // for Dial, and for Dial and list together in Connect; 0 means DefaultStartTimeout
	CallTimeout  time.Duration // for each request; 0 means DefaultCallTimeout
	Limits       Limits
}

// Limits bounds what is taken from a server. A zero field means its default.
type Limits struct {
	Frame  int // bytes of one frame in either direction; default 16 MiB
	Result int // bytes of one result; default 16 MiB
	Junk   int // bytes per minute of output that is no frame; default 64 MiB
	Stderr int // bytes of stderr kept; default 64 KiB
	Pages  int // pages of a list; default 100
	Tools  int // tools of a catalog; default 5000
	Tool   int // bytes of one tool; default 1 MiB

	Backlog   int           // bytes written to a server and not read by it yet; default 16 MiB
	Stall     time.Duration // how long a server may read nothing of a backlog; default 10 s
	IdleCheck time.Duration // idle time after which Alive asks the server; default 1 min
	Grace     time.Duration // how long Close waits after each step; 0 means the defaults of childproc.Grace
}

func (s Spec) withDefaults() Spec {
	orDuration(&s.StartTimeout, DefaultStartTimeout)
	orDuration(&s.CallTimeout, DefaultCallTimeout)
	l := &s.Limits
	orInt(&l.Frame, 16<<20)
	orInt(&l.Result, 16<<20)
	orInt(&l.Junk, 64<<20)
	orInt(&l.Stderr, 64<<10)
	orInt(&l.Pages, 100)
	orInt(&l.Tools, 5000)
	orInt(&l.Tool, 1<<20)
	orInt(&l.Backlog, 16<<20)
	orDuration(&l.Stall, 10*time.Second)
	orDuration(&l.IdleCheck, time.Minute)
	if s.ClientName == "" {
		s.ClientName = "vak-actors"
	}
	return s
}

func (s Spec) declared() json.RawMessage {
	if len(s.Capabilities) == 0 {
		return json.RawMessage(`{}`)
	}
	return s.Capabilities
}

func orInt(v *int, fallback int) {
	if *v <= 0 {
		*v = fallback
	}
}

func orDuration(v *time.Duration, fallback time.Duration) {
	if *v <= 0 {
		*v = fallback
	}
}

// Handlers are told what a server says of itself. They are called from the read loop of the connection, possibly before
// Dial returns and from more than one goroutine, so they post and return: one that blocks, or calls the Conn, stops it.
// A nil handler is not called.
type Handlers struct {
	// ListChanged says that the catalog or a list of features may have changed. Nothing is coalesced here.
	ListChanged func()
	// Notification gets every other notification but progress and log messages, which go to the client of the call that
	// they belong to. The handler owns params.
	Notification func(method string, params json.RawMessage)
}
