package vakerr

// Code is the stable, documented name of one condition. Programs compare codes; people read reasons.
type Code string

// Kind is the class of a code. What is generic about an error follows from its kind alone.
type Kind uint8

// The kinds. The zero value is KindInternal, so that an unknown code is treated as the worst case.
const (
	KindInternal    Kind = iota // a broken promise of ours
	KindInvalid                 // the request can never succeed as it is
	KindNotFound                // the thing named does not exist, or not for this caller
	KindConflict                // the state of the thing forbids it now (ended turn, stale writer, second daemon)
	KindDenied                  // policy, permission or an operator says no
	KindExhausted               // a bound was reached
	KindUnavailable             // a part outside this process does not work now
	KindTimeout                 // a deadline passed
	KindCanceled                // the caller or an operator gave up on it
)

// The codes, by the part that first speaks them. Add one here and in the table below, nowhere else.
const (
	Internal Code = "internal_error"

	// Requests and addresses.
	InvalidArguments      Code = "invalid_arguments"
	InvalidRequest        Code = "invalid_request"
	UnknownTool           Code = "unknown_tool"
	UnknownServer         Code = "unknown_server"
	UnknownAction         Code = "unknown_action"
	UnknownTenant         Code = "unknown_tenant"
	WrongKind             Code = "wrong_kind"
	CapabilityNotAdmitted Code = "capability_not_admitted"
	CapabilityUnavailable Code = "capability_unavailable"
	CapabilityStale       Code = "capability_stale"
	CapabilityInvalid     Code = "capability_invalid"
	CapabilityRevoked     Code = "capability_revoked"
	CapabilityRemoved     Code = "capability_removed"

	// Policy.
	PermissionDenied Code = "permission_denied"
	ApprovalRequired Code = "approval_required"
	ChannelDenied    Code = "channel_denied"
	HookBlocked      Code = "hook_blocked"
	HookFailed       Code = "hook_failed"
	Unauthenticated  Code = "unauthenticated"

	// Pins: of what differs from what was approved.
	CapabilityHeld Code = "capability_held"
	PinMoved       Code = "pin_moved"
	PinUnknown     Code = "pin_unknown"

	// Approvals: of a call whose approval did not come, and of an answer that cannot count.
	ApprovalRejected      Code = "approval_rejected"
	ApprovalExpired       Code = "approval_expired"
	ApprovalConsumed      Code = "approval_consumed"
	ApprovalInputMismatch Code = "approval_input_mismatch"
	ApprovalNotFound      Code = "approval_not_found"

	// Sessions and the ledger.
	SessionNotFound   Code = "session_not_found"
	SessionExists     Code = "session_exists"
	SessionClosed     Code = "session_closed"
	TurnNotFound      Code = "turn_not_found"
	TurnEnded         Code = "turn_ended"
	TurnOpen          Code = "turn_open"
	LedgerFenced      Code = "ledger_fenced"
	LedgerCorrupt     Code = "ledger_corrupt"
	LedgerTooNew      Code = "ledger_too_new"
	LedgerUnavailable Code = "ledger_unavailable"
	DataFolderLocked  Code = "data_folder_locked"

	// Processes of any kind, before it is known whose they are.
	ProcessStartFailed Code = "process_start_failed"

	// Prompts in the making.
	ExpansionFailed Code = "expansion_failed"

	// Servers behind the pool.
	ServerBackingOff  Code = "server_backing_off"
	ServerStartFailed Code = "server_start_failed"
	ServerProtocol    Code = "server_protocol_error"
	ServerDied        Code = "server_died"
	ServerStopped     Code = "server_stopped"
	ServerRejected    Code = "server_rejected"
	OutcomeUnknown    Code = "outcome_unknown"
	SecretUnresolved  Code = "secret_unresolved"
	ServerUnready     Code = "server_unready"
	OutputInvalid     Code = "output_invalid"

	// Files of a workspace and of the configuration.
	ConfigInvalid       Code = "config_invalid"
	WorkspaceUnreadable Code = "workspace_unreadable"
	PathEscapes         Code = "path_escapes"
	FileNotFound        Code = "file_not_found"

	// Plugins.
	PluginInvalid      Code = "plugin_invalid"
	PluginIncompatible Code = "plugin_incompatible"
	PluginUnsafe       Code = "plugin_unsafe"
	PluginBlocked      Code = "plugin_blocked"
	UnknownPlugin      Code = "unknown_plugin"
	ConsentRequired    Code = "consent_required"
	PluginStoreFailed  Code = "plugin_store_failed"

	// The daemon, as its programs see it.
	DaemonUnreachable Code = "daemon_unreachable"
	ListenFailed      Code = "listen_failed"

	// Bounds and time.
	TooLarge         Code = "too_large"
	QueueFull        Code = "queue_full"
	TooMany          Code = "too_many"
	DeadlineExceeded Code = "deadline_exceeded"
	Canceled         Code = "canceled"
	ShuttingDown     Code = "shutting_down"
	ActorStopped     Code = "actor_stopped"
)

var kindOf = map[Code]Kind{
	Internal: KindInternal,

	InvalidArguments: KindInvalid, InvalidRequest: KindInvalid, UnknownAction: KindInvalid, WrongKind: KindInvalid,
	UnknownTool: KindNotFound, UnknownServer: KindNotFound, UnknownTenant: KindNotFound,
	CapabilityNotAdmitted: KindDenied, CapabilityUnavailable: KindUnavailable,
	CapabilityStale: KindConflict, CapabilityInvalid: KindInvalid, CapabilityRevoked: KindDenied,
	CapabilityRemoved: KindNotFound,

	PermissionDenied: KindDenied, ApprovalRequired: KindDenied, ChannelDenied: KindDenied, HookBlocked: KindDenied,
	HookFailed: KindUnavailable, Unauthenticated: KindDenied,

	CapabilityHeld: KindDenied, PinMoved: KindConflict, PinUnknown: KindNotFound,

	ApprovalRejected: KindDenied, ApprovalExpired: KindDenied, ApprovalConsumed: KindConflict,
	ApprovalInputMismatch: KindConflict, ApprovalNotFound: KindNotFound,

	SessionNotFound: KindNotFound, SessionClosed: KindConflict, TurnNotFound: KindNotFound, TurnEnded: KindConflict,
	TurnOpen: KindConflict, LedgerFenced: KindConflict, LedgerCorrupt: KindInternal, LedgerUnavailable: KindUnavailable,
	DataFolderLocked: KindConflict, SessionExists: KindConflict, LedgerTooNew: KindConflict,

	ProcessStartFailed: KindUnavailable, ExpansionFailed: KindUnavailable,

	ServerBackingOff: KindUnavailable, ServerStartFailed: KindUnavailable, ServerProtocol: KindUnavailable,
	ServerDied: KindUnavailable, ServerStopped: KindUnavailable, ServerRejected: KindInvalid,
	OutcomeUnknown: KindUnavailable, SecretUnresolved: KindInvalid, ServerUnready: KindInvalid, OutputInvalid: KindUnavailable,

	ConfigInvalid: KindInvalid, WorkspaceUnreadable: KindInvalid, PathEscapes: KindDenied, FileNotFound: KindNotFound,

	PluginInvalid: KindInvalid, PluginIncompatible: KindInvalid, PluginUnsafe: KindDenied, PluginBlocked: KindDenied,
	UnknownPlugin: KindNotFound, ConsentRequired: KindDenied, PluginStoreFailed: KindUnavailable,

	DaemonUnreachable: KindUnavailable, ListenFailed: KindUnavailable,

	TooLarge: KindExhausted, QueueFull: KindExhausted, TooMany: KindExhausted, DeadlineExceeded: KindTimeout,
	Canceled: KindCanceled, ShuttingDown: KindUnavailable, ActorStopped: KindUnavailable,
}

// Kind is the class of c. A code that is not in the catalogue is KindInternal.
func (c Code) Kind() Kind { return kindOf[c] }

// Known reports whether c stands in the catalogue.
func (c Code) Known() bool { _, ok := kindOf[c]; return ok }

// traits is one row of the table: what follows from a kind.
type traits struct {
	name      string
	retryable bool
	exit      int    // process exit code of a command-line verb
	connect   string // Connect/gRPC code name
	jsonrpc   int    // JSON-RPC error code, where the failure is the protocol's and not a tool result
}

// Exit code 3 is "refused (typed error)" for every kind: scripts tell refusals apart by code, not by exit status.
var table = [...]traits{
	KindInternal:    {"internal", false, 3, "internal", -32603},
	KindInvalid:     {"invalid", false, 3, "invalid_argument", -32602},
	KindNotFound:    {"not_found", false, 3, "not_found", -32602},
	KindConflict:    {"conflict", false, 3, "failed_precondition", -32600},
	KindDenied:      {"denied", false, 3, "permission_denied", -32600},
	KindExhausted:   {"exhausted", true, 3, "resource_exhausted", -32603},
	KindUnavailable: {"unavailable", true, 3, "unavailable", -32603},
	KindTimeout:     {"timeout", true, 3, "deadline_exceeded", -32603},
	KindCanceled:    {"canceled", false, 3, "canceled", -32603},
}

func (k Kind) traits() traits {
	if int(k) >= len(table) {
		return table[KindInternal]
	}
	return table[k]
}

// String is the name of the kind as documents print it.
func (k Kind) String() string { return k.traits().name }

// Retryable reports whether the same request may succeed later with no change to it.
func (k Kind) Retryable() bool { return k.traits().retryable }

// ExitCode is what a command-line verb exits with for an error of this kind.
func (k Kind) ExitCode() int { return k.traits().exit }

// ConnectCode is the name of the Connect (and gRPC) code of this kind.
func (k Kind) ConnectCode() string { return k.traits().connect }

// JSONRPC is the JSON-RPC error code of this kind.
func (k Kind) JSONRPC() int { return k.traits().jsonrpc }

// Codes returns every code of the catalogue, in no particular order.
func Codes() []Code {
	all := make([]Code, 0, len(kindOf))
	for c := range kindOf {
		all = append(all, c)
	}
	return all
}
