package capability

import (
	"encoding/json"
	"slices"
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

// Dialect names the program whose conventions a file follows: how its events, matchers, arguments and units are read.
type Dialect string

// The dialects. The empty one is this program's own.
const (
	DialectVAK    Dialect = ""
	DialectClaude Dialect = "claude"
	DialectCodex  Dialect = "codex"
	DialectGemini Dialect = "gemini"
	DialectCursor Dialect = "cursor"
)

// Invocation is what a skill and a command say of how they are called and run. What this runtime cannot follow by itself
// (model, effort, a context of its own) is passed on to the host, which may.
type Invocation struct {
	ArgumentHint    string   `json:"argumentHint,omitempty"`
	Arguments       []string `json:"arguments,omitempty"`       // names for $name, in order
	AllowedTools    []string `json:"allowedTools,omitempty"`    // advice; it never grants anything
	DisallowedTools []string `json:"disallowedTools,omitempty"` // advice
	Model           string   `json:"model,omitempty"`
	Effort          string   `json:"effort,omitempty"`
	Context         string   `json:"context,omitempty"`    // fork: to be run by a worker
	Agent           string   `json:"agent,omitempty"`      // kind of worker for Context
	Background      bool     `json:"background,omitempty"` // with Context: the turn does not wait for it
	Shell           string   `json:"shell,omitempty"`      // for !`command`: bash (default) or powershell

	DisableModelInvocation bool `json:"disableModelInvocation,omitempty"` // only a user's /name loads it
	DisableUserInvocation  bool `json:"disableUserInvocation,omitempty"`  // only a model loads it

	Dialect Dialect `json:"dialect,omitempty"` // whose placeholders Body has
	Root    Folder  `json:"root,omitzero"`     // the plugin it belongs to; zero: none
}

// Folder is a folder outside the workspace that a declaration belongs to, such as an installed plugin.
type Folder struct {
	Path string `json:"path,omitempty"` // absolute
	Data string `json:"data,omitempty"` // absolute; where its programs may keep state
}

// Skill configures a document that is loaded on demand. The body lives as long as a set that declares it, so a turn that
// is bound to an older set still loads the older body; Declaration.Digest is the digest of Body.
type Skill struct {
	Invocation
	Body          []byte            `json:"-"` // Markdown without the frontmatter; never changed
	Description   string            `json:"description"`
	WhenToUse     string            `json:"whenToUse,omitempty"`
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Paths         []string          `json:"paths,omitempty"` // globs of the files it is about; advice for the host

	BaseDir string `json:"-"` // folder of SKILL.md, with '/': relative to the workspace, or absolute for other roots
}

// Kind is KindSkill.
func (*Skill) Kind() Kind { return KindSkill }

// Command configures a slash command. Declaration.Digest is the digest of Body, which lives as long as a skill's.
type Command struct {
	Invocation
	Body        []byte `json:"-"` // the prompt, without the frontmatter; never changed
	Description string `json:"description"`
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

// HookType is how a hook is asked.
type HookType string

// The types of hook that this runtime delivers to. A hook of any other type is declared with Idle set.
const (
	HookCommand HookType = "command" // a process: the event on stdin, the answer on stdout
	HookHTTP    HookType = "http"    // a POST of the event, the answer in the body
)

// Hook configures what is asked at a lifecycle event.
type Hook struct {
	Event   string   `json:"event"`             // as its dialect calls it
	Dialect Dialect  `json:"dialect,omitempty"` // how Event, Match and the answers are read
	Match   string   `json:"match,omitempty"`   // own dialect: a permission-rule pattern; others: their matcher; empty matches all
	If      string   `json:"if,omitempty"`      // a permission rule that has to match besides
	Type    HookType `json:"type,omitempty"`    // empty: command

	Command string   `json:"command,omitempty"` // a line for the shell; a program where Args is not nil
	Args    []string `json:"args,omitempty"`

	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`    // as written
	AllowedEnv []string          `json:"allowedEnv,omitempty"` // names that may be put into Headers

	Timeout     time.Duration `json:"timeout"`
	FailureMode FailureMode   `json:"failureMode"`
	Sequential  bool          `json:"sequential,omitempty"` // asked after the one before it has answered
	Position    int           `json:"position,omitempty"`   // among all hooks, in order of precedence and of the file
	Root        Folder        `json:"root,omitzero"`        // the plugin it belongs to; zero: none

	// Idle is set when the hook is read and never delivered, because this runtime has no such moment or cannot ask in that
	// way; it says why.
	Idle string `json:"idle,omitempty"`

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
	TransportSSE   Transport = "sse"  // HTTP+SSE, of 2024-11-05

	// What other programs write and this one does not speak. A server of theirs is declared, with Unready set.
	TransportWebSocket Transport = "ws"
)

// Era is a generation of MCP that a server is spoken to in.
type Era string

// The eras.
const (
	EraLegacy Era = "legacy" // initialize and sessions: up to 2025-11-25
	EraModern Era = "modern" // stateless: 2026-07-28
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

	Era Era `json:"era,omitempty"` // empty: found out at each start, legacy first

	Isolation    Isolation     `json:"isolation"`
	IdleTTL      time.Duration `json:"idleTTL"`      // an unused connection is closed after it
	StartTimeout time.Duration `json:"startTimeout"` // connect, handshake and first list together
	CallTimeout  time.Duration `json:"callTimeout"`  // one request
	MaxInFlight  int           `json:"maxInFlight"`  // calls sent and not answered, per connection

	EnabledTools  []string `json:"enabledTools,omitempty"`  // globs; empty: all
	DisabledTools []string `json:"disabledTools,omitempty"` // globs; they win over EnabledTools
	Network       bool     `json:"network,omitempty"`

	// Unready says why the server can never start as it is declared; empty for one that can. Every demand is answered with
	// it, and nothing is started. Remedy is what a person does about it.
	Unready string `json:"unready,omitempty"`
	Remedy  string `json:"remedy,omitempty"`

	Title string `json:"title,omitempty"` // the name as its author wrote it, where that cannot stand in an id

	SecretDigest string       `json:"secretDigest,omitempty"` // changes when a placeholder resolves to something else
	Observation  *Observation `json:"observation,omitempty"`  // what demand taught the pool; nil: nothing yet
}

// Kind is KindMCP.
func (*Server) Kind() Kind { return KindMCP }

// Observation is what demand taught the pool of a server. It holds no counts and no times, so that repeated failures
// for one cause are no news. A failure is a reason and never adds a name that could be called.
type Observation struct {
	Catalog []ObservedTool `json:"catalog,omitempty"` // sorted by name; nil: never listed, or forgotten
	Notes   []string       `json:"notes,omitempty"`   // what the catalog lacks and why, a tool a line; a bounded number
	Failure string         `json:"failure,omitempty"` // reason of the last failed attempt; empty after a success
	Features
}

// Features are what a server offers beside tools, each list sorted by key.
type Features struct {
	Prompts   []ObservedFeature `json:"prompts,omitempty"`   // by name
	Resources []ObservedFeature `json:"resources,omitempty"` // by URI
	Templates []ObservedFeature `json:"templates,omitempty"` // of resources, by URI template
}

// Equal reports whether f and g are the same.
func (f Features) Equal(g Features) bool {
	same := func(a, b ObservedFeature) bool { return a.Key == b.Key && string(a.Definition) == string(b.Definition) }
	return slices.EqualFunc(f.Prompts, g.Prompts, same) && slices.EqualFunc(f.Resources, g.Resources, same) &&
		slices.EqualFunc(f.Templates, g.Templates, same)
}

// ObservedFeature is a prompt, a resource or a resource template of a server.
type ObservedFeature struct {
	Key        string          `json:"key"`
	Definition json.RawMessage `json:"definition"` // as the server gave it, canonical
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

	Hold *Hold `json:"hold,omitempty"` // nil: nothing holds it back
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
