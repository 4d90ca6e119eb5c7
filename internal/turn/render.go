package turn

import (
	"bytes"
	"encoding/json"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Format is the form in which a provider takes tool definitions.
type Format string

// The formats.
const (
	FormatMCP       Format = "mcp"       // tools of tools/list: the loaded ones
	FormatAnthropic Format = "anthropic" // tools of the Messages API: the loaded ones, then the deferred with defer_loading
	FormatOpenAI    Format = "openai"    // functions of the Chat Completions API: the loaded ones
)

// Render writes the definitions of a surface as a JSON array, in the surface's order. Equal inputs give equal bytes.
// The only error is invalid_request, for an unknown format.
func Render(format Format, a *Admitted, s Surface) (json.RawMessage, error) {
	var entries []any
	add := func(names []string, deferred bool) {
		for _, name := range names {
			if d, ok := a.definition(name); ok {
				entries = append(entries, d.entry(format, deferred))
			}
		}
	}
	loaded, deferred := s.Loaded, s.Deferred
	switch format {
	case FormatAnthropic:
		// The API refuses a request in which every tool is deferred.
		if len(loaded) == 0 && len(deferred) > 0 {
			loaded, deferred = deferred[:1], deferred[1:]
		}
		add(loaded, false)
		add(deferred, true)
	case FormatMCP, FormatOpenAI:
		add(loaded, false)
	default:
		return nil, vakerr.New(vakerr.InvalidRequest, "unknown format %s", shown(string(format))).
			WithRemedy("the formats are mcp, anthropic and openai")
	}
	if entries == nil {
		entries = []any{}
	}
	return encode(entries), nil
}

// definition is what all formats are written from.
type definition struct {
	name, description string
	input             json.RawMessage
	tool              *capability.Tool         // a tool of this host, or
	observed          *capability.ObservedTool // a server's
}

func (a *Admitted) definition(name string) (definition, bool) {
	if t := a.Definition(name); t != nil {
		return definition{name: name, description: t.Description, input: t.InputSchema, tool: t}, true
	}
	if x, ok := a.ByExposedName(name); ok {
		return definition{name: name, description: x.Tool.Description, input: schema.Portable(x.Tool.InputSchema), observed: x.Tool}, true
	}
	return definition{}, false
}

func (d definition) entry(format Format, deferred bool) any {
	switch format {
	case FormatAnthropic:
		return struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"input_schema"`
			Defer       bool            `json:"defer_loading,omitempty"`
		}{d.name, d.description, d.schema(), deferred}
	case FormatOpenAI:
		type function struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		return struct {
			Type     string   `json:"type"`
			Function function `json:"function"`
		}{"function", function{d.name, d.description, d.schema()}}
	case FormatMCP:
	}
	if d.observed != nil {
		return d.served()
	}
	return d.mcp()
}

// schema is the input schema, or that of an object without properties where a tool has none.
func (d definition) schema() json.RawMessage {
	if len(bytes.TrimSpace(d.input)) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return d.input
}

func (d definition) mcp() any {
	type annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
	}
	return struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  annotations     `json:"annotations"`
	}{
		d.name, d.description, d.schema(), d.tool.OutputSchema,
		annotations{d.tool.ReadOnly, d.tool.Destructive, d.tool.Idempotent},
	}
}

// served is a server's own definition under its exposed name and with portable schemas, since one that a client or provider
// does not take can cost it every tool; all else is as the server gave it. Arguments are checked against the original.
func (d definition) served() any {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(d.observed.Definition, &fields) // catalogs hold objects only
	fields["name"] = encode(d.name)
	fields["inputSchema"] = d.schema()
	if output, has := fields["outputSchema"]; has {
		if fields["outputSchema"] = schema.Portable(output); !describesObject(output) {
			delete(fields, "outputSchema") // a result is structured as an object, or not at all
		}
	}
	return fields
}

func describesObject(raw json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(raw, &s) == nil && (s.Type == nil || s.Type == "object")
}

// encode keeps < and > as they are: definitions are read by models, not by browsers. Its inputs hold valid JSON only,
// which readers of declarations and catalogs have checked.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("turn: a definition holds invalid JSON: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
