package config

import (
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Config is what vak.toml says, with every default filled in. It is never changed after Parse returned it.
type Config struct {
	Listen string // host:port of the daemon; default 127.0.0.1:7717
	Data   string // folder of the daemon's state, as written; empty: the daemon chooses

	MCP         map[string]Server              // [mcp.servers.<name>], disabled ones included
	Hooks       []Hook                         // [[hooks]] in order of the file, disabled ones included
	Channels    map[string]policy.ChannelRules // [channels.<name>]
	Permissions policy.PermissionRules         // [permissions]
	Approvals   Approvals                      // of [permissions]
	Pins        Pins                           // [pins]
	HookPolicy  HookPolicy                     // [hook_policy]
	Tenants     map[string]Tenant              // [tenants.<id>]

	Reconcile Reconcile
	Ledger    Ledger
	Auth      Auth
	Intent    Intent
	Sessions  Sessions
	Limits    Limits

	// Unreadable is set when the text is no TOML at all. Everything above is then a default, but for Permissions, which
	// deny every call: nobody can say what the file was meant to stop.
	Unreadable bool

	settings []Setting // every known key with its effective value
}

// Approvals is what [permissions] says of approvals.
type Approvals struct {
	Timeout time.Duration // how long a call of an attended session waits for a person; written as approval_timeout; default 5m
}

// Pins is [pins].
type Pins struct {
	Tools string // what happens when a server changes the text of a tool: keep (default), refuse or follow
}

// HookPolicy is [hook_policy].
type HookPolicy struct {
	Rewrite bool // hooks may rewrite the inputs of calls; default true
}

// Reconcile is [reconcile].
type Reconcile struct {
	Tick     time.Duration // between two passes when nothing hints at a change; default 10s
	Debounce time.Duration // from the first hint to the pass it asks for; default 250ms
}

// Durability says when a call is on the ledger for good.
type Durability string

// The durabilities.
const (
	DurabilityEffects Durability = "effects" // before its effect, but for read-only calls
	DurabilityAll     Durability = "all"     // before its effect, always
)

// Ledger is [ledger].
type Ledger struct {
	Durability Durability // default effects
}

// Auth is [auth].
type Auth struct {
	TokenFile string // file that holds the bearer token of the fronts, as written; empty: none asked for
}

// Intent is [intent].
type Intent struct {
	SliceCapabilities bool // load only what a turn's reading asks for; default true
}

// Sessions is [sessions].
type Sessions struct {
	IdleTTL     time.Duration // a session unused for that long is passivated; default 10m
	MaxResident int           // sessions of a tenant in memory; beyond it the longest unused are passivated; default 100000
}

// Limits is [limits]: what a reader takes from a workspace before it says that it skipped the rest.
type Limits struct {
	MaxSkills     int // skill folders in one root; default 5000
	MaxCommands   int // command files in one root; default 5000
	MaxDepth      int // folders below a root of commands; default 5
	MaxFileBytes  int // one file; default 1 MiB
	MaxTotalBytes int // all files of one workspace; default 128 MiB
}

// DefaultLimits are the limits where nothing is written.
func DefaultLimits() Limits {
	return Limits{MaxSkills: 5000, MaxCommands: 5000, MaxDepth: 5, MaxFileBytes: 1 << 20, MaxTotalBytes: 128 << 20}
}

// Tenant is [tenants.<id>].
type Tenant struct {
	Workspace string // folder, as written: relative to the file, or absolute
	TokenFile string // file that holds the tenant's bearer token; empty: that of [auth]
}

// Server is an entry that declares an MCP server, from vak.toml or from a dialect of it. Values are kept as written,
// with their placeholders.
type Server struct {
	Enabled   bool // default true
	Transport capability.Transport
	Command   string
	Args      []string
	Env       map[string]string
	Cwd       string
	URL       string
	Headers   map[string]string
	Serves    capability.Domains

	Isolation     capability.Isolation // default shared
	Era           capability.Era       // empty: found out at each start
	IdleTTL       time.Duration        // default 15m
	StartTimeout  time.Duration        // 0: by the command, see StartTime
	CallTimeout   time.Duration        // default 60s
	MaxInFlight   int                  // default 16
	EnabledTools  []string
	DisabledTools []string
	Network       bool // default false; declared only: no server is cut off the network yet

	Title  string // the name as written, where the entry goes by another one
	Closed string // why it must not start although it is declared; empty: nothing of the kind

	Line int // of its header in the file
}

// DefaultServer is an entry of which nothing is written.
func DefaultServer() Server {
	return Server{
		Enabled: true, Isolation: capability.IsolationShared,
		IdleTTL: 15 * time.Minute, CallTimeout: time.Minute, MaxInFlight: 16,
	}
}

// Hook is an entry of [[hooks]].
type Hook struct {
	Name        string // id of the capability: the command's event and text, <event>/<command>
	Event       string
	Match       string
	Command     string
	Timeout     time.Duration // written as timeout_ms; default 10000
	FailureMode capability.FailureMode
	Enabled     bool   // default true
	Refusal     string // set where the entry cannot be read and was, or may have been, fail-closed
	Line        int
}
