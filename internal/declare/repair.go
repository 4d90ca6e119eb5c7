package declare

import (
	"io/fs"
	"path"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// Repair is a change of a workspace that needs no judgement: what was meant is beyond doubt, and nothing is lost.
type Repair struct {
	Path    string // relative to the workspace
	To      string // its new name; empty: it is made executable
	Because string // one sentence, lower case, no full stop
}

// Repairs lists what can be mended mechanically in the workspace that was read: skill.md becomes SKILL.md, and the program
// of a hook executable.
func Repairs(fsys fs.FS, r Result) []Repair {
	var all []Repair
	for _, d := range r.Declarations {
		if d.Origin.Kind != capability.OriginWorkspace {
			continue
		}
		switch c := d.Config.(type) {
		case *capability.Skill:
			if path.Base(d.Source) == "skill.md" {
				all = append(all, Repair{d.Source, path.Join(path.Dir(d.Source), "SKILL.md"), "other programs do not read skill.md"})
			}
		case *capability.Hook:
			if program, is := programOf(fsys, c); is {
				all = append(all, Repair{Path: program, Because: "the hook " + d.ID.Name + " runs it and it was not executable"})
			}
		}
	}
	return all
}

// programOf is the file of the workspace that a hook runs and that cannot be run.
func programOf(fsys fs.FS, h *capability.Hook) (string, bool) {
	words := strings.Fields(h.Command)
	if len(words) == 0 || path.IsAbs(words[0]) || !strings.Contains(words[0], "/") {
		return "", false
	}
	program := path.Clean(words[0])
	info, err := fs.Stat(fsys, program)
	return program, err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0
}
