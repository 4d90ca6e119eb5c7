package host

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// The sections of a vak.toml by who reads them: the daemon of its own file, once, at its start; and every pass of the file
// in the workspace. Where both are one file, as without --config, each section has its effect.
var (
	daemonSections    = []string{"listen", "data", "auth", "tenants", "reconcile", "ledger", "sessions", "intent"}
	workspaceSections = []string{"mcp", "hooks", "channels", "permissions", "limits", "pins", "hook_policy"}
)

// misplaced finds what is written where nobody reads it: the daemon's settings in a workspace's file, and, for the default
// tenant, what only a workspace declares in a daemon's file that lies elsewhere. The daemon's file adds its own problems.
func (h *Host) misplaced(tenant, workspace string) func(config.Config) []capability.Problem {
	if h.isConfigOf(workspace) {
		return func(config.Config) []capability.Problem { return nil }
	}
	var always []capability.Problem
	if tenant == protocol.DefaultTenant && h.options.Config != "" {
		always = without(h.config, workspaceSections, h.configPath(),
			"write it into the vak.toml of the workspace; the daemon's own file is read for its settings alone")
		for _, p := range h.problems {
			p.Path = h.configPath()
			always = append(always, p)
		}
	}
	return func(c config.Config) []capability.Problem {
		return append(without(c, daemonSections, configName, "write it into the daemon's configuration, "+h.configPath()), always...)
	}
}

// isConfigOf reports whether the daemon's configuration is the workspace's own file.
func (h *Host) isConfigOf(workspace string) bool {
	folder, err := filepath.Abs(filepath.Dir(h.configPath()))
	if err != nil || filepath.Base(h.configPath()) != configName {
		return false
	}
	own, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		own = filepath.Clean(workspace)
	}
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved
	}
	return own == folder
}

// without is a warning for each of the sections that is written in c, at its first line.
func without(c config.Config, sections []string, path, hint string) []capability.Problem {
	first := map[string]int{}
	for _, s := range c.Effective() {
		section := s.Key[:strings.IndexAny(s.Key+".", ".[")]
		line, err := strconv.Atoi(s.Source[strings.LastIndexByte(s.Source, ':')+1:])
		if err != nil || !slices.Contains(sections, section) {
			continue // a default is no line of a file
		}
		if at, known := first[section]; !known || line < at {
			first[section] = line
		}
	}
	var all []capability.Problem
	for _, section := range sections {
		if line, written := first[section]; written {
			all = append(all, capability.Problem{
				Severity: capability.SeverityWarning, Code: "config_misplaced", Path: path, Line: line,
				Message: fmt.Sprintf("%s has no effect in this file", section), Hint: hint,
			})
		}
	}
	return all
}
