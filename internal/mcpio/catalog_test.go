package mcpio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func build(l Limits, r *Redactor, tools ...string) Catalog {
	b := newCatalogBuilder(Spec{Limits: l}.withDefaults().Limits, r)
	for _, tool := range tools {
		if !b.add(json.RawMessage(tool)) {
			break
		}
	}
	return b.catalog()
}

func TestDecodeTool(t *testing.T) {
	deep := strings.Repeat(`{"properties":`, 100) + `{}` + strings.Repeat(`}`, 100)
	tests := map[string]struct{ in, raw, repair, quarantine string }{
		"kept as it is": {
			in:  `{"name":"t","inputSchema":{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"x":1.0}]},"zz":{"b":1,"a":"<&>"}}`,
			raw: `{"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","anyOf":[{"x":1.0}],"type":"object"},"name":"t","zz":{"a":"<&>","b":1}}`,
		},
		"missing schema": {in: `{"name":"t"}`, raw: `{"inputSchema":{"properties":{},"type":"object"},"name":"t"}`, repair: "missing"},
		"null schema":    {in: `{"name":"t","inputSchema":null}`, raw: `{"inputSchema":{"properties":{},"type":"object"},"name":"t"}`, repair: "null"},
		"true schema":    {in: `{"name":"t","inputSchema":true}`, raw: `{"inputSchema":{"type":"object"},"name":"t"}`, repair: "true"},
		"no type": {
			in: `{"name":"t","inputSchema":{"properties":{}}}`, raw: `{"inputSchema":{"properties":{},"type":"object"},"name":"t"}`, repair: "no type",
		},
		"several types": {
			in: `{"name":"t","inputSchema":{"type":["object","null"]}}`, raw: `{"inputSchema":{"type":"object"},"name":"t"}`, repair: "several types",
		},
		"odd members": {
			in:     `{"name":"t","title":1,"description":null,"annotations":[],"outputSchema":"x","inputSchema":{"type":"object"}}`,
			raw:    `{"inputSchema":{"type":"object"},"name":"t"}`,
			repair: "title is no text and was dropped; description is no text and was dropped; annotations is no object and was dropped; outputSchema is no object",
		},
		"no object":       {in: `["t"]`, quarantine: "no object"},
		"null":            {in: `null`, quarantine: "no object"},
		"no name":         {in: `{"inputSchema":{}}`, quarantine: "no name"},
		"name no text":    {in: `{"name":7}`, quarantine: "no name"},
		"odd name":        {in: `{"name":"a\u0000b"}`, quarantine: "control characters"},
		"long name":       {in: `{"name":"` + strings.Repeat("n", 300) + `"}`, quarantine: "longer than 256"},
		"string schema":   {in: `{"name":"t","inputSchema":"x"}`, quarantine: "no schema"},
		"false schema":    {in: `{"name":"t","inputSchema":false}`, quarantine: "accepts nothing"},
		"type string":     {in: `{"name":"t","inputSchema":{"type":"string"}}`, quarantine: "does not take an object"},
		"types no object": {in: `{"name":"t","inputSchema":{"type":["null"]}}`, quarantine: "does not take an object"},
		"type number":     {in: `{"name":"t","inputSchema":{"type":3}}`, quarantine: "no text"},
		"number":          {in: `{"name":"t","inputSchema":{"type":"object","maximum":1e400}}`, quarantine: "out of range"},
		"too deep":        {in: `{"name":"t","inputSchema":{"type":"object","x":` + deep + `}}`, quarantine: "nested too deeply"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tool, repairs, err := decodeTool(json.RawMessage(tt.in), nil)
			if tt.quarantine != "" {
				if err == nil || !strings.Contains(err.Error(), tt.quarantine) {
					t.Fatalf("error %v, want %q", err, tt.quarantine)
				}
				return
			}
			if err != nil || string(tool.Raw) != tt.raw {
				t.Fatalf("raw %s, %v; want %s", tool.Raw, err, tt.raw)
			}
			if got := strings.Join(repairs, "; "); !strings.Contains(got, tt.repair) || tt.repair == "" && got != "" {
				t.Fatalf("repairs %q, want %q", got, tt.repair)
			}
		})
	}
}

func TestHints(t *testing.T) {
	for in, want := range map[string][3]bool{ // read-only, destructive, idempotent
		`{}`:                       {false, false, false},
		`{"readOnlyHint":true}`:    {true, false, false},
		`{"readOnlyHint":"yes"}`:   {false, false, false},
		`{"destructiveHint":true}`: {false, true, false},
		`{"destructiveHint":false,"idempotentHint":true}`: {false, false, true},
		`{"readOnlyHint":true,"destructiveHint":true}`:    {true, false, false},
	} {
		tool, _, err := decodeTool(json.RawMessage(`{"name":"t","annotations":`+in+`}`), nil)
		if err != nil || [3]bool{tool.ReadOnly, tool.Destructive, tool.Idempotent} != want {
			t.Errorf("%s: %+v, %v", in, tool, err)
		}
	}
}

// One bad tool costs itself only, the order is by name, and the digest is that of the content.
func TestCatalog(t *testing.T) {
	a := `{"name":"a","description":"A","inputSchema":{"type":"object","properties":{"x":{},"y":{}}}}`
	aShuffled := `{"inputSchema":{"properties":{"y":{},"x":{}},"type":"object"},  "description":"A","name":"a"}`
	b := `{"name":"b","inputSchema":{"type":"object"}}`
	c := build(Limits{}, nil, b, `7`, a, `{"name":"a","description":"another"}`, `{"name":"bad","inputSchema":false}`)
	if len(c.Tools) != 2 || c.Tools[0].Name != "a" || c.Tools[1].Name != "b" || c.Tools[0].Description != "A" {
		t.Fatalf("tools %+v", c.Tools)
	}
	want := []Quarantine{
		{"", "it is no object"}, {"a", "its name is listed already; the first one counts"}, {"bad", "its inputSchema accepts nothing"},
	}
	if diff := cmp.Diff(want, c.Quarantined); diff != "" {
		t.Fatal(diff)
	}
	if same := build(Limits{}, nil, aShuffled, b); same.Digest != c.Digest {
		t.Error("the digest depends on the order")
	}
	if other := build(Limits{}, nil, strings.Replace(a, "A", "B", 1), b); other.Digest == c.Digest {
		t.Error("the digest misses a description")
	}
	if fewer := build(Limits{Tools: 1}, nil, a, b); len(fewer.Tools) != 1 || !fewer.Truncated || fewer.Note == "" {
		t.Errorf("limit of tools: %+v", fewer)
	}
	if large := build(Limits{Tool: 20}, nil, a, `{"name":"c"}`); len(large.Tools) != 1 || large.Quarantined[0].Name != "a" {
		t.Errorf("limit of a tool: %+v", large)
	}
}

// V65: descriptions and schemas hold no value of an environment entry, and stay schemas when such a value is a word of JSON
// Schema.
func TestCatalogIsRedacted(t *testing.T) {
	in := `{"name":"t","title":"for tok-123","description":"uses tok-123","inputSchema":{"type":"object","$ref":"#/tok-123",
		"properties":{"object":{"type":"string","default":"tok-123","enum":["tok-123","b"],"description":"a string tok-123"}},
		"required":["object"]},"_meta":{"k":["tok-123"]}}`
	c := build(Limits{}, NewRedactor("tok-123", "object", "string"), in)
	if len(c.Tools) != 1 {
		t.Fatalf("%+v", c)
	}
	want := `{"_meta":{"k":["[redacted]"]},"description":"uses [redacted]","inputSchema":{"$ref":"#/tok-123",` +
		`"properties":{"object":{"default":"[redacted]","description":"a [redacted] [redacted]","enum":["[redacted]","b"],"type":"string"}},` +
		`"required":["object"],"type":"object"},"name":"t","title":"for [redacted]"}`
	if string(c.Tools[0].Raw) != want {
		t.Fatalf("raw %s\nwant %s", c.Tools[0].Raw, want)
	}
	long := "0123456789abcdef-long-secret"
	c = build(Limits{}, NewRedactor(long), `{"name":"x","inputSchema":{"type":"object","properties":{"`+long+`":{}}}}`, `{"name":"`+long+`"}`)
	if len(c.Tools) != 0 || len(c.Quarantined) != 2 || strings.Contains(fmt.Sprint(c), long) {
		t.Fatalf("%+v", c)
	}
}

func TestListTools(t *testing.T) {
	list := func(t *testing.T, flags ...string) Catalog {
		t.Helper()
		c, catalog, _, err := Connect(t.Context(), server(t, flags...), Handlers{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(t.Context()) })
		return catalog
	}
	plain := list(t)
	t.Run("hints", func(t *testing.T) {
		for _, tool := range plain.Tools {
			if tool.Name == "echo" && (!tool.ReadOnly || !tool.Idempotent || tool.Destructive) ||
				tool.Name == "write" && tool.ReadOnly {
				t.Errorf("%+v", tool)
			}
		}
	})
	t.Run("pages", func(t *testing.T) {
		paged := list(t, "-tools", "87", "-page", "50")
		if len(paged.Tools) != 105 || paged.Truncated {
			t.Fatalf("%d tools, truncated %t", len(paged.Tools), paged.Truncated)
		}
		if whole := list(t, "-tools", "87"); whole.Digest != paged.Digest {
			t.Fatal("the digest depends on the pages")
		}
	})
	t.Run("repeated cursor", func(t *testing.T) {
		if got := list(t, "-repeat-cursor"); !got.Truncated || got.Digest != plain.Digest {
			t.Fatalf("truncated %t, %d tools", got.Truncated, len(got.Tools))
		}
	})
	t.Run("bad schema", func(t *testing.T) {
		for _, kind := range []string{"null", "missing", "untyped", "array"} {
			if got := list(t, "-schema", kind); len(got.Tools) != len(plain.Tools)+1 || len(got.Repaired) != 1 {
				t.Errorf("%s: %d tools, repaired %v", kind, len(got.Tools), got.Repaired)
			}
		}
		got := list(t, "-schema", "string")
		if got.Digest != plain.Digest || len(got.Quarantined) != 1 || got.Quarantined[0].Name != "bad" {
			t.Errorf("quarantined %v", got.Quarantined)
		}
	})
	t.Run("duplicate", func(t *testing.T) {
		if got := list(t, "-duplicate"); got.Digest != plain.Digest || len(got.Quarantined) != 1 {
			t.Fatalf("quarantined %v", got.Quarantined)
		}
	})
	t.Run("error", func(t *testing.T) {
		_, _, _, err := Connect(t.Context(), server(t, "-error-on", "tools/list"), Handlers{})
		wantCode(t, err, vakerr.ServerStartFailed)
	})
	t.Run("limit of pages", func(t *testing.T) {
		s := server(t, "-page", "1")
		s.Limits.Pages = 3
		c := dial(t, s, Handlers{})
		got, err := c.ListTools(t.Context())
		if err != nil || !got.Truncated || len(got.Tools) != 3 {
			t.Fatalf("%d tools, truncated %t, %v", len(got.Tools), got.Truncated, err)
		}
	})
}

func TestCatalogFollowsTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "catalog.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"name":"one"}]`)
	c := dial(t, server(t, "-catalog-file", file), Handlers{})
	first, err := c.ListTools(t.Context())
	if err != nil || len(first.Tools) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	write(`[{"name":"one"},{"name":"two"}]`)
	second, err := c.ListTools(t.Context())
	if err != nil || len(second.Tools) != 2 || second.Digest == first.Digest {
		t.Fatalf("%+v, %v", second, err)
	}
}

// V65: no text of a connection holds the value of an environment entry.
func TestConnectionIsRedacted(t *testing.T) {
	const secret = "tok-4711-secret"
	s := server(t, "-leak-env", "API_TOKEN")
	s.Env = append(s.Env, "API_TOKEN="+secret)
	c, catalog, _, err := Connect(t.Context(), s, Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	var seen bytes.Buffer
	look := func(err error) {
		e := vakerr.From(err)
		fmt.Fprintln(&seen, e, e.Remedy)
	}
	for _, tool := range catalog.Tools {
		fmt.Fprintln(&seen, string(tool.Raw), tool.Description, string(tool.InputSchema))
	}
	_, err = call(t, c, "leak", "")
	look(err)
	_, err = call(t, c, "crash", "")
	look(err)
	look(c.Err())
	fmt.Fprintf(&seen, "%+v", c.Info())
	if strings.Contains(seen.String(), secret) {
		t.Fatalf("the secret is in:\n%s", seen.String())
	}
	if n := strings.Count(seen.String(), Redacted); n < 7 {
		t.Fatalf("only %d places were redacted: the server does not leak, this test shows nothing\n%s", n, seen.String())
	}
}

// A tool that was accepted is valid, has an object schema, and is accepted again unchanged.
func FuzzDecodeTool(f *testing.F) {
	f.Add([]byte(`{"name":"t","inputSchema":{"type":["object","null"]},"annotations":{"readOnlyHint":true}}`))
	f.Add([]byte(`{"name":"t","inputSchema":null,"description":7}`))
	f.Add([]byte(`{"name":"é","inputSchema":{"a":1e400,"b":-0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tool, _, err := decodeTool(data, nil)
		if err != nil {
			return
		}
		var schema map[string]any
		if json.Unmarshal(tool.InputSchema, &schema) != nil || schema["type"] != "object" || !json.Valid(tool.Raw) || tool.Name == "" {
			t.Fatalf("%q: %+v", data, tool)
		}
		again, repairs, err := decodeTool(tool.Raw, nil)
		if err != nil || len(repairs) != 0 || !bytes.Equal(again.Raw, tool.Raw) {
			t.Fatalf("%q: %s, then %s, %v, %v", data, tool.Raw, again.Raw, repairs, err)
		}
	})
}
