package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
)

// ParseLayer reads a file that has the form of vak.toml and lies below it: its servers and hooks are added, its ask and
// deny rules hold, and nothing of it widens. What else it says is named and ignored, and so are keys nobody knows, for
// other programs write such files too. A text that is no TOML may have held any deny, so it denies every call. Only this
// layer is in the answer, nothing of the others.
func ParseLayer(path string, text []byte) (Config, []capability.Problem) {
	d, ok := newDocument(path, text, unreadHint)
	top := &section{doc: d, values: d.values}
	c := Config{MCP: readServers(top), Hooks: readHooks(top)}
	c.Permissions, _ = readPermissions(top)
	if !ok {
		c.Unreadable = true
		c.Permissions = denyAll()
	}
	written, _ := d.values["permissions"].(map[string]any)
	for _, key := range []string{"mode", "allow"} {
		if _, grants := written[key]; grants {
			d.report(capability.SeverityWarning, "layer_grant", d.lineOf("permissions", key),
				fmt.Sprintf("%s in [permissions] of this file is ignored: it could widen what vak.toml allows", key), "write it in vak.toml")
		}
	}
	if c.Permissions.Allow = nil; !slices.Contains(c.Permissions.Deny, "*") {
		c.Permissions.Mode = ""
	}
	for _, key := range slices.Sorted(maps.Keys(d.values)) {
		if !slices.Contains(top.known, key) {
			d.report(capability.SeverityWarning, "layer_key", d.lineOf(key),
				fmt.Sprintf("%s is not read from this file", keyText(key)), "servers, hooks, ask and deny rules are; write the rest in vak.toml")
		}
	}
	c.settings = d.settings
	capability.SortProblems(d.problems)
	return c, d.problems
}
