package capability

import (
	"encoding/json"
	"time"
)

// Tool configures a capability of kind tool: something a model calls by name.
type Tool struct {
	InputSchema  json.RawMessage `json:"inputSchema"`            // a JSON Schema of type object
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // nil: not declared
	Description  string          `json:"description"`            // the whole text for the model; the summary is its first sentence

	ReadOnly    bool `json:"readOnly,omitempty"`    // a call changes nothing outside the process
	Destructive bool `json:"destructive,omitempty"` // a call may destroy what cannot be brought back
	Idempotent  bool `json:"idempotent,omitempty"`  // a second equal call changes nothing more

	AlwaysLoaded  bool `json:"alwaysLoaded,omitempty"`  // loaded on every turn, whatever it serves
	PresentsCards bool `json:"presentsCards,omitempty"` // loaded only when the request reads as its card
	HostOnly      bool `json:"hostOnly,omitempty"`      // offered to agent loops, not on the MCP front

	// Op is the id the implementation is registered under; the tool's own name when empty.
	Op string `json:"op,omitempty"`
}

// Kind is KindTool.
func (*Tool) Kind() Kind { return KindTool }

// Skill configures a document that is loaded on demand. The body lives as long as a set that declares it, so a turn that
// is bound to an older set still loads the older body; Declaration.Digest is the digest of Body.
type Skill struct {
	Body         []byte            `json:"-"` // Markdown without the frontmatter; never changed
	Description  string            `json:"description"`
	License      string            `json:"license,omitempty"`
	AllowedTools []string          `json:"allowedTools,omitempty"` // advice; it never grants anything
	Metadata     map[string]string `json:"metadata,omitempty"`

	DisableModelInvocation bool   `json:"disableModelInvocation,omitempty"` // only /skill:name loads it
	BaseDir                string `json:"-"`                                // folder of SKILL.md relative to the workspace, with '/'
}

// Kind is KindSkill.
func (*Skill) Kind() Kind { return KindSkill }

// Command configures a slash command. Declaration.Digest is the digest of Body, which lives as long as a skill's.
type Command struct {
	Body         []byte `json:"-"` // the prompt, without the frontmatter; never changed
	Description  string `json:"description"`
	ArgumentHint string `json:"argumentHint,omitempty"`
}

// Kind is KindCommand.
func (*Command) Kind() Kind { return KindCommand }

// FailureMode says what a hook that cannot run means for the call it guards.
type FailureMode string

// The failure modes.
const (
	FailOpen   FailureMode = "open"   // the call goes on
	FailClosed FailureMode = "closed" // the call is blocked
)

// Hook configures a command that runs at a lifecycle event.
type Hook struct {
	Event       string        `json:"event"`           // session-start, pre-tool-use, post-tool-use or stop
	Match       string        `json:"match,omitempty"` // a permission-rule pattern; empty matches every tool
	Command     string        `json:"command"`
	Timeout     time.Duration `json:"timeout"`
	FailureMode FailureMode   `json:"failureMode"`

	// Refusal is set when the definition could not be read but was declared fail-closed: such a hook cannot run, and
	// blocks every tool call with this reason.
	Refusal string `json:"refusal,omitempty"`
}

// Kind is KindHook.
func (*Hook) Kind() Kind { return KindHook }

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	TransportStdio Transport = "stdio"
	TransportHTTP  Transport = "http" // Streamable HTTP
)

// Isolation says who may share one connection to a server.
type Isolation string

// The isolations.
const (
	IsolationShared  Isolation = "shared"  // one connection for all sessions of the tenant
	IsolationSession Isolation = "session" // one connection a session
)

// Server configures an MCP server. Values of Env and Headers are kept as written, with their ${NAME} placeholders: a
// resolved secret never enters a declaration, only SecretDigest tells that it changed.
type Server struct {
	Transport Transport         `json:"transport"`
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"` // relative to the workspace; empty: the workspace
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`

	Isolation    Isolation     `json:"isolation"`
	IdleTTL      time.Duration `json:"idleTTL"`      // an unused connection is closed after it
	StartTimeout time.Duration `json:"startTimeout"` // connect, handshake and first list together
	CallTimeout  time.Duration `json:"callTimeout"`  // one request
	MaxInFlight  int           `json:"maxInFlight"`  // calls sent and not answered, per connection

	EnabledTools  []string `json:"enabledTools,omitempty"`  // globs; empty: all
	DisabledTools []string `json:"disabledTools,omitempty"` // globs; they win over EnabledTools
	Network       bool     `json:"network,omitempty"`

	SecretDigest string       `json:"secretDigest,omitempty"` // changes when a placeholder resolves to something else
	Observation  *Observation `json:"observation,omitempty"`  // what demand taught the pool; nil: nothing yet
}

// Kind is KindMCP.
func (*Server) Kind() Kind { return KindMCP }

// Observation is what demand taught the pool of a server. It holds no counts and no times, so that repeated failures
// for one cause are no news. A failure is a reason and never adds a name that could be called.
type Observation struct {
	Catalog []ObservedTool `json:"catalog,omitempty"` // sorted by name; nil: never listed, or forgotten
	Failure string         `json:"failure,omitempty"` // reason of the last failed attempt; empty after a success
}

// ObservedTool is one tool of a server's catalog.
type ObservedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Definition  json.RawMessage `json:"definition"` // the whole tool as the server gave it, canonical

	ReadOnly    bool `json:"readOnly,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
	Idempotent  bool `json:"idempotent,omitempty"`
}

// Tool returns the catalog's tool of that name, or nil.
func (o *Observation) Tool(name string) *ObservedTool {
	if o == nil {
		return nil
	}
	for i := range o.Catalog {
		if o.Catalog[i].Name == name {
			return &o.Catalog[i]
		}
	}
	return nil
}
