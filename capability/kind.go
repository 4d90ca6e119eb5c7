package capability

import (
	"cmp"
	"fmt"
	"strings"
)

// Kind is one of exactly five ways in which an agent is extended.
type Kind uint8

// The kinds. There is no sixth: plugins, workflows and imported files contribute these.
const (
	KindUnspecified Kind = iota
	KindTool             // called by the model
	KindSkill            // a document, loaded by the skill tool or by /skill:name
	KindMCP              // a server, reached through the mcp broker
	KindHook             // runs at a lifecycle event
	KindCommand          // a slash command, expanded by the host
)

// Kinds lists the five in the order reports print them.
func Kinds() []Kind { return []Kind{KindTool, KindSkill, KindMCP, KindHook, KindCommand} }

var kindNames = [...]string{"", "tool", "skill", "mcp", "hook", "command"}

// String is the prefix of a printed id: tool, skill, mcp, hook or command.
func (k Kind) String() string {
	if int(k) >= len(kindNames) || k == KindUnspecified {
		return "unspecified"
	}
	return kindNames[k]
}

// MarshalText is the name in JSON, which for servers is mcp-server.
func (k Kind) MarshalText() ([]byte, error) {
	if k == KindMCP {
		return []byte("mcp-server"), nil
	}
	return []byte(k.String()), nil
}

// UnmarshalText accepts both the JSON name and the printed prefix.
func (k *Kind) UnmarshalText(text []byte) error {
	parsed, err := ParseKind(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// ParseKind reads a prefix or a JSON name.
func ParseKind(s string) (Kind, error) {
	if s == "mcp-server" {
		return KindMCP, nil
	}
	for i, name := range kindNames {
		if i > 0 && name == s {
			return Kind(i), nil
		}
	}
	return KindUnspecified, fmt.Errorf("unknown kind %q: the kinds are tool, skill, mcp, hook and command", s)
}

// ID is the identity of a capability. Two kinds may use one name without meeting each other.
type ID struct {
	Kind Kind
	Name string // not empty; unique within its kind
}

// String prints kind:name, the form used in messages, ledgers and on the command line.
func (id ID) String() string { return id.Kind.String() + ":" + id.Name }

// ParseID reads kind:name; the name may itself hold colons.
func ParseID(s string) (ID, error) {
	prefix, name, found := strings.Cut(s, ":")
	if !found || name == "" {
		return ID{}, fmt.Errorf("cannot read id %q: write it as kind:name, for instance tool:read", s)
	}
	kind, err := ParseKind(prefix)
	if err != nil {
		return ID{}, err
	}
	return ID{kind, name}, nil
}

// MarshalText prints the id as String does.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}

// Compare orders ids by kind (in the order of Kinds), then by name in byte order. Sets, deltas and reports use it.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Kind, other.Kind), strings.Compare(id.Name, other.Name))
}
