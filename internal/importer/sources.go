package importer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxSource bounds a file of another program, in bytes; some keep their history beside their settings.
const maxSource = 64 << 20

// place is a user-level file of a client: where it lies in the home folder, and the path by which its dialect is known.
type place struct{ file, dialect string }

var clients = map[string][]place{
	"claude": {{".claude.json", ".claude.json"}},
	"claude-desktop": {
		{".config/Claude/claude_desktop_config.json", "claude_desktop_config.json"},
		{"Library/Application Support/Claude/claude_desktop_config.json", "claude_desktop_config.json"},
	},
	"cursor": {{".cursor/mcp.json", ".cursor/mcp.json"}},
	"vscode": {
		{".config/Code/User/mcp.json", ".vscode/mcp.json"},
		{".config/Code/User/settings.json", ".vscode/settings.json"},
		{"Library/Application Support/Code/User/mcp.json", ".vscode/mcp.json"},
		{"Library/Application Support/Code/User/settings.json", ".vscode/settings.json"},
	},
	"codex":  {{".codex/config.toml", ".codex/config.toml"}},
	"gemini": {{".gemini/settings.json", ".gemini/settings.json"}},
}

// Clients are the programs whose files can be brought in.
func Clients() []string {
	return []string{"claude", "claude-desktop", "cursor", "vscode", "codex", "gemini"}
}

// found is a server with the file it stands in.
type found struct {
	declare.MCPServer
	from string
}

// read collects what the files of a client declare; of a name that two declare the first counts.
func (p *Plan) read(r Request) ([]found, error) {
	places, known := clients[r.Client]
	if !known {
		return nil, vakerr.New(vakerr.InvalidRequest, "no client is called %.40q", r.Client).
			WithRemedy("name one of claude, claude-desktop, cursor, vscode, codex, gemini")
	}
	var all []found
	for _, at := range places {
		shown := "~/" + at.file
		text, err := rootfs.ReadFile(filepath.Join(r.Home, filepath.FromSlash(at.file)), maxSource)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, vakerr.New(vakerr.FileNotFound, "%s cannot be read", shown).WithRemedy("see that it is a readable file").WithCause(err)
		}
		p.Sources = append(p.Sources, shown)
		scopes := [][]string{nil}
		if r.Client == "claude" { // what is kept for this workspace alone counts before what is kept for the user
			scopes = [][]string{{"projects", r.Workspace}, nil}
		}
		for _, scope := range scopes {
			file := declare.ReadMCP(at.dialect, text, scope...)
			for _, problem := range file.Problems {
				if problem.Path = shown; !slices.Contains(p.Problems, problem) {
					p.Problems = append(p.Problems, problem)
				}
			}
			for _, s := range file.Servers {
				if !slices.ContainsFunc(all, func(f found) bool { return f.ID == s.ID }) {
					all = append(all, found{s, shown})
				}
			}
		}
	}
	if r.Client == "claude" {
		p.allowed(r.Home)
	}
	return all, nil
}

// allowed shows the allow rules of the user's settings.
func (p *Plan) allowed(home string) {
	const shown = ".claude/settings.json"
	text, err := rootfs.ReadFile(filepath.Join(home, filepath.FromSlash(shown)), maxSource)
	if err != nil {
		return
	}
	var settings struct {
		Permissions struct {
			Allow []string `json:"allow"`
		} `json:"permissions"`
	}
	if json.Unmarshal(text, &settings) != nil {
		p.Problems = append(p.Problems, capability.Problem{
			Severity: capability.SeverityWarning, Code: "mcp_syntax", Path: "~/" + shown,
			Message: "the settings cannot be read; their allow rules are not shown", Hint: "repair the file",
		})
		return
	}
	p.Proposals = append(p.Proposals, settings.Permissions.Allow...)
}
