package declare

import (
	"encoding/json"
	"slices"

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
	var node yaml.Node
	if err := yaml.Unmarshal(doc.front, &node); err != nil || aliased(&node) {
		return nil, nil, invalid(err) // an alias can stand for more than anybody has room for
	}
	if err := node.Decode(&frontmatter); err != nil {
		return nil, nil, invalid(err)
	}
	if _, err := json.Marshal(frontmatter); err != nil {
		return nil, nil, invalid(err)
	}
	return frontmatter, doc.body, nil
}

func aliased(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || slices.ContainsFunc(node.Content, aliased)
}
