package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Portable is an object schema in the form that every provider and client takes: an object at the top, without $schema, $ref
// and combinators at the top. It takes at least what the original takes: whoever checks arguments goes by the original. A
// schema that is in this form already is returned as it is; what is no JSON object becomes a schema of any object.
//
// References within the schema are put in place of their targets; one that leads into itself, or elsewhere, becomes a schema of
// anything, and so does what lies so deep that the schema would grow too much.
func Portable(raw json.RawMessage) json.RawMessage {
	top := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &top) != nil || top == nil {
		return json.RawMessage(anyObject)
	}
	if isPortable(raw, top) {
		return raw
	}
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&root) != nil {
		return json.RawMessage(anyObject)
	}
	for _, deep := range inlinings {
		if out := flattened(root, deep, growth*len(raw)+spare); out != nil && len(out) <= growth*len(raw)+spare {
			return out
		}
	}
	return json.RawMessage(anyObject)
}

// flattened is the portable form with references that are followed through so many others at most; nil where it would become
// too large.
func flattened(root map[string]any, deep, room int) json.RawMessage {
	in := &inliner{root: root, deep: deep, left: room}
	flat, ok := in.schema(root, 0).(map[string]any)
	if !ok || in.left < 0 {
		return nil
	}
	for _, key := range []string{"$schema", "$id", "id", "definitions", "$defs", "$comment"} {
		delete(flat, key)
	}
	merged(flat)
	flat["type"] = "object"
	if _, ok := flat["properties"].(map[string]any); !ok {
		flat["properties"] = map[string]any{}
	}
	text, err := json.Marshal(flat)
	if err != nil {
		return nil
	}
	return text
}

// inlinings are how many references within references are tried to be followed, until the schema is small enough.
var inlinings = []int{16, 4, 3, 2, 1, 0}

const (
	growth, spare = 2, 8 << 10 // a portable schema has at most so many times the bytes of the original, and some

	anyObject = `{"properties":{},"type":"object"}`
)

// combinators hold alternatives or parts of a schema.
var combinators = []string{"allOf", "anyOf", "oneOf"}

// isPortable looks at the top only, and for references anywhere.
func isPortable(raw json.RawMessage, top map[string]json.RawMessage) bool {
	for _, key := range []string{"$schema", "$id", "id", "definitions", "$defs", "$comment", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"} {
		if _, has := top[key]; has {
			return false
		}
	}
	_, properties := top["properties"]
	return properties && string(top["type"]) == `"object"` && !bytes.Contains(raw, []byte(`"$ref"`)) &&
		!bytes.Contains(raw, []byte(`"$dynamicRef"`)) && !bytes.Contains(raw, []byte(`"$recursiveRef"`))
}

// inliner puts the targets of references in their place.
type inliner struct {
	root map[string]any
	deep int      // references within references that are followed
	left int      // bytes that may still be written, about
	path []string // references that are being put in place
}

// schema is a copy of a schema without references.
func (n *inliner) schema(v any, depth int) any {
	if n.left--; n.left < 0 || depth > maxDepth {
		return map[string]any{}
	}
	switch s := v.(type) {
	case []any:
		all := make([]any, len(s))
		for i := range s {
			all[i] = n.schema(s[i], depth)
		}
		return all
	case map[string]any:
		if ref, is := s["$ref"].(string); is {
			return n.reference(s, ref, depth)
		}
		out := make(map[string]any, len(s))
		for _, key := range slices.Sorted(maps.Keys(s)) {
			switch {
			case depth == 0 && (key == "definitions" || key == "$defs"):
			case key == "$schema", key == "$dynamicRef", key == "$recursiveRef":
			case isValue(key):
				text, _ := json.Marshal(s[key]) // it came out of JSON
				n.left -= len(text)
				out[key] = s[key]
			default:
				out[key] = n.schema(s[key], depth+1)
			}
		}
		return out
	case string:
		n.left -= len(s)
	}
	return v
}

// isValue reports whether a keyword holds values, in which $ref is a word like any other.
func isValue(key string) bool {
	switch key {
	case "const", "enum", "default", "examples", "example", "required":
		return true
	}
	return false
}

// reference is what a reference leads to, with what stands beside it.
func (n *inliner) reference(s map[string]any, ref string, depth int) any {
	beside := maps.Clone(s)
	delete(beside, "$ref")
	target, found := n.lookup(ref)
	if !found || len(n.path) >= n.deep || slices.Contains(n.path, ref) {
		return n.schema(beside, depth+1)
	}
	n.path = append(n.path, ref)
	defer func() { n.path = n.path[:len(n.path)-1] }()
	out, ok := n.schema(target, depth+1).(map[string]any)
	if !ok {
		return n.schema(beside, depth+1)
	}
	if more, ok := n.schema(beside, depth+1).(map[string]any); ok {
		maps.Copy(out, more)
	}
	return out
}

// lookup follows a pointer within the schema.
func (n *inliner) lookup(ref string) (any, bool) {
	if ref == "#" {
		return n.root, true
	}
	rest, is := strings.CutPrefix(ref, "#/")
	if !is {
		return nil, false
	}
	var at any = n.root
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[part]; !ok {
			return nil, false
		}
	}
	return at, true
}

// merged takes the combinators at the top apart: the properties of all branches are the schema's, and required is what every
// way to fit it requires. What only narrows further is left to whoever checks.
func merged(top map[string]any) {
	properties, _ := top["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	required := words(top["required"])
	for _, key := range combinators {
		branches, is := top[key].([]any)
		delete(top, key)
		if !is {
			continue
		}
		var common []string
		for i, b := range branches {
			branch, ok := b.(map[string]any)
			if !ok {
				branch = map[string]any{}
			}
			merged(branch)
			own, _ := branch["properties"].(map[string]any)
			for name, schema := range own {
				if _, has := properties[name]; !has {
					properties[name] = schema
				} else if s, is := properties[name].(map[string]any); is && len(s) == 0 {
					continue // anything already
				} else if key != "allOf" && !same(properties[name], schema) {
					properties[name] = either(properties[name], schema)
				}
			}
			needs := words(branch["required"])
			switch {
			case key == "allOf":
				common = append(common, needs...)
			case i == 0:
				common = needs
			default:
				common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(needs, name) })
			}
		}
		required = append(required, common...)
	}
	for _, key := range []string{"not", "if", "then", "else", "enum", "const"} {
		delete(top, key)
	}
	if len(properties) > 0 {
		top["properties"] = properties
	}
	slices.Sort(required)
	if required = slices.Compact(required); len(required) > 0 {
		top["required"] = required
	} else {
		delete(top, "required")
	}
}

// maxBranches bounds the alternatives of one property; more of them are anything.
const maxBranches = 64

// either is a schema that takes what one of two takes.
func either(a, b any) any {
	if one, is := a.(map[string]any); is && len(one) == 1 {
		if branches, is := one["anyOf"].([]any); is {
			if len(branches) >= maxBranches {
				return map[string]any{}
			}
			if slices.ContainsFunc(branches, func(x any) bool { return same(x, b) }) {
				return a
			}
			return map[string]any{"anyOf": append(slices.Clone(branches), b)}
		}
	}
	return map[string]any{"anyOf": []any{a, b}}
}

func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func words(v any) []string {
	switch list := v.(type) {
	case []string:
		return slices.Clone(list)
	case []any:
		var all []string
		for _, x := range list {
			if s, is := x.(string); is {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}
