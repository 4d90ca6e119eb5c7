// Package op is the contract of a callable: what a call carries, what a result is, and the table in which declared tools
// find the function behind their name.
//
// An op gets validated arguments and a Bound, which is all that it may know of the set its turn is bound to: it resolves
// nothing else, so what was not admitted cannot be loaded through it. It returns a Result, or an error that the dispatcher
// turns into one with Failure. The package decides nothing about permissions, hooks or revocation; the dispatcher has asked
// all that before Run is called. The one check that lives here, CheckWritePath, is asked by the dispatcher too.
package op

import (
	"context"
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
)

// Call is one call of an op. It is a value: an op must not change what its fields point to.
type Call struct {
	Tenant  string
	Session string
	Turn    string
	ID      string // unique within the session

	Arguments json.RawMessage // one JSON object that fits the declared input schema

	// WritePaths are the files and folders, relative to the workspace, that this run may write directly. Nil: no
	// restriction; empty: none. See CheckWritePath.
	WritePaths []string

	// Client names who answers what a server asks while the call runs; Extra is what its request carries besides.
	Client string
	Extra  json.RawMessage
	// Raw says that the caller takes the result of a server's request as it came.
	Raw bool

	Bound Bound

	// Permit is asked by an op that learns only while it runs what a server's tool declares of itself: an error means that
	// the call is not permitted, and is returned as it is. It does not block.
	Permit func(server string, tool *capability.ObservedTool) error

	// Approved is asked by an op that learns from a server what a tool of it is: it returns the version that is in force. It
	// does not block.
	Approved func(server string, tool capability.ObservedTool) capability.ObservedTool

	// PermitPath is asked by an op that follows links, with the path, relative to the workspace, that they led to: an error
	// means that the call is not permitted there, and is returned as it is. It does not block.
	PermitPath func(path string) error

	// MaySee is asked by an op that looks into many files, with each path relative to the workspace: where it says no, the op
	// passes the file over as if it were not there. It does not block. Nil: it may see all.
	MaySee func(path string) bool

	// Commit is asked by an op that waits (for a server to start, for a lock) before its effect, immediately before that
	// effect; an error means that the call must not go on, and is returned as it is. The dispatcher has asked it once
	// before Run. It does not block.
	Commit func() error
}

// Func runs a call. It is called from a goroutine of the call's own, may block until ctx ends and must return then. An
// error is a refusal or a failure of the host's side; a tool's own failure is a Result with IsError.
type Func func(ctx context.Context, c Call) (Result, error)

// Op is a callable with its declaration.
type Op struct {
	Declaration capability.Declaration // of kind tool; the op's id is its Config's Op, or else its name
	Run         Func

	// WriteTarget returns the path, relative to the workspace, that a call with these arguments writes directly. Nil for
	// an op that writes no file itself. Like CheckWritePath it is asked before the call is dispatched and does no I/O.
	WriteTarget func(arguments json.RawMessage) (string, error)
}

// ID is the id the op is registered under.
func (o *Op) ID() string {
	if tool, ok := o.Declaration.Config.(*capability.Tool); ok && tool.Op != "" {
		return tool.Op
	}
	return o.Declaration.ID.Name
}
