package gateway

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Surfaces a client can ask for.
const (
	SurfaceFull   = "full"   // the host's tools, and every known tool of every server under its exposed name
	SurfaceSearch = "search" // the host's tools only; the others are found and called through them
)

// endpoint is what a client attached to. It stays the same for the life of its connection.
type endpoint struct {
	Tenant  string
	Server  string // set: the tools of that server only, under their own names
	Surface string

	// WritePaths are the direct-write paths of its session, each ended by a NUL; empty: not restricted.
	WritePaths string
}

// maxName bounds names of tenants, servers and sessions, in bytes.
const maxName = 128

func newEndpoint(tenant, server, surface string, writePaths []string) (endpoint, error) {
	if surface == "" {
		surface = SurfaceFull
	}
	switch {
	case surface != SurfaceFull && surface != SurfaceSearch:
		return endpoint{}, vakerr.New(vakerr.InvalidRequest, "there is no surface %.80q", surface).
			WithRemedy("use %s or %s", SurfaceFull, SurfaceSearch)
	case !plain(tenant):
		return endpoint{}, vakerr.New(vakerr.UnknownTenant, "there is no tenant %.80q", tenant)
	case server != "" && !plain(server):
		return endpoint{}, vakerr.New(vakerr.UnknownServer, "there is no server %.80q", server)
	}
	e := endpoint{Tenant: tenant, Server: server, Surface: surface}
	for _, p := range writePaths {
		if p == "" || strings.ContainsRune(p, 0) {
			return endpoint{}, vakerr.New(vakerr.InvalidRequest, "a write path is empty or holds a NUL").
				WithRemedy("name a file or folder, relative to the workspace")
		}
		e.WritePaths += p + "\x00"
	}
	return e, nil
}

// writePaths are the direct-write paths, one by one.
func (e endpoint) writePaths() []string {
	if e.WritePaths == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(e.WritePaths, "\x00"), "\x00")
}

// plain reports whether name is 1-128 of [A-Za-z0-9._-], which every id of a tenant, server or session is.
func plain(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("._-", rune(c)) {
			return false
		}
	}
	return true
}

// address is the name under which the runtime knows what this client calls by name.
func (e endpoint) address(name string) string {
	if e.Server == "" {
		return name
	}
	return e.Server + "/" + name
}

// SessionKey derives the id of the runtime's session for a client that names its own, as Claude Code does in the
// environment of the servers it starts (CLAUDE_CODE_SESSION_ID): the same conversation finds its session again. Where
// there is no such name, or one that cannot be part of an id, the key is a new one.
func SessionKey(claudeSession string) string {
	if key := claudePrefix + claudeSession; claudeSession != "" && plain(key) {
		return key
	}
	return newSessionKey()
}

const (
	claudePrefix = "claude-"
	ownPrefix    = "mcp-"
)

// newSessionKey is the id of a session nobody has yet: 128 random bits.
func newSessionKey() string { return ownPrefix + strings.ToLower(rand.Text()) }

// instructions is what a client is told about the server when it connects. Clients cut it at 2048 characters.
func (e endpoint) instructions() string {
	if e.Server != "" {
		return fmt.Sprintf("The tools of the MCP server %s, under the governance of vak-actors: a call can be refused with "+
			"{\"error\":{code, reason, remedy}}; do what the remedy says. The list of tools can change between calls.", e.Server)
	}
	text := "vak-actors governs the tools, skills and MCP servers of this workspace. What you may use can change between " +
		"calls: a new tool can be called at once, a withdrawn one is refused. A refusal is an error {code, reason, remedy}; do " +
		"what the remedy says and do not repeat the same call.\n" +
		"Look for a tool by what it should do with find_tools. Load a skill with skill before work it is about. "
	if e.Surface == SurfaceSearch {
		return text + "The tools of MCP servers are not listed: find them with find_tools, or list them with mcp " +
			`{"action":"list"}, and call them with mcp {"action":"call","server":S,"tool":T,"arguments":{…}}.`
	}
	return text + "Tools of MCP servers are listed as server__tool. A server that has not run yet lists none; mcp, where it is " +
		`listed, reaches it: {"action":"list","server":S}.`
}
