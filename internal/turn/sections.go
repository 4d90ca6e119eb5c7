package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
)

// Sections of the prompt. Each is a function of what was admitted, so its text only changes with it, and each is empty
// where there is nothing to say. What the model must do without is capability.Report.Standing with Admitted.Shows.

// maxDeltaNames bounds how many names one part of a delta lists.
const maxDeltaNames = 50

// DeltaText tells a model once what changed between two epochs. Pass the delta through Delta.Only(Admitted.Shows)
// first. Hooks are left out: a model neither sees nor calls them.
func DeltaText(d capability.Delta) string {
	var lines []string
	add := func(lead string, ids []capability.ID) {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id capability.ID) bool { return id.Kind == capability.KindHook })
		if len(ids) == 0 {
			return
		}
		more := ""
		if n := len(ids) - maxDeltaNames; n > 0 {
			ids, more = ids[:maxDeltaNames], fmt.Sprintf(" and %d more", n)
		}
		all := make([]string, len(ids))
		for i, id := range ids {
			all[i] = id.String()
		}
		lines = append(lines, "- "+lead+": "+strings.Join(all, ", ")+more)
	}
	add("new", d.Added)
	add("changed", d.Updated)
	add("no longer there", d.Removed)
	if len(lines) == 0 {
		return ""
	}
	return "Since the last turn your capabilities have changed:\n" + strings.Join(lines, "\n")
}

// maxServerTools bounds how many tool names one server's line lists; the mcp tool lists all.
const maxServerTools = 100

// ServerSection names each server with the tools it was last seen to have, or only its name before its first use.
func ServerSection(a *Admitted) string {
	var b strings.Builder
	for _, server := range a.ServerNames() {
		b.WriteString("\n- " + server)
		for i, t := range a.ServerTools(server) {
			switch {
			case i == 0:
				b.WriteString(": " + t.Name)
			case i == maxServerTools:
				fmt.Fprintf(&b, " and %d more", len(a.ServerTools(server))-i)
			case i < maxServerTools:
				b.WriteString(", " + t.Name)
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "MCP servers. Call their tools with mcp; one without tools has not been used yet, list it first:" + b.String()
}

// maxSkillText bounds what a list says of one skill, in characters: the bound that authors of skills write for.
const maxSkillText = 1536

// listed is what a list says of a skill: what it does and when to use it, on one line.
func listed(s *capability.Skill) string {
	text := []rune(strings.Join(strings.Fields(s.Description+" "+s.WhenToUse), " "))
	if len(text) > maxSkillText {
		return string(text[:maxSkillText-1]) + "…"
	}
	return string(text)
}

// SkillSection lists the skills a model may load, by name and description. No body is ever put into a prompt.
func SkillSection(a *Admitted) string {
	var b strings.Builder
	for _, name := range a.SkillNames() {
		c, _ := a.Skill(name)
		b.WriteString("\n- " + name + ": " + listed(c.Config.(*capability.Skill)))
	}
	if b.Len() == 0 {
		return ""
	}
	return "Skills. Load one with skill before you do what it describes:" + b.String()
}
