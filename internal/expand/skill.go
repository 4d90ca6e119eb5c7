package expand

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Skill returns an admitted skill whose body may be shown: it is usable and its body is the one that was admitted. Errors
// are capability_not_admitted, capability_unavailable, capability_stale and capability_invalid.
func Skill(b op.Bound, name string) (*capability.Capability, error) {
	c, ok := b.Skill(name)
	if !ok {
		if p, broken := b.Broken(capability.ID{Kind: capability.KindSkill, Name: name}); broken {
			return nil, op.Broken(capability.ID{Kind: capability.KindSkill, Name: name}, p)
		}
		if several := b.Ambiguous(capability.ID{Kind: capability.KindSkill, Name: name}); several != nil {
			return nil, op.Ambiguous(capability.ID{Kind: capability.KindSkill, Name: name}, several)
		}
		return nil, NotAdmitted(b, name)
	}
	if !c.Usable() {
		return nil, vakerr.New(vakerr.CapabilityUnavailable, "%s cannot be used: %s", c.ID, c.Resolution.Reason).
			WithRemedy("do without it, and say so")
	}
	skill, ok := c.Config.(*capability.Skill)
	if !ok {
		return nil, invalid(c.ID, "it is no skill")
	}
	if err := checkBody(c, skill.Body); err != nil {
		return nil, err
	}
	return c, nil
}

// NotAdmitted is the error for a skill that this turn does not have. It names those that a model may load.
func NotAdmitted(b op.Bound, name string) error {
	err := vakerr.New(vakerr.CapabilityNotAdmitted, "skill:%s is not admitted in this turn", phrase.Cut(name, 64))
	if names := b.SkillNames(); len(names) > 0 {
		return err.WithRemedy("load one of %s", phrase.List(names, 40))
	}
	return err.WithRemedy("there are no skills to load")
}

func checkBody(c *capability.Capability, body []byte) error {
	switch {
	case capability.ContentDigest(body) != c.Digest:
		return vakerr.New(vakerr.CapabilityStale, "the text of %s is not the one that was admitted", c.ID).
			WithRemedy("try again in the next turn")
	case len(strings.TrimSpace(string(body))) == 0:
		return invalid(c.ID, "its text is empty")
	case !utf8.Valid(body):
		return invalid(c.ID, "its text is not UTF-8")
	}
	return nil
}

func invalid(id capability.ID, why string) error {
	return vakerr.New(vakerr.CapabilityInvalid, "%s cannot be loaded: %s", id, why).
		WithRemedy("an operator must repair it")
}

// Wrap is a skill as it is shown when a model loads it: its body within its name, location, provenance and base directory,
// then the names of the files that came with it. more says that there are others. The body is that of the bound epoch,
// whatever lies on disk by now. Placeholders for facts are replaced; a model gives no arguments, and commands are left for
// it to run.
func Wrap(c *capability.Capability, f Facts, files []string, more bool) string {
	skill := c.Config.(*capability.Skill)
	w := newWriter(skill.Invocation, "", f)
	w.skillDir = absolute(f.Project, skill.BaseDir)
	var b strings.Builder
	b.WriteString(head(c))
	b.WriteString(w.known(strings.Trim(string(skill.Body), "\n")) + FileList(files, more) + "\n</skill>")
	return b.String()
}

// FileList names the files that came with a skill; empty where there are none.
func FileList(files []string, more bool) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nFiles of this skill, to be read when they are needed:")
	for _, f := range files {
		b.WriteString("\n- " + strings.ReplaceAll(f, "\n", " "))
	}
	if more {
		b.WriteString("\n- …")
	}
	return b.String()
}

// head says what skill follows.
func head(c *capability.Capability) string {
	base := c.Config.(*capability.Skill).BaseDir
	if base == "" && c.Source != "" {
		base = path.Dir(c.Source)
	}
	var b strings.Builder
	b.WriteString("<skill")
	for _, a := range [][2]string{
		{"name", c.ID.Name}, {"location", c.Source}, {"provenance", c.Origin.Label()}, {"base_directory", base},
	} {
		b.WriteString(" " + a[0] + `="` + attribute.Replace(a[1]) + `"`)
	}
	b.WriteString(">\n")
	return b.String()
}

var attribute = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ")
