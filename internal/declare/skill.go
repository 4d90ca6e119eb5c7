package declare

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

var skillNamePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

const maxSkillName = 64 // characters

// readSkill reads a SKILL.md. Loading is lenient about style and strict about meaning: a name that differs from its
// folder is a warning, metadata that cannot be read is an error.
func readSkill(file string, raw []byte) *product {
	r := &reporter{path: file}
	text, f := normalise(raw)
	if f == nil && len(bytes.TrimSpace(text)) == 0 {
		f = &fault{"file_empty", 0, "the file is empty", "write name, description and a body, or remove the folder"}
	}
	var doc document
	if f == nil {
		doc, f = split(text)
	}
	if f == nil && doc.front == nil {
		if f = misplaced(doc.body); f == nil {
			f = &fault{"frontmatter_missing", 1, "the skill has no metadata", "begin the file with ---, name: and description: lines, and ---"}
		}
	}
	if f != nil {
		r.fault(f)
		return r.failedWith(restrictions(text))
	}
	m, ok := r.readMetadata(doc.front)
	if ok {
		if p := r.skill(file, m, doc); p != nil {
			p.restricting = restrictions(doc.front)
			return p
		}
	}
	return r.failedWith(restrictions(doc.front))
}

// skill reads what the metadata says; nil, and a problem, where that is not enough for a skill.
func (r *reporter) skill(file string, m metadata, doc document) *product {
	folder := path.Dir(file)
	name, ok := r.skillName(m, path.Base(folder))
	if !ok {
		return nil
	}
	skill := &capability.Skill{
		Body: doc.body, BaseDir: folder, Description: r.description(m), Metadata: r.extra(m), License: r.plainText(m, "license"),
		Compatibility: r.plainText(m, "compatibility"), WhenToUse: r.plainText(m, "when_to_use"), Paths: r.globs(m),
	}
	if skill.Description == "" {
		if skill.Description = firstParagraph(doc.body); skill.Description == "" {
			r.error("skill_description", 1, "the skill has neither a description nor a body", "add a description: line")
			return nil
		}
		r.warn("skill_description", 1, "the skill has no description; its first paragraph stands in", "add a description: line that says when to use it")
	}
	if skill.Invocation, ok = r.invocation(m); !ok {
		return nil
	}
	d := capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: name}, Summary: summary(skill.Description),
		Serves: r.serves(m, skill.Metadata), Digest: capability.ContentDigest(doc.body), Source: file, Config: skill,
	}
	return &product{declarations: []capability.Declaration{d}, problems: r.problems}
}

// skillName reads the name, or takes the folder's.
func (r *reporter) skillName(m metadata, folder string) (string, bool) {
	name, line, ok := m.text("name")
	switch {
	case !ok:
		r.error("skill_name", line, "the name is no text", "write it as name: "+folder)
		return "", false
	case name == "":
		name, line = folder, 1
		r.warn("skill_name_missing", line, "the skill has no name; its folder's stands in", "add the line name: "+folder)
	case name != folder:
		r.warn("skill_name_mismatch", line, fmt.Sprintf("the name %s differs from the folder %s", quoted(name), quoted(folder)),
			"give both the same name; other programs refuse the skill")
	}
	if err := checkSkillName(name); err != nil {
		r.error("skill_name", line, fmt.Sprintf("the name %s cannot be used: %v", quoted(name), err), "use lower-case letters, digits and single hyphens")
		return "", false
	}
	if n := len([]rune(name)); n > maxSkillName || !skillNamePattern.MatchString(name) {
		r.warn("skill_name_style", line, fmt.Sprintf("the name %s is no 1 to %d lower-case letters, digits and single hyphens", quoted(name), maxSkillName),
			"rename it; other programs refuse the skill")
	}
	return name, true
}

// firstParagraph is the first text of a body that is no heading, on one line.
func firstParagraph(body []byte) string {
	var text []string
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" && len(text) > 0:
			return strings.Join(text, " ")
		case line == "" || strings.HasPrefix(line, "#"):
		default:
			text = append(text, line)
		}
	}
	return strings.Join(text, " ")
}
