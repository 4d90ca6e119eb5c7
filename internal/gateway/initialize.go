package gateway

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// serverName is who the server says it is.
const serverName = "vak-actors"

// initialize answers the handshake, and nothing else is waited for: the runtime's session is opened when it is needed,
// and servers are started by calls. It may be repeated.
func (s *session) initialize(m message, _ asker) []byte {
	var p struct {
		Version      string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Client       struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	}
	if len(m.Params) == 0 || json.Unmarshal(m.Params, &p) != nil {
		return invalidParams("initialize needs protocolVersion, capabilities and clientInfo").frame(m.ID)
	}
	s.runtime.describe(p.Client.Name, p.Client.Version)
	s.mu.Lock()
	s.peer.capabilities = bounded(p.Capabilities)
	s.mu.Unlock()

	return resultFrame(m.ID, encode(struct {
		Version      string       `json:"protocolVersion"`
		Capabilities capabilities `json:"capabilities"`
		Server       identity     `json:"serverInfo"`
		Instructions string       `json:"instructions"`
	}{mcp.NegotiateLegacyVersion(p.Version), s.capabilities(), s.identity(), s.instructions()}))
}

// identity is who a server says it is.
type identity struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

func (f *front) identity() identity { return identity{serverName, serverName, f.version} }

// capabilities are those of this server. Which of them a client finds something behind depends on what it may use, and
// changes while it is connected.
type capabilities struct {
	Completions struct{} `json:"completions"`
	Logging     struct{} `json:"logging"`
	Prompts     changing `json:"prompts"`
	Resources   struct {
		changing
		Subscribe bool `json:"subscribe"`
	} `json:"resources"`
	Tools      changing       `json:"tools"`
	Extensions map[string]any `json:"extensions,omitempty"`
}

func (e endpoint) capabilities() capabilities {
	var c capabilities
	if e.Server == "" {
		c.Extensions = map[string]any{skillsExtension: map[string]bool{"directoryRead": true}}
	}
	c.Prompts.ListChanged, c.Tools.ListChanged = true, true
	c.Resources.ListChanged, c.Resources.Subscribe = true, true
	return c
}

// changing is the capability of a list that may change.
type changing struct {
	ListChanged bool `json:"listChanged"`
}

// maxCapabilities bounds what is kept of what a client says it can do, in bytes.
const maxCapabilities = 16 << 10

func bounded(capabilities json.RawMessage) json.RawMessage {
	if len(capabilities) > maxCapabilities || !isObject(capabilities) {
		return nil
	}
	return capabilities
}
