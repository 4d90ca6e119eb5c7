package plugin

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// located compares what a manifest names with what the folder holds.
type located struct {
	fsys     fs.FS
	m        *Manifest
	problems []capability.Problem
}

// unread are the folders of components that this program has no use for, by the name that formats give them.
var unread = []struct{ kind, place, ext string }{
	{"agents", "agents", ".md"},
	{"workflows", "workflows", ""},
	{"outputStyles", "output-styles", ".md"},
	{"lspServers", ".lsp.json", ""},
	{"monitors", "monitors/monitors.json", ""},
	{"rules", "rules", ".mdc"},
	{"policies", "policies", ".toml"},
	{"bin", "bin", ""},
	{"settings", "settings.json", ""},
}

// locate drops what is not there: silently a usual place, with a problem a named one.
func (l *located) locate() {
	usual := defaults(l.m.Format)
	c := &l.m.Components
	c.Skills = l.existing("skills", c.Skills, usual.Skills)
	c.Commands = l.existing("commands", c.Commands, usual.Commands)
	c.Hooks = l.existing("hooks", c.Hooks, usual.Hooks)
	c.Servers = l.existing("servers", c.Servers, usual.Servers)
	if len(c.Skills) == 0 && l.m.Format != FormatNative && l.isFile("SKILL.md") {
		c.Skills = []string{"."} // a plugin that is one skill
	}
	if l.m.Format == FormatAgentPlugins {
		l.agentServers()
	}
	if l.m.Format != FormatAgentPlugins {
		l.unsupported()
	}
}

// existing keeps the paths that exist, each real place once: a manifest that names what is found anyway loads it once.
func (l *located) existing(what string, paths, usual []string) []string {
	kept := []string{}
	for _, p := range paths {
		_, err := fs.Stat(l.fsys, p)
		switch {
		case err == nil:
			kept = union(kept, p)
		case !slices.Contains(usual, p):
			l.problem("plugin_missing", fmt.Sprintf("the manifest names %s for its %s, which is not there", quoted(p), what), "correct the path, or add the file")
		}
	}
	return kept
}

func (l *located) problem(code, message, hint string) {
	l.problems = append(l.problems, capability.Problem{
		Severity: capability.SeverityError, Code: code, Path: l.m.Path, Message: message, Hint: hint,
	})
}

func (l *located) isFile(name string) bool {
	info, err := fs.Stat(l.fsys, name)
	return err == nil && info.Mode().IsRegular()
}

func (l *located) agentServers() {
	for _, file := range l.m.Components.Servers {
		text, err := readFile(l.fsys, file)
		if err != nil {
			continue // whoever reads the servers says so
		}
		refused, all, problems := agentServers(file, text)
		l.m.Refused = refused
		l.problems = append(l.problems, problems...)
		if all {
			l.m.Components.Servers = nil
		}
	}
}

// unsupported lists what lies at the usual places of components that are not read.
func (l *located) unsupported() {
	for _, u := range unread {
		info, err := fs.Stat(l.fsys, u.place)
		if err != nil {
			continue
		}
		found := Unsupported{Kind: u.kind, Names: []string{u.place}}
		if info.IsDir() {
			found.Names = l.files(u.place, u.ext)
		}
		i := slices.IndexFunc(l.m.Unsupported, func(x Unsupported) bool { return x.Kind == u.kind })
		if i < 0 {
			l.m.Unsupported = append(l.m.Unsupported, found)
			continue
		}
		l.m.Unsupported[i].Names = found.Names
	}
	for i, u := range l.m.Unsupported {
		l.m.Unsupported[i].Names = l.expand(u)
	}
}

// expand lists the files of folders that a manifest names.
func (l *located) expand(u Unsupported) []string {
	var all []string
	for _, name := range u.Names {
		if info, err := fs.Stat(l.fsys, name); fs.ValidPath(name) && err == nil && info.IsDir() && u.Kind == "agents" {
			all = union(all, l.files(name, ".md")...)
		} else {
			all = union(all, name)
		}
	}
	return all
}

// maxListed bounds how many files of a folder are named.
const maxListed = 200

func (l *located) files(folder, ext string) []string {
	var all []string
	_ = fs.WalkDir(l.fsys, folder, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || len(all) == maxListed:
			return fs.SkipDir
		case e.Type().IsRegular() && strings.HasSuffix(p, ext) && !strings.EqualFold(path.Base(p), "README.md"):
			all = append(all, p)
		}
		return nil
	})
	return all
}
