package declare

import (
	"path"
	"slices"

	"github.com/vak-actors/vak-actors/capability"
)

// Layout says which files and folders of a root are read, each list in order of precedence. Nothing else is opened.
type Layout struct {
	Files []File // files that declare several capabilities

	Skills       []string // folders whose folders are skills
	SkillFolders []string // folders that are one skill each; "." is the root itself
	Commands     []string // folders with commands, at any depth
	CommandFiles []string // files that are one command each

	Prefix string // before every name, such as "plugin:"; empty: none
}

// File is a file that declares several capabilities. Where Formats has several they share it: each reads its part.
type File struct {
	Path    string
	Formats []Format
}

// Format says what of a file is read, and how.
type Format string

// The formats.
const (
	FormatVAK   Format = "vak.toml" // all that this program's own file declares
	FormatLayer Format = "layer"    // the same file as a layer below it: servers, hooks, and what narrows
	FormatMCP   Format = "mcp"      // MCP servers, as the program reads them that the path belongs to
	FormatHooks Format = "hooks"    // hooks, likewise
	FormatRules Format = "rules"    // permissions of Claude Code
)

// readers has one row a format. A reader returns what the file declares and what is wrong with it; a product that is
// broken leaves an earlier version of the file in force.
var readers = map[Format]func(file string, text []byte) *product{
	FormatVAK:   readConfig,
	FormatLayer: readLayer,
	FormatMCP:   readMCP,
	FormatHooks: readHooks,
	FormatRules: readRules,
}

const configFile = "vak.toml"

// WorkspaceLayout is what is read of a workspace, and of a folder that is laid out as one.
func WorkspaceLayout() Layout {
	return Layout{
		Files: []File{
			{configFile, []Format{FormatVAK}},
			{".vak/config.toml", []Format{FormatLayer}},
			{".mcp.json", []Format{FormatMCP}},
			{".claude/settings.json", []Format{FormatHooks, FormatRules}},
			{".claude/settings.local.json", []Format{FormatHooks, FormatRules}},
			{".cursor/hooks.json", []Format{FormatHooks}},
			{".codex/hooks.json", []Format{FormatHooks}},
			{".cursor/mcp.json", []Format{FormatMCP}},
			{".vscode/mcp.json", []Format{FormatMCP}},
			{".codex/config.toml", []Format{FormatMCP, FormatHooks}},
			{".gemini/settings.json", []Format{FormatMCP, FormatHooks}},
		},
		Skills: []string{
			"skills", ".agents/skills", ".claude/skills", ".cursor/skills", ".github/skills", ".codex/skills", ".gemini/skills",
		},
		Commands: []string{"commands", ".claude/commands", ".cursor/commands", ".github/prompts", ".gemini/commands"},
	}
}

// HomeLayout is what is read of a user's home folder: texts of other programs, and nothing that runs or governs.
func HomeLayout() Layout {
	return Layout{Skills: []string{".agents/skills", ".claude/skills"}, Commands: []string{".claude/commands"}}
}

// read parses a file in each of its formats. What several of them say of it is said once.
func (f File) read(name string, text []byte) *product {
	all := &product{}
	said := map[capability.Problem]bool{}
	for _, format := range f.Formats {
		p := readers[format](name, text)
		all.declarations = append(all.declarations, p.declarations...)
		all.permissions = append(all.permissions, p.permissions...)
		for _, problem := range p.problems {
			if !said[problem] {
				said[problem] = true
				all.problems = append(all.problems, problem)
			}
		}
		all.broken = all.broken || p.broken
		all.off = append(all.off, p.off...)
		if p.config != nil {
			all.config = p.config
		}
		if p.layer != nil {
			all.layer = p.layer
		}
	}
	return all
}

// governs reports whether a file may hold rules.
func (l *Layout) governs(name string) bool {
	return slices.ContainsFunc(l.Files, func(f File) bool {
		return f.Path == name && slices.ContainsFunc(f.Formats, func(format Format) bool {
			return format == FormatVAK || format == FormatLayer || format == FormatRules
		})
	})
}

// holds reports whether a file is read.
func (l *Layout) holds(name string) bool {
	return slices.ContainsFunc(l.Files, func(f File) bool { return f.Path == name })
}

// places lists the folders in which something that is read stands or may appear.
func (l *Layout) places() []string {
	all := slices.Concat(l.Skills, l.SkillFolders, l.Commands)
	for _, f := range l.Files {
		all = append(all, path.Dir(f.Path))
	}
	for _, name := range l.CommandFiles {
		all = append(all, path.Dir(name))
	}
	return all
}
