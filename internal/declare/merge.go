package declare

import (
	"maps"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
)

// Merge joins what several roots declare, given in order of precedence: of a name that two declare the first one wins and
// the other stays visible as shadowed, but for hooks, which all stay in force. Watch and Revision belong to single roots and are left empty.
func Merge(roots ...Result) Result {
	var all Result
	size := 0
	for _, r := range roots {
		size += len(r.Declarations)
	}
	all.Declarations = make([]capability.Declaration, 0, size)
	taken := make(map[capability.ID]int, size)
	for i, r := range roots {
		all.Problems = append(all.Problems, r.Problems...)
		all.Shadowed = append(all.Shadowed, r.Shadowed...)
		all.Permissions = append(all.Permissions, r.Permissions...)
		if i == 0 {
			all.Config = r.Config
		} else {
			all.Config = mergeConfig(all.Config, r.Config)
		}
		for _, d := range r.Declarations {
			if by, twice := taken[d.ID]; twice && !apart(&d, all.Declarations[by], taken, sameHook) {
				all.shadow(d, all.Declarations[by])
				continue
			}
			taken[d.ID] = len(all.Declarations)
			all.Declarations = append(all.Declarations, d)
		}
	}
	all.sort()
	return all
}

// sort puts a result into the order that it promises.
func (r *Result) sort() {
	slices.SortFunc(r.Declarations, func(a, b capability.Declaration) int { return a.ID.Compare(b.ID) })
	slices.SortStableFunc(r.Shadowed, func(a, b capability.Shadow) int { return a.ID.Compare(b.ID) })
	capability.SortProblems(r.Problems)
}

// mergeConfig adds what a root of lower precedence configures. Permissions are layers of their own, see Result. Whatever
// else a vak.toml says counts in its own root alone.
func mergeConfig(first, next config.Config) config.Config {
	first.Unreadable = first.Unreadable || next.Unreadable
	if !first.Writes("permissions.approval_timeout") && next.Writes("permissions.approval_timeout") {
		first.Approvals = next.Approvals
	}
	first.Hooks = slices.Concat(first.Hooks, next.Hooks)
	if len(next.MCP) > 0 {
		servers := maps.Clone(next.MCP)
		maps.Copy(servers, first.MCP)
		first.MCP = servers
	}
	if len(next.Channels) > 0 {
		channels := maps.Clone(next.Channels)
		for name, rules := range first.Channels {
			if further, both := next.Channels[name]; both { // neither root may show what the other one hides
				rules.Also = append(slices.Clone(rules.Also), further)
			}
			channels[name] = rules
		}
		first.Channels = channels
	}
	return first
}

// switchedOff notes a server that a file of higher precedence switches off.
func (r *Result) switchedOff(d capability.Declaration, by string) {
	r.Shadowed = append(r.Shadowed, capability.Shadow{ID: d.ID, Source: d.Source, By: by})
}
