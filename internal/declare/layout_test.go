package declare

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Of no root is anything opened that its layout does not name: no neighbour of a file that is read, no file that a skill
// brings along, nothing of a folder beside; and of a home nothing that runs or governs.
func TestNothingOutsideTheLayoutIsOpened(t *testing.T) {
	workspace, home := WorkspaceLayout(), HomeLayout()
	kit := Layout{
		Files:  []File{{"servers.json", []Format{FormatMCP}}, {"hooks/hooks.json", []Format{FormatHooks}}},
		Skills: []string{"skills"}, SkillFolders: []string{"one"}, Commands: []string{"commands"}, CommandFiles: []string{"more/c.md"}, Prefix: "kit:",
	}
	for root, l := range map[string]Layout{"workspace": workspace, "home": home, "plugin": kit} {
		t.Run(root, func(t *testing.T) {
			w := &watched{MapFS: dated(besieged(&l))}
			for _, secret := range []string{
				".env", ".ssh/id_rsa", ".aws/credentials", ".npmrc", ".git/config", ".git/hooks/pre-commit", ".claude.json", ".claude/.credentials.json",
				".codex/auth.json", ".gemini/oauth_creds.json", "node_modules/x/SKILL.md", "src/main.go", "learned.toml", "trust.json", "vak.lock",
			} {
				w.MapFS[secret] = files(secret, "CANARY")[secret]
			}
			if root != "workspace" { // what a workspace has, no other root is asked for
				for _, f := range workspace.Files {
					if !l.holds(f.Path) {
						w.MapFS[f.Path] = files(f.Path, "CANARY")[f.Path]
					}
				}
			}
			r := w.scan(t, NewScanner(Options{Layout: &l}), now)
			read := map[string]bool{}
			for _, name := range w.opened {
				if info, err := fs.Stat(w.MapFS, name); err == nil && info.IsDir() {
					continue // listed, at most
				}
				read[name] = true
				if !named(&l, name) || root == "home" && workspace.holds(name) {
					t.Errorf("%s was opened", name)
				}
			}
			for _, f := range l.Files {
				if !read[f.Path] {
					t.Errorf("%s was not read", f.Path)
				}
			}
			for _, folder := range l.Skills {
				if !read[folder+"/a/SKILL.md"] {
					t.Errorf("no skill of %s was read", folder)
				}
			}
			for _, p := range r.Problems {
				if strings.Contains(p.Message+p.Hint, "CANARY") {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// besieged has every place of a layout, and beside each what must not be opened.
func besieged(l *Layout) fstest.MapFS {
	var pairs []string
	add := func(name, text string) { pairs = append(pairs, name, text) }
	for _, f := range l.Files {
		text := "{}"
		if path.Ext(f.Path) == ".toml" {
			text = ""
		}
		add(f.Path, text+"\n")
		add(f.Path+".bak", "CANARY")
		add(path.Join(path.Dir(f.Path), "x-"+path.Base(f.Path)), "CANARY")
	}
	skills := slices.Clone(l.SkillFolders)
	for _, folder := range l.Skills {
		skills = append(skills, folder+"/a")
		add(folder+"/loose.json", "CANARY")
	}
	for _, folder := range skills {
		add(folder+"/SKILL.md", skillText)
		add(folder+"/scripts/run.sh", "CANARY")
		add(folder+"/.env", "CANARY")
	}
	for _, folder := range l.Commands {
		add(folder+"/c.md", "Do.\n")
		add(folder+"/c.sh", "CANARY")
		add(folder+"/.hidden.env", "CANARY")
	}
	for _, name := range l.CommandFiles {
		add(name, "Do.\n")
		add(path.Join(path.Dir(name), "beside.md"), "CANARY")
	}
	return files(pairs...)
}

// named reports whether a layout names a file.
func named(l *Layout, name string) bool {
	if l.holds(name) || slices.Contains(l.CommandFiles, name) {
		return true
	}
	if strings.EqualFold(path.Base(name), "SKILL.md") {
		folder := path.Dir(name)
		return slices.Contains(l.SkillFolders, folder) || slices.ContainsFunc(l.Skills, func(root string) bool { return strings.HasPrefix(folder, root+"/") })
	}
	return slices.Contains([]string{".md", ".toml"}, path.Ext(name)) &&
		slices.ContainsFunc(l.Commands, func(root string) bool { return strings.HasPrefix(name, root+"/") })
}
