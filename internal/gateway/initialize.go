package gateway

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// serverName is who the server says it is.
const serverName = "vak-actors"

// initialize answers the handshake, and nothing else is waited for: the runtime's session is opened when it is needed,
// and servers are started by calls. It may be repeated.
func (s *session) initialize(m message) []byte {
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

	var result struct {
		Version      string `json:"protocolVersion"`
		Capabilities struct {
			Completions struct{} `json:"completions"`
			Logging     struct{} `json:"logging"`
			Prompts     changing `json:"prompts"`
			Resources   struct {
				changing
				Subscribe bool `json:"subscribe"`
			} `json:"resources"`
			Tools changing `json:"tools"`
		} `json:"capabilities"`
		Server struct {
			Name    string `json:"name"`
			Title   string `json:"title"`
			Version string `json:"version"`
		} `json:"serverInfo"`
		Instructions string `json:"instructions"`
	}
	result.Version = mcp.NegotiateLegacyVersion(p.Version)
	result.Capabilities.Prompts.ListChanged = true
	result.Capabilities.Resources.ListChanged, result.Capabilities.Resources.Subscribe = true, true
	result.Capabilities.Tools.ListChanged = true
	result.Server.Name, result.Server.Title, result.Server.Version = serverName, serverName, s.version
	result.Instructions = s.instructions()
	return resultFrame(m.ID, encode(result))
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
