// Package expand turns what a user typed into what the model gets: /name args becomes the body of an admitted command, and
// /skill:name args an admitted skill. The host does it before a model is called; a model never sees a command.
//
// It is pure. What is not admitted in the bound epoch is not expanded: slash text that names no admitted command passes
// unchanged, since it may be a path or a joke, while /skill: names a skill beyond doubt and fails with an error. Bodies are
// only used after their digest was checked. Expansion is one pass: nothing in the arguments is expanded again.
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

var slash = regexp.MustCompile(`^/([A-Za-z0-9_:.-]+)(?:\s+(?s:(.*)))?$`)

const skillPrefix = "skill:"

// Expand returns the text for the model, and the capability it came from; the zero ID when text passed unchanged. Errors
// are capability_not_admitted for an unknown skill, those of Skill, and too_large.
func Expand(b op.Bound, text string) (string, capability.ID, error) {
	parts := slash.FindStringSubmatch(text)
	if parts == nil {
		return text, capability.ID{}, nil
	}
	name, arguments := parts[1], strings.TrimSpace(parts[2])
	if skill, ok := strings.CutPrefix(name, skillPrefix); ok && skill != "" {
		return expandSkill(b, skill, arguments)
	}
	c, ok := b.Command(name)
	if !ok || !c.Usable() {
		return text, capability.ID{}, nil
	}
	command, ok := c.Config.(*capability.Command)
	if !ok {
		return "", c.ID, invalid(c.ID, "it is no command")
	}
	if err := checkBody(c, command.Body); err != nil {
		return "", c.ID, err
	}
	out, err := substitute(string(command.Body), arguments)
	if err != nil {
		return "", c.ID, vakerr.New(vakerr.TooLarge, "%s with these arguments has more than %d bytes", c.ID, MaxBytes).
			WithRemedy("give shorter arguments")
	}
	return out, c.ID, nil
}

func expandSkill(b op.Bound, name, arguments string) (string, capability.ID, error) {
	c, err := Skill(b, name)
	if err != nil {
		return "", capability.ID{Kind: capability.KindSkill, Name: name}, err
	}
	return withArguments(Wrap(c, nil, false), arguments), c.ID, nil
}

func withArguments(text, arguments string) string {
	if arguments == "" {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n\nARGUMENTS: " + arguments
}
