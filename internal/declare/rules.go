package declare

import (
	"fmt"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// readRules reads the permissions of a settings file of Claude Code. What restricts fails closed: permissions that cannot
// be read deny every call, and so does a file that was never read. Rules are judged one by one by package policy.
func readRules(file string, raw []byte) *product {
	r := &mcpReader{reporter: reporter{path: file}, client: clientDesktop}
	root, ok := r.parse(raw)
	if !ok {
		return &product{problems: r.problems, broken: true, permissions: []policy.PermissionRules{denyAll(file)}}
	}
	m, found := root.find("permissions")
	if !found {
		return &product{problems: r.problems}
	}
	rules := policy.PermissionRules{Source: file, Dialect: capability.DialectClaude}
	readable := m.value.kind == '{'
	for _, e := range m.value.members {
		switch e.name {
		case "allow":
			rules.Allow, rules.Lines.Allow, readable = r.rules(e, readable)
		case "ask":
			rules.Ask, rules.Lines.Ask, readable = r.rules(e, readable)
		case "deny":
			rules.Deny, rules.Lines.Deny, readable = r.rules(e, readable)
		case "defaultMode":
			rules.Mode, rules.Lines.Mode = e.value.text, e.line
		case "additionalDirectories":
			r.warn("permissions_unsupported", e.line, "additionalDirectories is not supported: the tools of this host stay in the workspace", "remove it, or leave it to the program it was written for")
		case "disableBypassPermissionsMode", "disableAutoMode":
		default:
			r.warn("permissions_unknown_key", e.line, fmt.Sprintf("permissions has the unknown key %s, which is ignored", quoted(e.name)), "the keys are allow, ask, deny and defaultMode")
		}
	}
	if !readable {
		r.error("permissions_unreadable", m.line, "permissions cannot be read; every call is denied until this is repaired", `write {"allow": [...], "ask": [...], "deny": [...]} with texts`)
		rules = denyAll(file)
	}
	_, problems := policy.CompileEngine(policy.Host{Workspace: "/", Home: "/"}, rules)
	return &product{problems: append(r.problems, problems...), permissions: []policy.PermissionRules{rules}}
}

func denyAll(file string) policy.PermissionRules {
	return policy.PermissionRules{Source: file, Deny: []string{"*"}}
}

// rules reads a list of rules with the line of each.
func (r *mcpReader) rules(m member, before bool) (texts []string, lines []int, readable bool) {
	if m.value.kind != '[' {
		return nil, nil, false
	}
	for _, item := range m.value.items {
		if item.kind != '"' {
			return nil, nil, false
		}
		texts, lines = append(texts, item.text), append(lines, item.line)
	}
	return texts, lines, before
}
