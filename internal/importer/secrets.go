package importer

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/internal/config"
)

// keeper moves secrets out of entries.
type keeper struct {
	lines map[string]string // of secrets.env, by name
	added []string          // lines that are new
}

var (
	errOtherSecret = errors.New("secrets.env keeps another value under the name of one of its secrets")
	errSecretShape = errors.New("one of its secrets cannot be kept in a line of secrets.env")
)

// hide returns the entry with a placeholder in place of every secret that is written out, and the names of those.
func (k *keeper) hide(server string, s config.Server) (config.Server, []string, error) {
	var names []string
	keep := func(name, value string) (string, error) {
		if strings.TrimSpace(value) != value || strings.ContainsAny(value, "\r\n\x00") {
			return "", errSecretShape
		}
		name = secretName(server, name)
		if known, there := k.lines[name]; there && known != value {
			return "", errOtherSecret
		} else if !there {
			k.lines[name] = value
			k.added = append(k.added, name+"="+value+"\n")
		}
		names = append(names, name)
		return "${" + name + "}", nil
	}
	mark := len(k.added)
	hidden, err := config.ReplaceSecrets(s, keep)
	if err != nil {
		for _, line := range k.added[mark:] {
			delete(k.lines, strings.SplitN(line, "=", 2)[0])
		}
		k.added = k.added[:mark]
		return s, nil, err
	}
	return hidden, slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// secretName is the name under which a secret of a server is kept: SERVER_NAME.
func secretName(server, name string) string {
	word := func(s string) string { return strings.Trim(config.EnvironmentName(s), "_") }
	prefix, own := word(server), word(name)
	if prefix == "" || prefix[0] >= '0' && prefix[0] <= '9' {
		prefix = "MCP_" + prefix
	}
	if strings.HasPrefix(own, prefix+"_") {
		return own
	}
	return prefix + "_" + own
}

// sorted yields a table in order of its names.
func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
