package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortable(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"as it is":           {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, ""},
		"a marker":           {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"number","minimum":1.50}}}`, `{"properties":{"n":{"minimum":1.50,"type":"number"}},"type":"object"}`},
		"no properties":      {`{"type":"object"}`, `{"properties":{},"type":"object"}`},
		"definitions":        {`{"type":"object","properties":{"a":{"$ref":"#/definitions/A","description":"mine"}},"definitions":{"A":{"type":"string","description":"its"}}}`, `{"properties":{"a":{"description":"mine","type":"string"}},"type":"object"}`},
		"a reference in one": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"array","items":{"$ref":"#/$defs/B"}},"B":{"type":"integer"}}}`, `{"properties":{"a":{"items":{"type":"integer"},"type":"array"}},"type":"object"}`},
		"one into itself":    {`{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`, `{"properties":{"n":{"properties":{"next":{}},"type":"object"}},"type":"object"}`},
		"one elsewhere":      {`{"type":"object","properties":{"a":{"$ref":"https://example.org/a.json"}}}`, `{"properties":{"a":{}},"type":"object"}`},
		"a value":            {`{"type":"object","$schema":"x","properties":{"a":{"default":{"$ref":"#/x"}}}}`, `{"properties":{"a":{"default":{"$ref":"#/x"}}},"type":"object"}`},
		"a property $ref":    {`{"type":"object","properties":{"$ref":{"type":"string"}}}`, `{"properties":{"$ref":{"type":"string"}},"type":"object"}`},
		"anyOf": {
			`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]},{"properties":{"a":{"type":"number"}},"required":["a"]}]}`,
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"b":{"type":"string"}},"required":["a"],"type":"object"}`,
		},
		"allOf":     {`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"$ref":"#/$defs/B"}],"$defs":{"B":{"properties":{"b":{}},"required":["b"]}}}`, `{"properties":{"a":{},"b":{}},"required":["a","b"],"type":"object"}`},
		"no object": {`[]`, `{"properties":{},"type":"object"}`},
		"no JSON":   {`{`, `{"properties":{},"type":"object"}`},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		if diff := cmp.Diff(want, string(Portable(json.RawMessage(c.in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A schema whose references multiply stays small.
func TestPortableIsBounded(t *testing.T) {
	var defs strings.Builder
	for i := range 30 {
		if i > 0 {
			defs.WriteByte(',')
		}
		next := string(rune('a' + (i+1)%30))
		defs.WriteString(`"` + string(rune('a'+i)) + `":{"properties":{"x":{"$ref":"#/$defs/` + next + `"},"y":{"$ref":"#/$defs/` + next + `"}}}`)
	}
	out := Portable(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{` + defs.String() + `}}`))
	if len(out) > 16<<10 || !json.Valid(out) {
		t.Errorf("%d bytes", len(out))
	}
}

// What fits the original fits the portable form, and the portable form is one.
func FuzzPortable(f *testing.F) {
	f.Add(`{"type":"object","$schema":"x","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`)
	f.Add(`{"anyOf":[{"required":["a"]},{"allOf":[{"$ref":"#"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		out := Portable(json.RawMessage(text))
		var top map[string]json.RawMessage
		if err := json.Unmarshal(out, &top); err != nil {
			t.Fatal(err)
		}
		if again := Portable(out); string(again) != string(out) {
			t.Errorf("%s is portable only after another time: %s", out, again)
		}
		if string(top["type"]) != `"object"` || top["anyOf"] != nil || top["$schema"] != nil {
			t.Errorf("%s", out)
		}
	})
}
