package mcpio

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Features are what a server offers beside tools, each list sorted by key. They are never changed after they were made.
type Features struct {
	Prompts   []Feature // by name
	Resources []Feature // by URI
	Templates []Feature // of resources, by URI template
	Notes     []string  // what is missing, and why
}

// Feature is a prompt, a resource or a resource template. It is free of the secrets of the server's Spec.
type Feature struct {
	Key string
	Raw json.RawMessage // the whole definition: keys sorted, no blanks
}

const maxFeatureKey = 4 << 10 // bytes

// ListFeatures asks for everything but tools that the server declares to have. A list that fails is missing, which a note
// says: tools are served without it.
func (c *Conn) ListFeatures(ctx context.Context) Features {
	var can struct {
		Prompts   json.RawMessage `json:"prompts"`
		Resources json.RawMessage `json:"resources"`
	}
	_ = json.Unmarshal(c.hello.capabilities, &can) // one that says nothing has nothing
	var f Features
	if isObject(can.Prompts) {
		f.Prompts = c.features(ctx, "prompts/list", "prompts", "name", &f.Notes)
	}
	if isObject(can.Resources) {
		f.Resources = c.features(ctx, "resources/list", "resources", "uri", &f.Notes)
		f.Templates = c.features(ctx, "resources/templates/list", "resourceTemplates", "uriTemplate", &f.Notes)
	}
	return f
}

func (c *Conn) features(ctx context.Context, method, member, key string, notes *[]string) []Feature {
	var list []Feature
	seen := map[string]bool{}
	unusable, cut := 0, ""
	more, err := c.pages(ctx, method, member, func(raw json.RawMessage) bool {
		if len(list) == c.spec.Limits.Tools {
			cut = fmt.Sprintf("more than %d", c.spec.Limits.Tools)
			return false
		}
		f, ok := c.feature(raw, key)
		if !ok || seen[f.Key] {
			unusable++
			return true
		}
		seen[f.Key] = true
		list = append(list, f)
		return true
	})
	switch cut = cmp.Or(cut, more); {
	case err != nil && refusedMethod(err): // many declare what they do not have
	case err != nil:
		*notes = append(*notes, fmt.Sprintf("%s: %s", method, vakerr.From(err).Reason))
	case cut != "":
		*notes = append(*notes, fmt.Sprintf("%s: the list is not complete: %s", method, cut))
	case unusable > 0:
		*notes = append(*notes, fmt.Sprintf("%s: %d left out that cannot be read or are listed twice", method, unusable))
	}
	slices.SortFunc(list, func(a, b Feature) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// feature reads one definition.
func (c *Conn) feature(raw json.RawMessage, key string) (Feature, bool) {
	if len(raw) > c.spec.Limits.Tool || !isObject(raw) {
		return Feature{}, false
	}
	fields, err := decodeObject(c.redact.JSON(raw))
	if err != nil {
		return Feature{}, false
	}
	name, _ := fields[key].(string)
	text, err := canonical(fields)
	return Feature{name, text}, err == nil && name != "" && len(name) <= maxFeatureKey
}
