package plugin

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/internal/declare"
)

// Layout says where package declare reads the parts of the plugin in fsys. A file is read in the dialect of the plugin's
// format.
func (m Manifest) Layout(fsys fs.FS) declare.Layout {
	var l declare.Layout
	for _, p := range m.Components.Skills {
		switch {
		case isFile(fsys, p):
			l.SkillFolders = union(l.SkillFolders, path.Dir(p)) // the manifest names the SKILL.md itself
		case isFile(fsys, path.Join(p, "SKILL.md")):
			l.SkillFolders = union(l.SkillFolders, p)
		default:
			l.Skills = union(l.Skills, p)
		}
	}
	// A folder of skills that is itself found in another one is not read twice.
	l.SkillFolders = slices.DeleteFunc(l.SkillFolders, func(p string) bool { return slices.Contains(l.Skills, path.Dir(p)) })
	for _, p := range m.Components.Commands {
		if isFile(fsys, p) {
			l.CommandFiles = union(l.CommandFiles, p)
		} else {
			l.Commands = union(l.Commands, p)
		}
	}
	l.CommandFiles = slices.DeleteFunc(l.CommandFiles, func(p string) bool {
		return slices.ContainsFunc(l.Commands, func(root string) bool { return strings.HasPrefix(p, root+"/") })
	})
	l.Files = m.files()
	return l
}

// files are those that declare several things, each once.
func (m Manifest) files() []declare.File {
	var all []declare.File
	add := func(name string, f declare.Format) {
		i := slices.IndexFunc(all, func(x declare.File) bool { return x.Path == name })
		switch {
		case i < 0:
			all = append(all, declare.File{Path: name, Formats: []declare.Format{f}})
		case !slices.Contains(all[i].Formats, f):
			all[i].Formats = append(all[i].Formats, f)
		}
	}
	c := m.Components
	for _, p := range c.Servers {
		add(p, declare.FormatMCP)
	}
	for _, p := range c.Hooks {
		add(p, declare.FormatHooks)
	}
	if c.InlineServers {
		add(m.Path, declare.FormatMCP)
	}
	if c.EntryServers {
		add(EntryName, declare.FormatMCP)
	}
	if c.InlineHooks {
		add(m.Path, declare.FormatHooks)
	}
	if c.EntryHooks {
		add(EntryName, declare.FormatHooks)
	}
	return all
}

func isFile(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.Mode().IsRegular()
}
