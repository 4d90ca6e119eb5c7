package builtin

import (
	"context"
	"io/fs"
	"path"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// skillFiles is how many files that came with a skill are named.
const skillFiles = 50

// The schema here refuses other fields; a turn offers it with the admitted names as an enum.
func skillOp(f *files) op.Op {
	run := func(ctx context.Context, c op.Call) (op.Result, error) {
		var args struct {
			Name string `json:"name"`
		}
		if err := op.Decode(c.Arguments, &args); err != nil {
			return op.Result{}, err
		}
		if args.Name == "" {
			return op.Result{}, vakerr.New(vakerr.InvalidArguments, "name is missing").WithRemedy("name a skill")
		}
		loaded, err := expand.Skill(c.Bound, args.Name)
		if err != nil {
			return op.Result{}, err
		}
		skill := loaded.Config.(*capability.Skill)
		if skill.DisableModelInvocation {
			return op.Result{}, expand.NotAdmitted(c.Bound, args.Name)
		}
		names, more := f.bundled(ctx, skill.BaseDir)
		return op.Text(expand.Wrap(loaded, expand.Facts{Session: c.Session, Project: f.workspace}, names, more)), nil
	}
	return op.Op{Run: run, Declaration: declaration("skill",
		"Loads a skill: instructions for a kind of task.",
		"Load the one that fits before you begin such a task, then follow it.",
		`{"type":"object","additionalProperties":false,"required":["name"],"properties":{
			"name":{"type":"string","minLength":1,"maxLength":200,"description":"The skill to load."}}}`,
		nil, capability.Tool{ReadOnly: true, Idempotent: true, AlwaysLoaded: true},
	)}
}

// Bundled returns what names the files in the folder of a skill of a workspace, as the skill tool does.
func Bundled(workspace string) func(ctx context.Context, folder string) (names []string, more bool) {
	f := &files{workspace: workspace}
	return f.bundled
}

// bundled names the files beside a skill, when it is loaded and not before. Their absence costs nothing but their names:
// the body is that of the set, whatever lies on disk.
func (f *files) bundled(ctx context.Context, base string) (names []string, more bool) {
	if base == "" || base == "." {
		return nil, false // a skill at the top of the workspace would list the workspace
	}
	root, rel, err := f.openSkill(base)
	if err != nil {
		return nil, false
	}
	defer root.Close()
	_, err = root.Walk(ctx, rel, func(p string, _ fs.DirEntry) error {
		if p == "SKILL.md" {
			return nil
		}
		if len(names) == skillFiles {
			more = true
			return rootfs.ErrStop
		}
		names = append(names, path.Join(base, p))
		return nil
	})
	if err != nil {
		return nil, false
	}
	return names, more
}

// openSkill opens the folder of a skill: one of the workspace through it, any other by itself, out of which no link leads.
func (f *files) openSkill(base string) (*rootfs.Root, string, error) {
	if !path.IsAbs(base) {
		return f.open(base)
	}
	root, err := rootfs.Open(base)
	return root, ".", err
}
