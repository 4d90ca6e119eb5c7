package turn

import (
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// buildSkillTool is the skill tool as this turn offers it: its schema names exactly the admitted skills and refuses
// every other field. Nil when the tool is not admitted or there is no skill to load; a schema that nothing satisfies
// would only mislead.
func (a *Admitted) buildSkillTool() *capability.Tool {
	c, ok := a.Tool(policy.SkillTool)
	skills := a.SkillNames()
	if !ok || len(skills) == 0 {
		return nil
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			"name": map[string]any{"type": "string", "enum": skills, "description": "The skill to load."},
		},
		"required":             []string{"name"},
		"additionalProperties": false,
	})
	if err != nil {
		panic("turn: a schema of strings cannot fail to encode: " + err.Error())
	}
	tool := *c.Config.(*capability.Tool)
	tool.InputSchema = schema
	return &tool
}

// Definition is the tool as it is offered in this turn, with the schema its input is checked against; nil for a tool
// that is not offered.
func (a *Admitted) Definition(name string) *capability.Tool {
	if name == policy.SkillTool {
		return a.skillTool
	}
	c, ok := a.Tool(name)
	if !ok {
		return nil
	}
	return c.Config.(*capability.Tool)
}
