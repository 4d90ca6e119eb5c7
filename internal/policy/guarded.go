package policy

import (
	"path"
	"slices"
	"strings"
)

// guardedFiles govern what an agent may do, or run outside of its tools: each stands for itself and what lies below it.
// By mode they are never written without a question; a rule may say otherwise. Lower case.
var guardedFiles = []string{"vak.toml", ".vak", ".mcp.json", ".claude", ".cursor", ".vscode", ".codex", ".gemini"}

// guardedFolder is guarded wherever it lies: what is in it runs when people use their tools.
const guardedFolder = ".git"

// Guarding returns an engine that also guards these files, paths relative to the workspace: the programs of hooks.
func (e *Engine) Guarding(files []string) *Engine {
	g := *e
	g.guarded = nil
	for _, f := range files {
		g.guarded = append(g.guarded, strings.ToLower(path.Clean(f)))
	}
	return &g
}

// guards compares without case: some file systems do.
func (e *Engine) guards(subject string) bool {
	clean := strings.ToLower(path.Clean(subject))
	below := func(f string) bool { return clean == f || strings.HasPrefix(clean, f+"/") }
	return slices.ContainsFunc(guardedFiles, below) || slices.ContainsFunc(e.guarded, below) ||
		slices.Contains(strings.Split(clean, "/"), guardedFolder)
}
