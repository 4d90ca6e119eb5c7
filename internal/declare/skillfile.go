package declare

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// SkillFile takes a SKILL.md apart as the readers do: its frontmatter as the file has it, and its body. It is for those who
// show a skill; what a skill means is in its declaration.
func SkillFile(text []byte) (frontmatter map[string]any, body []byte, err error) {
	invalid := func(cause error) error {
		return vakerr.New(vakerr.CapabilityInvalid, "the frontmatter of a SKILL.md cannot be shown").WithCause(cause)
	}
	whole, bad := normalise(text)
	if bad != nil {
		return nil, nil, invalid(nil)
	}
	doc, bad := split(whole)
	if bad != nil {
		return nil, nil, invalid(nil)
	}
	if err := yaml.Unmarshal(doc.front, &frontmatter); err != nil {
		return nil, nil, invalid(err)
	}
	if _, err := json.Marshal(frontmatter); err != nil {
		return nil, nil, invalid(err)
	}
	return frontmatter, doc.body, nil
}
