package turn

import (
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
)

// Bound is the ledger's record of what a turn saw. With the set of that digest and the interface of that digest, which
// are stored once each, it can be rebuilt.
type Bound struct {
	Epoch        capability.Epoch              `json:"epoch"`
	SetDigest    string                        `json:"set_digest"`
	Capabilities []capability.ID               `json:"capabilities"` // admitted, in order of ids
	Excluded     []capability.ID               `json:"excluded,omitempty"`
	Loaded       []string                      `json:"loaded"`
	Deferred     []string                      `json:"deferred,omitempty"`
	ToolDomains  map[string]capability.Domains `json:"tool_domains,omitempty"` // of the admitted tools that declare any
	Interface    string                        `json:"interface"`              // digest, see Interface.Encode
}

// Interface is what a model was given besides the conversation. It holds no epoch, so turns that saw the same share
// one record.
type Interface struct {
	SystemPrompt string            `json:"system_prompt"`
	Schemas      json.RawMessage   `json:"schemas"` // as rendered
	ToolIndex    map[string]string `json:"tool_index"`
}

// Encode returns the canonical JSON of the interface and its digest, lower-case hex SHA-256. The ledger stores an
// interface under its digest and only where it has none of that digest yet.
func (i Interface) Encode() (encoded json.RawMessage, digest string, err error) {
	raw, err := json.Marshal(i)
	if err != nil {
		return nil, "", err
	}
	if encoded, err = capability.CanonicalJSON(raw); err != nil {
		return nil, "", err
	}
	return encoded, capability.ContentDigest(encoded), nil
}

// NewBound is the record of a turn; interfaceDigest comes from Interface.Encode.
func NewBound(a *Admitted, s Surface, interfaceDigest string) Bound {
	b := Bound{
		Epoch: a.Epoch, SetDigest: a.Digest, Loaded: s.Loaded, Deferred: s.Deferred, Interface: interfaceDigest,
		Capabilities: []capability.ID{}, ToolDomains: map[string]capability.Domains{},
	}
	for c := range a.Set.All() {
		if _, ok := a.Get(c.ID); ok {
			b.Capabilities = append(b.Capabilities, c.ID)
		}
	}
	for _, s := range a.Excluded {
		b.Excluded = append(b.Excluded, s.ID)
	}
	for _, c := range a.Tools {
		if len(c.Serves) > 0 {
			b.ToolDomains[c.ID.Name] = c.Serves
		}
	}
	if b.Loaded == nil {
		b.Loaded = []string{}
	}
	return b
}
