package turn

import (
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// Interface is the record of what a turn saw and what its model was given. It holds no epoch, so turns that saw the same
// share one record; what is not shared (epoch, set digest, turn) stands in the ledger's turn_began beside its digest.
type Interface struct {
	Capabilities []capability.ID               `json:"capabilities"` // admitted, in order of ids
	Excluded     []capability.ID               `json:"excluded,omitempty"`
	Blocked      []policy.Standing             `json:"blocked,omitempty"` // why, of each that permissions or a hold took away
	Loaded       []string                      `json:"loaded"`
	Deferred     []string                      `json:"deferred,omitempty"`
	ToolDomains  map[string]capability.Domains `json:"tool_domains,omitempty"` // of the admitted tools that declare any
	SystemPrompt string                        `json:"system_prompt"`
	Schemas      json.RawMessage               `json:"schemas"` // as rendered
	ToolIndex    map[string]string             `json:"tool_index"`
}

// NewInterface is the record of a surface with its prompt and rendered definitions.
func NewInterface(a *Admitted, s Surface, prompt string, schemas json.RawMessage) Interface {
	i := Interface{
		Capabilities: []capability.ID{}, Loaded: s.Loaded, Deferred: s.Deferred,
		ToolDomains: map[string]capability.Domains{}, SystemPrompt: prompt, Schemas: schemas, ToolIndex: a.ToolIndex,
	}
	for c := range a.Set.All() {
		if _, ok := a.Get(c.ID); ok {
			i.Capabilities = append(i.Capabilities, c.ID)
		}
	}
	for _, s := range a.Excluded {
		i.Excluded = append(i.Excluded, s.ID)
		if s.State == policy.Blocked {
			i.Blocked = append(i.Blocked, s)
		}
	}
	for _, c := range a.Tools {
		if len(c.Serves) > 0 {
			i.ToolDomains[c.ID.Name] = c.Serves
		}
	}
	if i.Loaded == nil {
		i.Loaded = []string{}
	}
	return i
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
