package mcpio

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Catalog is the list of tools of a server, sorted by name. It is never changed after it was made.
type Catalog struct {
	Tools       []ToolDef
	Quarantined []Quarantine // tools left out, in the server's order
	Repaired    []Repair     // tools changed to make them usable, in the server's order

	// Digest covers the tools and nothing else: it is the same for every order of tools and of JSON keys.
	Digest string
	// Truncated says that the server has, or claims to have, more tools than were taken; Note says why.
	Truncated bool
	Note      string
}

// ToolDef is one tool. Texts and schemas are free of the secrets of the server's Spec.
type ToolDef struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage // canonical; always an object schema
	OutputSchema json.RawMessage // canonical; nil if there is none
	Raw          json.RawMessage // the whole tool: keys sorted, no blanks

	// The hints as declared; an undeclared one is false. A read-only tool is never destructive. What the protocol would
	// assume of a tool that declares nothing (that it destroys) would say the same of nearly every real tool.
	ReadOnly, Destructive, Idempotent bool
}

// Quarantine names a tool that is not usable. Name is empty if the tool has none.
type Quarantine struct{ Name, Reason string }

// Repair names a tool that was changed to be usable.
type Repair struct{ Name, What string }

const (
	maxToolName  = 256 // bytes
	maxJSONDepth = 64  // of a tool; deeper ones exhaust readers further on
	// keySecret is the length from which a secret in the name of a property quarantines the tool. Shorter values are words
	// too often, and the name of a property cannot be redacted without breaking the tool.
	keySecret = 16
)

// catalogBuilder collects the tools of one list.
type catalogBuilder struct {
	limits Limits
	redact *Redactor
	seen   map[string]bool
	c      Catalog
}

func newCatalogBuilder(l Limits, r *Redactor) *catalogBuilder {
	return &catalogBuilder{limits: l, redact: r, seen: map[string]bool{}}
}

// add takes one raw tool and reports whether there is room for more.
func (b *catalogBuilder) add(raw json.RawMessage) bool {
	if len(b.c.Tools)+len(b.c.Quarantined) >= b.limits.Tools {
		b.truncate(fmt.Sprintf("more than %d tools", b.limits.Tools))
		return false
	}
	tool, repairs, err := b.decode(raw)
	if err == nil && b.seen[tool.Name] {
		err = errors.New("its name is listed already; the first one counts")
	}
	if err != nil {
		b.c.Quarantined = append(b.c.Quarantined, Quarantine{Name: b.redact.String(tool.Name), Reason: err.Error()})
		return true
	}
	b.seen[tool.Name] = true
	b.c.Tools = append(b.c.Tools, tool)
	for _, what := range repairs {
		b.c.Repaired = append(b.c.Repaired, Repair{Name: tool.Name, What: what})
	}
	return true
}

func (b *catalogBuilder) truncate(note string) { b.c.Truncated, b.c.Note = true, note }

func (b *catalogBuilder) catalog() Catalog {
	slices.SortFunc(b.c.Tools, func(x, y ToolDef) int { return strings.Compare(x.Name, y.Name) })
	sum := sha256.New()
	for _, t := range b.c.Tools {
		sum.Write(t.Raw)
		sum.Write([]byte{'\n'})
	}
	b.c.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return b.c
}

func (b *catalogBuilder) decode(raw json.RawMessage) (ToolDef, []string, error) {
	if len(raw) > b.limits.Tool {
		return ToolDef{Name: nameOf(raw)}, nil, fmt.Errorf("it is larger than %d bytes", b.limits.Tool)
	}
	return decodeTool(raw, b.redact)
}

// decodeTool reads one tool, repairs what can be repaired and says what, or says why the tool is unusable. In that case
// the name is still set if there is one.
func decodeTool(raw json.RawMessage, redact *Redactor) (ToolDef, []string, error) {
	fields, err := decodeObject(raw)
	if err != nil {
		return ToolDef{}, nil, err
	}
	name, _ := fields["name"].(string)
	if err := checkName(name, redact); err != nil {
		return ToolDef{Name: clip(name, maxToolName)}, nil, err
	}
	t := ToolDef{Name: name}
	repairs, err := repairTool(fields)
	if err != nil {
		return t, nil, err
	}
	w := redactWalk{redact: redact}
	delete(fields, "name")
	clean := w.object(fields)
	if w.err != nil {
		return t, nil, w.err
	}
	clean["name"] = name
	t.Title, _ = clean["title"].(string)
	t.Description, _ = clean["description"].(string)
	t.hints(clean["annotations"])
	t.Raw, err = canonical(clean)
	if err != nil {
		return t, nil, errors.New("it cannot be written as JSON")
	}
	t.InputSchema, err = canonical(clean["inputSchema"])
	if err == nil && clean["outputSchema"] != nil {
		t.OutputSchema, err = canonical(clean["outputSchema"])
	}
	if err != nil {
		return t, nil, errors.New("its schema cannot be written as JSON")
	}
	return t, repairs, nil
}

func (t *ToolDef) hints(annotations any) {
	a, _ := annotations.(map[string]any)
	t.ReadOnly, _ = a["readOnlyHint"].(bool)
	t.Idempotent, _ = a["idempotentHint"].(bool)
	destructive, _ := a["destructiveHint"].(bool)
	t.Destructive = destructive && !t.ReadOnly
}

func decodeObject(raw json.RawMessage) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // a number is kept as it is written
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, errors.New("it is no JSON")
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	return fields, nil
}

func checkName(name string, redact *Redactor) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case len(name) > maxToolName:
		return fmt.Errorf("its name is longer than %d bytes", maxToolName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("its name holds control characters")
	case redact.holds(name, keySecret):
		return errors.New("its name holds the value of an environment entry")
	}
	return nil
}

// repairTool brings the known members into their form and returns what it changed.
func repairTool(fields map[string]any) (repairs []string, err error) {
	note := func(what string) { repairs = append(repairs, what) }
	for _, key := range []string{"title", "description"} {
		if v, present := fields[key]; present {
			if _, ok := v.(string); !ok {
				delete(fields, key)
				note(key + " is no text and was dropped")
			}
		}
	}
	for _, key := range []string{"annotations", "outputSchema", "_meta"} {
		if v, present := fields[key]; present {
			if _, ok := v.(map[string]any); !ok {
				delete(fields, key)
				note(key + " is no object and was dropped")
			}
		}
	}
	what, err := repairSchema(fields)
	if what != "" {
		note(what)
	}
	return repairs, err
}

// repairSchema makes inputSchema an object schema. What accepts no object at all cannot be repaired.
func repairSchema(fields map[string]any) (what string, err error) {
	schema, present := fields["inputSchema"]
	switch s := schema.(type) {
	case nil:
		fields["inputSchema"] = map[string]any{"type": "object", "properties": map[string]any{}}
		if present {
			return "inputSchema was null and is an empty object schema now", nil
		}
		return "inputSchema was missing and is an empty object schema now", nil
	case bool:
		if !s {
			return "", errors.New("its inputSchema accepts nothing")
		}
		fields["inputSchema"] = map[string]any{"type": "object"}
		return "inputSchema was true and is an object schema now", nil
	case map[string]any:
		return repairType(s)
	}
	return "", errors.New("its inputSchema is no schema")
}

func repairType(schema map[string]any) (what string, err error) {
	switch t := schema["type"].(type) {
	case nil:
		schema["type"] = "object"
		return `inputSchema had no type and has type "object" now`, nil
	case string:
		switch t {
		case "object":
			return "", nil
		case "":
			schema["type"] = "object"
			return `inputSchema had an empty type and has type "object" now`, nil
		}
		return "", errors.New("its inputSchema does not take an object")
	case []any:
		if slices.Contains(t, any("object")) {
			schema["type"] = "object"
			return `inputSchema had several types and has type "object" now`, nil
		}
		return "", errors.New("its inputSchema does not take an object")
	}
	return "", errors.New("the type of its inputSchema is no text")
}

// canonical writes v with sorted keys and no blanks.
func canonical(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// nameOf is the name of a tool that is too large to be decoded whole; empty if it is not easily found.
func nameOf(raw json.RawMessage) string {
	var t struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(raw, &t)
	return clip(t.Name, maxToolName)
}

// clip is s cut to at most n bytes at a rune's begin.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
