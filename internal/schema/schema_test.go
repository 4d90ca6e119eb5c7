package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const issue = `{
	"$schema": "http://json-schema.org/draft-07/schema#",
	"type": "object",
	"properties": {
		"title": {"type": "string", "minLength": 3},
		"state": {"enum": ["open", "closed"]},
		"count": {"type": "integer", "minimum": 1, "maximum": 9},
		"labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
		"who": {"$ref": "#/definitions/person"}
	},
	"required": ["title"],
	"additionalProperties": false,
	"definitions": {"person": {"type": "object", "required": ["name"]}}
}`

// V63: arguments are checked against the tool's schema, and the error names each wrong field.
func TestEachWrongFieldIsNamed(t *testing.T) {
	tests := []struct {
		name, args string
		want       []string
	}{
		{"valid", `{"title":"abc","state":"open","count":3,"labels":["a","b"],"who":{"name":"x"}}`, nil},
		{"missing", `{}`, []string{"required and missing: title"}},
		{"unknown field", `{"title":"abc","zig":1,"zag":2}`, []string{"not a known field: zag, zig"}},
		{"several", `{"title":1,"state":"half","count":12}`, []string{
			"count: must be at most 9", `state: must be one of "open", "closed"`, "title: must be of type string",
		}},
		{"nested", `{"title":"abc","labels":["a",2],"who":{}}`, []string{
			"labels.1: must be of type string", "who: required and missing: name",
		}},
		{"equal items", `{"title":"abc","labels":["a","a"]}`, []string{"labels: items must differ from each other"}},
		{"no object", `[1]`, []string{"a JSON object is expected"}},
	}
	s := Compile(json.RawMessage(issue))
	if s.Note() != "" {
		t.Fatal(s.Note())
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Violations(json.RawMessage(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAlternativesAreOneEntry(t *testing.T) {
	s := Compile(json.RawMessage(`{"anyOf":[{"required":["id"]},{"required":["url"]}]}`))
	got, err := s.Violations(json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fits none of the allowed forms (required and missing: id; or required and missing: url)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every kind of finding, with a value that must not be repeated in it.
func TestNoErrorRepeatsAValue(t *testing.T) {
	const secret = "hunter2secret"
	quoted := `"` + secret + `"`
	for _, property := range []string{
		`{"type":"integer"}`, `{"enum":["a"]}`, `{"const":"a"}`, `{"pattern":"^[0-9]+$"}`, `{"maxLength":2}`, `{"minLength":99}`,
		`{"format":"date"}`, `{"format":"email"}`, `{"not":{}}`, `false`, `{"anyOf":[{"type":"null"},{"const":1}]}`,
		`{"oneOf":[{"type":"null"},{"const":1}]}`, `{"oneOf":[{},{}]}`, `{"contentMediaType":"application/json"}`,
	} {
		s := Compile(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":` + property + `}}`))
		if s.Note() != "" {
			t.Fatalf("%s: %s", property, s.Note())
		}
		err := s.CheckArguments("t", json.RawMessage(`{"p":`+quoted+`}`))
		if property == `{"contentMediaType":"application/json"}` && err == nil {
			continue // an annotation, unless asserted
		}
		if vakerr.CodeOf(err) != vakerr.InvalidArguments {
			t.Errorf("%s: %v", property, err)
			continue
		}
		if e := vakerr.From(err); strings.Contains(e.Reason+e.Remedy, secret) || !strings.Contains(e.Reason, "p: ") {
			t.Errorf("%s: %s", property, e.Reason)
		}
	}
}

func TestASchemaThatCannotBeUsedChecksTheType(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       ``,
		"null":          `null`,
		"not JSON":      `{"type":`,
		"a wrong type":  `{"type":"strange"}`,
		"a remote ref":  `{"properties":{"a":{"$ref":"https://example.com/x.json"}}}`,
		"a file ref":    `{"$ref":"file:///etc/passwd"}`,
		"a lost ref":    `{"$ref":"#/$defs/none"}`,
		"a dynamic ref": `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`,
		"too deep":      strings.Repeat(`{"not":`, maxDepth+1) + `{}` + strings.Repeat(`}`, maxDepth+1),
		"a long number": `{"minimum":1e99999999}`,
		"too large":     `{"description":"` + strings.Repeat("x", MaxSchemaBytes) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := Compile(json.RawMessage(text))
			if s.Note() == "" {
				t.Fatal("the schema was taken")
			}
			if err := s.CheckArguments("t", json.RawMessage(`{"any":["thing"]}`)); err != nil {
				t.Errorf("the call is blocked: %v", err)
			}
			if err := s.CheckArguments("t", json.RawMessage(`"text"`)); vakerr.CodeOf(err) != vakerr.InvalidArguments {
				t.Errorf("a string was taken for an object: %v", err)
			}
		})
	}
}

// A schema that lies ready in a file is not read either.
func TestNothingIsLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"$ref":"file://` + file + `"}`, `{"$schema":"file://` + file + `","$ref":"file://` + file + `"}`,
	} {
		if s := Compile(json.RawMessage(text)); s.Note() == "" {
			t.Errorf("%s was followed", text)
		}
	}
}

func TestPrivateDialectAndForeignPatternsDoNotCostTheSchema(t *testing.T) {
	s := Compile(json.RawMessage(`{"$schema":"https://example.com/own","properties":{"a":{"pattern":"(?=x)y"},"b":{"type":"string"}}}`))
	if s.Note() != "" {
		t.Fatal(s.Note())
	}
	got, _ := s.Violations(json.RawMessage(`{"a":"z","b":1}`))
	if diff := cmp.Diff([]string{"b: must be of type string"}, got); diff != "" {
		t.Error(diff)
	}
}

// Thirty levels of "this or this" take 2^30 steps; without the bound this test does not end.
func TestStepsAreBounded(t *testing.T) {
	var in, across strings.Builder
	in.WriteString(`{"$defs":{"n30":{"type":"string"}`)
	for i := range 30 {
		fmt.Fprintf(&in, `,"n%d":{"allOf":[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%d"}]}`, i, i+1, i+1)
	}
	in.WriteString(`},"properties":{"a":{"$ref":"#/$defs/n0"}}}`)
	across.WriteString(`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"minProperties":1},{"properties":{"a":{"$ref":"#"}},"minProperties":1}]}`)
	deep := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
	negated := `{"not":` + strings.ReplaceAll(across.String(), `"#"`, `"#/not"`) + `}`
	for name, tt := range map[string][2]string{
		"in place":       {in.String(), `{"a":"x"}`},
		"across values":  {across.String(), deep},
		"draft 7":        {strings.Replace(in.String(), "{", `{"$schema":"http://json-schema.org/draft-07/schema",`, 1), `{"a":"x"}`},
		"without a word": {negated, deep},
		"wide enum":      {`{"properties":{"l":{"items":{"enum":[` + strings.Repeat(`"x",`, 50000) + `"y"]}}}}`, `{"l":[` + strings.Repeat(`"q",`, 50000) + `"y"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := Compile(json.RawMessage(tt[0]))
			if s.Note() != "" {
				t.Fatal(s.Note())
			}
			if err := s.CheckArguments("t", json.RawMessage(tt[1])); vakerr.CodeOf(err) != vakerr.TooLarge {
				t.Errorf("got %v", err)
			}
			// The bound belongs to one check, not to the schema.
			if name == "across values" {
				if err := s.CheckArguments("t", json.RawMessage(`{"z":1}`)); err != nil {
					t.Errorf("a later check failed: %v", err)
				}
			}
		})
	}
}

func TestValuesAreBounded(t *testing.T) {
	s := Compile(json.RawMessage(`{"properties":{"n":{"minimum":1,"multipleOf":3}}}`))
	for name, tt := range map[string]struct {
		args string
		code vakerr.Code
	}{
		"depth":     {strings.Repeat(`{"a":`, maxDepth+1) + `1` + strings.Repeat(`}`, maxDepth+1), vakerr.TooLarge},
		"size":      {`{"a":"` + strings.Repeat("x", MaxValueBytes) + `"}`, vakerr.TooLarge},
		"exponent":  {`{"n":1e999999}`, vakerr.InvalidArguments},
		"digits":    {`{"n":` + strings.Repeat("9", 500) + `}`, vakerr.InvalidArguments},
		"two":       {`{} {}`, vakerr.InvalidArguments},
		"cut short": {`{"n":`, vakerr.InvalidArguments},
	} {
		if err := s.CheckArguments("t", json.RawMessage(tt.args)); vakerr.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCacheIsBoundedAndShared(t *testing.T) {
	c := NewCache(3)
	first := c.Get(json.RawMessage(`{"title":"0"}`))
	for i := range 100 {
		c.Get(json.RawMessage(fmt.Sprintf(`{"title":"%d"}`, i)))
		if c.Get(json.RawMessage(`{"title":"0"}`)) != first {
			t.Fatalf("a schema in use was compiled again after %d others", i)
		}
		if c.Len() > 3 || len(c.byText) != c.Len() {
			t.Fatalf("%d schemas are kept, %d indexed", c.Len(), len(c.byText))
		}
	}
}

func TestConcurrentChecks(t *testing.T) {
	c := NewCache(2)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				s := c.Get(json.RawMessage(issue))
				args, want := `{"title":"abc"}`, vakerr.Code("")
				if i%2 == 0 {
					args, want = `{"title":1}`, vakerr.InvalidArguments
				}
				if err := s.CheckArguments("t", json.RawMessage(args)); vakerr.CodeOf(err) != want {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever schema and arguments hold, the check ends, speaks with a typed error and never repeats the marker.
func FuzzCheck(f *testing.F) {
	f.Add(issue, `{"title":"VAKMARK","count":1e5}`)
	f.Add(`{"anyOf":[{"$ref":"#"},{"type":"object"}]}`, `{"a":[1,1.0,"VAKMARK"]}`)
	f.Add(`{"properties":{"a":{"uniqueItems":true,"contains":{"const":1}}},"dependentRequired":{"a":["b"]}}`, `{"a":[1,2]}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","items":[{"multipleOf":0.1}]}`, `{}`)
	f.Add(`{"unevaluatedProperties":false,"if":{"minProperties":1},"then":{"maxProperties":0}}`, `{"x":{"y":null}}`)
	f.Fuzz(func(t *testing.T, text, args string) {
		if strings.Contains(text, "VAKMARK") {
			return
		}
		s := Compile(json.RawMessage(text))
		err := s.CheckArguments("tool", json.RawMessage(args))
		if err == nil {
			return
		}
		e := vakerr.From(err)
		if e.Code != vakerr.InvalidArguments && e.Code != vakerr.TooLarge {
			t.Fatalf("code %s: %s", e.Code, e.Reason)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(args), &object) != nil {
			return
		}
		for field, value := range object {
			if !strings.Contains(field, "VAKMARK") && strings.Trim(string(value), `"`) == "VAKMARK" && strings.Contains(e.Reason, "VAKMARK") {
				t.Fatalf("the reason repeats a value: %s", e.Reason)
			}
		}
	})
}

// A value is read once and checked against the schemas of the whole and of a part.
func TestPartsOfAValue(t *testing.T) {
	inner := Compile(json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	for text, fits := range map[string]bool{
		`{"part":{"n":9007199254740993}}`: true,
		`{"part":{"n":1.5}}`:              false,
		`{"part":{"n":"1"}}`:              false,
		`{"part":[1]}`:                    false,
		`{"part":null}`:                   false, // as the empty object
		`{}`:                              false,
	} {
		v, err := Read(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.Check("tool", v.Object("part")); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}
