// Package builtin holds the tools compiled into this program: read, glob, grep, write and edit on the files of a workspace,
// find_tools, skill, mcp and session_search on what the turn is bound to.
//
// Each is an op.Op with its own declaration and flags; nothing else knows their names. They decide nothing about
// permissions: the dispatcher has done that. Files are reached through rootfs only. Everything returned is bounded, because
// it goes to a model. An op returns *vakerr.Error for a refusal and lets the dispatcher render it.
//
// The ops of one workspace may be run by any number of goroutines; they start none.
package builtin

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/schema"
)

// MaxText is the largest text one result holds, in bytes.
const MaxText = 256 << 10

// Config is what the ops of one tenant work on.
type Config struct {
	Workspace string        // absolute path of the folder the file tools work in
	Servers   Servers       // the MCP pool; nil leaves out mcp
	History   History       // the sessions' records; nil leaves out session_search
	Schemas   *schema.Cache // of the servers' input schemas; nil makes one
}

// Servers is the pool of MCP servers. It is called from the goroutine of a call and may block until ctx ends: its methods
// are demand, and may start a server. Catalogs and errors come without the server's secrets.
type Servers interface {
	// List returns a server's catalog, sorted by name, without the tools that its own lists disable.
	List(ctx context.Context, c op.Call, server string) ([]capability.ObservedTool, error)
	// Call returns the server's CallToolResult as it came.
	Call(ctx context.Context, c op.Call, server, tool string, arguments json.RawMessage) (json.RawMessage, error)
	// Request sends one of turn.Requests and returns the server's result as it came.
	Request(ctx context.Context, c op.Call, server, method string, params json.RawMessage) (json.RawMessage, error)
}

// History searches the records of a tenant's sessions. It is called from the goroutine of a call and may block.
type History interface {
	// Search returns at most limit hits for the words of query, best first, of the sessions that the caller may read.
	Search(ctx context.Context, c op.Call, query string, limit int) ([]Recollection, error)
}

// Recollection is one entry of a session's record.
type Recollection struct {
	Session string
	Seq     uint64
	At      time.Time
	Kind    string // of the entry
	Text    string
}

// Ops returns the ops of a tenant.
func Ops(c Config) []op.Op {
	if c.Schemas == nil {
		c.Schemas = schema.NewCache(256)
	}
	f := &files{workspace: c.Workspace}
	ops := []op.Op{
		f.readOp(), f.globOp(), f.grepOp(), f.writeOp(), f.editOp(),
		findToolsOp(), skillOp(f),
	}
	if c.Servers != nil {
		ops = append(ops, mcpOp(&broker{c.Servers, c.Schemas}))
	}
	if c.History != nil {
		ops = append(ops, sessionSearchOp(c.History))
	}
	return ops
}

// files are the file tools of one workspace.
type files struct {
	workspace string
	writing   sync.Mutex // held from reading what an edit changes until it is written, so that no edit undoes another
}

// open opens the workspace for one call and makes the path the model gave relative to it.
func (f *files) open(p string) (*rootfs.Root, string, error) {
	rel, err := rootfs.Relative(f.workspace, p)
	if err != nil {
		return nil, "", err
	}
	root, err := rootfs.Open(f.workspace)
	return root, rel, err
}

// declaration is that of a built-in tool; the summary is the first sentence of what the model reads.
func declaration(name, summary, more, inputSchema string, serves capability.Domains, flags capability.Tool) capability.Declaration {
	flags.Description = summary
	if more != "" {
		flags.Description += " " + more
	}
	flags.InputSchema = json.RawMessage(inputSchema)
	return capability.Declaration{
		ID:     capability.ID{Kind: capability.KindTool, Name: name},
		Origin: capability.Origin{Kind: capability.OriginBuiltin}, Summary: summary, Serves: serves, Config: &flags,
	}
}
