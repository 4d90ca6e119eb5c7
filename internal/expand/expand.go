// Package expand turns what a user typed into what the model gets: /name args becomes the body of an admitted skill or
// command, and /skill:name args an admitted skill beyond doubt. The host does it before a model is called; a model never
// sees a command.
//
// It is pure: it plans. A Plan is the prompt in parts, of which some are files to be read and commands to be run by whoever
// performs it, under the rules in force; Text puts it together. What is not admitted in the bound epoch is not expanded:
// slash text that names nothing admitted passes unchanged, since it may be a path or a joke, while /skill: fails with an
// error. Bodies are only used after their digest was checked.
//
// A body is cut into parts before any argument is put in, and what was put in is never looked at again: no argument and no
// output can make a placeholder, a file or a command.
package expand

import (
	"regexp"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// MaxBytes bounds an expansion: a body may name its arguments many times.
const MaxBytes = 4 << 20

// Bounds of what one plan may ask for.
const (
	maxFiles    = 64
	maxCommands = 32
)

var slash = regexp.MustCompile(`^/(\S+)(?:\s+(?s:(.*)))?$`)

const skillPrefix = "skill:"

// Facts are what placeholders may name besides arguments.
type Facts struct {
	Session string
	Project string // absolute path of the workspace
}

// Plan is a prompt in parts.
type Plan struct {
	ID         capability.ID // what it is made from; zero: the text passes unchanged
	Invocation capability.Invocation
	Parts      []Part
}

// Kind is what a part is.
type Kind uint8

// The kinds of part.
const (
	Text    Kind = iota // Text as it stands
	File                // a file: its content stands in the place of the part
	Mention             // a file that the text speaks of: Text stays, its content follows the prompt
	Command             // a command line for the shell: its output stands in the place of the part
	Listing             // a folder: what FileList says of it stands in the place of the part
)

// Part is one piece of a prompt.
type Part struct {
	Kind Kind
	Text string // of a Text or Mention: what is shown; of a Command: the line
	Path string // of a File or Mention: as written, with arguments put in; of a Listing: the folder
}

// New plans the expansion of a prompt. Errors are capability_not_admitted for an unknown skill, those of Skill, and
// too_large.
func New(b op.Bound, text string, f Facts) (Plan, error) {
	found := slash.FindStringSubmatch(text)
	if found == nil {
		return unchanged(text), nil
	}
	name, arguments := found[1], strings.TrimSpace(found[2])
	if skill, ok := strings.CutPrefix(name, skillPrefix); ok && skill != "" {
		c, err := Skill(b, skill)
		if err == nil && c.Config.(*capability.Skill).DisableUserInvocation {
			err = vakerr.New(vakerr.CapabilityNotAdmitted, "%s is not for users: its file says user-invocable: false", c.ID).
				WithRemedy("let the model load it, or change the file")
		}
		if err != nil {
			return Plan{ID: capability.ID{Kind: capability.KindSkill, Name: skill}}, err
		}
		return planSkill(c, arguments, f)
	}
	// A skill beats a command of its name.
	if c, ok := b.Skill(name); ok && c.Usable() && !c.Config.(*capability.Skill).DisableUserInvocation && !ownCommand(b, c, name) {
		if c, err := Skill(b, name); err != nil {
			return Plan{ID: c.ID}, err
		}
		return planSkill(c, arguments, f)
	}
	c, ok := b.Command(name)
	if !ok || !c.Usable() {
		for _, kind := range []capability.Kind{capability.KindSkill, capability.KindCommand} {
			id := capability.ID{Kind: kind, Name: name}
			if p, broken := b.Broken(id); broken && !ok {
				return Plan{ID: id}, op.Broken(id, p)
			}
			if several := b.Ambiguous(id); several != nil {
				return Plan{ID: id}, op.Ambiguous(id, several)
			}
		}
		return unchanged(text), nil
	}
	return planCommand(c, text, arguments, f)
}

// ownCommand reports whether a command has the name itself, while the skill only has it within a plugin.
func ownCommand(b op.Bound, skill *capability.Capability, name string) bool {
	command, ok := b.Command(name)
	return ok && command.ID.Name == name && skill.ID.Name != name
}

func unchanged(text string) Plan { return Plan{Parts: []Part{{Text: text}}} }

func planCommand(c *capability.Capability, text, arguments string, f Facts) (Plan, error) {
	plan := Plan{ID: c.ID}
	command, ok := c.Config.(*capability.Command)
	if !ok {
		return plan, invalid(c.ID, "it is no command")
	}
	if command.DisableUserInvocation {
		return unchanged(text), nil
	}
	if err := checkBody(c, command.Body); err != nil {
		return plan, err
	}
	w := newWriter(command.Invocation, arguments, f)
	if command.Dialect == capability.DialectGemini {
		w.typed = text
		w.gemini(string(command.Body))
	} else {
		w.markdown(string(command.Body))
	}
	w.appendArguments()
	return w.plan(c.ID)
}

func planSkill(c *capability.Capability, arguments string, f Facts) (Plan, error) {
	skill := c.Config.(*capability.Skill)
	w := newWriter(skill.Invocation, arguments, f)
	w.skillDir = absolute(f.Project, skill.BaseDir)
	w.text(head(c))
	w.markdown(strings.Trim(string(skill.Body), "\n"))
	if skill.BaseDir != "" && skill.BaseDir != "." { // a skill at the top of a workspace would list the workspace
		w.add(Part{Kind: Listing, Path: skill.BaseDir})
	}
	w.text("\n</skill>")
	w.appendArguments()
	return w.plan(c.ID)
}

// Pure reports whether a plan has nothing to be read or run.
func (p Plan) Pure() bool {
	for _, part := range p.Parts {
		if part.Kind != Text {
			return false
		}
	}
	return true
}

// Join puts a plan together. results holds one text for each part that is no Text, in order; of a Mention an empty one
// says that there is nothing to be added. The error is too_large.
func (p Plan) Join(results []string) (string, error) {
	var out, after strings.Builder
	for _, part := range p.Parts {
		if part.Kind == Text {
			out.WriteString(part.Text)
			continue
		}
		result := results[0]
		results = results[1:]
		if part.Kind != Mention {
			out.WriteString(result)
			continue
		}
		out.WriteString(part.Text)
		if result != "" {
			after.WriteString("\n\n" + result)
		}
	}
	if out.Len()+after.Len() > MaxBytes {
		return "", tooLarge(p.ID)
	}
	if after.Len() == 0 {
		return out.String(), nil
	}
	return strings.TrimRight(out.String(), "\n") + after.String(), nil
}

func tooLarge(id capability.ID) error {
	return vakerr.New(vakerr.TooLarge, "%s with these arguments has more than %d bytes", id, MaxBytes).WithRemedy("give shorter arguments")
}
