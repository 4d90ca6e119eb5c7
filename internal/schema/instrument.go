package schema

import (
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The validator has no limit of its own: a few nested alternatives that refer to each other take 2^n steps. It does call
// a schema's format before it descends, so every schema object gets a format that counts.

// instrument bounds every schema object that can be reached from the root.
func (s *Schema) instrument() error {
	seen := map[*jsonschema.Schema]bool{}
	todo := []*jsonschema.Schema{s.compiled}
	for len(todo) > 0 {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if next == nil || seen[next] {
			continue
		}
		seen[next] = true
		if next.DynamicRef != nil || next.RecursiveRef != nil {
			return errDynamic // their targets cannot be enumerated, so they cannot be bounded
		}
		children := subschemas(next)
		width := 1 + len(children) + len(next.Required)
		if next.Enum != nil {
			width += len(next.Enum.Values)
		}
		s.width = max(s.width, width)
		s.count(next, width)
		todo = append(todo, children...)
	}
	return nil
}

func (s *Schema) count(target *jsonschema.Schema, width int) {
	own := target.Format
	counting := &jsonschema.Format{Validate: func(v any) error {
		if s.steps -= width; s.steps < 0 {
			panic(errCostly)
		}
		if own != nil {
			return own.Validate(v)
		}
		return nil
	}}
	if own != nil {
		counting.Name = own.Name
	}
	target.Format = counting
}

// subschemas lists what a schema object evaluates besides itself.
func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains,
		s.UnevaluatedItems, s.ContentSchema,
	}
	all = append(all, s.AllOf...)
	all = append(all, s.AnyOf...)
	all = append(all, s.OneOf...)
	all = append(all, s.PrefixItems...)
	for _, sub := range s.Properties {
		all = append(all, sub)
	}
	for _, sub := range s.PatternProperties {
		all = append(all, sub)
	}
	for _, sub := range s.DependentSchemas {
		all = append(all, sub)
	}
	for _, dependency := range s.Dependencies {
		all = appendAny(all, dependency)
	}
	all = appendAny(all, s.AdditionalProperties)
	all = appendAny(all, s.Items)
	return appendAny(all, s.AdditionalItems)
}

// appendAny adds what the older drafts allow to be a schema, a list of schemas or something else.
func appendAny(all []*jsonschema.Schema, keyword any) []*jsonschema.Schema {
	switch k := keyword.(type) {
	case *jsonschema.Schema:
		return append(all, k)
	case []*jsonschema.Schema:
		return append(all, k...)
	}
	return all
}

// compilePattern reads a pattern as RE2, which has no bad cases. What RE2 lacks (look-around, back references) matches
// everything: such a pattern must not cost the schema it stands in.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil
	}
	return re, nil
}

type anything string

func (a anything) String() string          { return string(a) }
func (anything) MatchString(_ string) bool { return true }
