package corpus

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/tests/realparts"
)

// The schemas of all real tools at hand become portable, are no larger for it than a client bears, and do not lose a property.
func TestSchemasOfRealTools(t *testing.T) {
	shared := realparts.Require(t, realparts.Shared)
	if shared == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(shared, "catalogs", "*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d catalogs, %v", len(files), err)
	}
	tools, changed := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if json.Unmarshal(raw, &list) != nil {
			continue
		}
		for _, tool := range list.Tools {
			tools++
			out := schema.Portable(tool.Input)
			if string(out) != string(tool.Input) {
				changed++
			}
			checkPortable(t, filepath.Base(file)+" "+tool.Name, tool.Input, out)
		}
	}
	t.Logf("%d tools, %d schemas changed", tools, changed)
	if tools < 2800 {
		t.Errorf("%d tools were read", tools)
	}
}

func checkPortable(t *testing.T, name string, in, out json.RawMessage) {
	t.Helper()
	var before, after struct {
		Type       string                     `json:"type"`
		Marker     json.RawMessage            `json:"$schema"`
		AnyOf      json.RawMessage            `json:"anyOf"`
		OneOf      json.RawMessage            `json:"oneOf"`
		AllOf      json.RawMessage            `json:"allOf"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(out, &after); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	_ = json.Unmarshal(in, &before) // as far as it goes
	switch {
	case after.Type != "object" || after.Properties == nil || after.Marker != nil || after.AnyOf != nil || after.OneOf != nil || after.AllOf != nil:
		t.Errorf("%s is not portable: %.200s", name, out)
	case strings.Contains(string(out), `"$ref":"`):
		t.Errorf("%s has a reference: %.200s", name, out)
	case len(out) > 2*len(in)+8<<10:
		t.Errorf("%s grew from %d to %d bytes", name, len(in), len(out))
	}
	for property := range before.Properties {
		if after.Properties[property] == nil {
			t.Errorf("%s lost %s", name, property)
		}
	}
}
