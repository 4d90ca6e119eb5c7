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
		return r.failed()
	}
	m, ok := r.readMetadata(doc.front)
	if !ok {
		return r.failed()
	}
	return r.skill(file, m, doc)
}

func (r *reporter) skill(file string, m metadata, doc document) *product {
	folder := path.Dir(file)
	name, ok := r.skillName(m, path.Base(folder))
	if !ok {
		return r.failed()
	}
	skill := &capability.Skill{Body: doc.body, BaseDir: folder, Description: r.description(m), Metadata: r.extra(m)}
	if skill.Description == "" {
		if skill.Description = firstParagraph(doc.body); skill.Description == "" {
			r.error("skill_description", 1, "the skill has neither a description nor a body", "add a description: line")
			return r.failed()
		}
		r.warn("skill_description", 1, "the skill has no description; its first paragraph stands in", "add a description: line that says when to use it")
	}
	skill.License, _, _ = m.text("license")
	if skill.AllowedTools, ok = r.allowedTools(m); !ok {
		return r.failed()
	}
	if f, written := m.get("disable-model-invocation"); written {
		if skill.DisableModelInvocation, ok = truth(f.value); !ok {
			skill.DisableModelInvocation = true
			r.warn("frontmatter_type", f.line, "disable-model-invocation is neither true nor false and counts as true", "write true or false")
		}
	}
	d := capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: name}, Origin: workspace, Summary: summary(skill.Description),
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
	if err := checkName(name); err != nil {
		r.error("skill_name", line, fmt.Sprintf("the name %s cannot be used: %v", quoted(name), err), "use lower-case letters, digits and single hyphens")
		return "", false
	}
	if n := len([]rune(name)); n > maxSkillName || !skillNamePattern.MatchString(name) {
		r.warn("skill_name_style", line, fmt.Sprintf("the name %s is no 1 to %d lower-case letters, digits and single hyphens", quoted(name), maxSkillName),
			"rename it; other programs refuse the skill")
	}
	return name, true
}

// allowedTools reads the list. It never grants anything; but a list that cannot be read must not count as none.
func (r *reporter) allowedTools(m metadata) ([]string, bool) {
	f, written := m.get("allowed-tools")
	if !written {
		if f, written = m.get("allowed_tools"); !written {
			return nil, true
		}
		r.warn("frontmatter_key", f.line, "allowed_tools was read as allowed-tools", "write allowed-tools")
	}
	list, ok := words(f.value)
	if !ok {
		r.error("frontmatter_type", f.line, "allowed-tools is no list of tools", "write it as allowed-tools: Read Grep Bash(git:*)")
	}
	return list, ok
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
