// Command client connects to the server at the URL in its last argument the way the pool does, lists the tools and calls each
// with arguments made from its schema. The official conformance suite runs it against servers of its own.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/internal/mcpio"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: client URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	era := mcpio.EraAuto
	if os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION") > "2026" {
		era = mcpio.EraModern // the suite's servers speak both, and want to see this one
	}
	if err := run(ctx, os.Args[1], era); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, era mcpio.Era) error {
	conn, catalog, _, err := mcpio.Connect(ctx, mcpio.Spec{
		Name: "suite", Transport: mcpio.HTTP, Era: era, URL: url, ClientVersion: "conformance",
		Capabilities: json.RawMessage(declared),
	}, mcpio.Handlers{})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, c := range calls(catalog) {
		result, err := conn.CallTool(ctx, c.Name, c.Arguments, mcpio.CallOptions{Owner: "suite", Client: person{}})
		fmt.Printf("%s: %s %v\n", c.Name, result, err)
	}
	return nil
}

// call is one call to be made.
type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// calls are those that the suite asks for, or else one of each tool.
func calls(catalog mcpio.Catalog) []call {
	var asked struct {
		Calls []call `json:"toolCalls"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &asked) == nil && len(asked.Calls) > 0 {
		return asked.Calls
	}
	schemas := map[string]json.RawMessage{}
	for _, t := range catalog.Tools {
		schemas[t.Name] = t.InputSchema
	}
	var all []call
	for _, t := range catalog.Tools {
		c := call{t.Name, arguments(t.InputSchema)}
		if schema := schemas["json_schema_2020_12_tool"]; t.Name == "json_schema_echo" && schema != nil {
			c.Arguments = json.RawMessage(`{"schema":` + string(schema) + `}`) // it compares what arrived with what it sent
		}
		all = append(all, c)
	}
	return all
}

const declared = `{"elicitation":{"form":{"applyDefaults":true}},"roots":{},"sampling":{}}`

// property is what arguments are made from.
type property struct {
	Type       string              `json:"type"`
	Default    json.RawMessage     `json:"default"`
	Enum       []json.RawMessage   `json:"enum"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

// arguments is an object that fits a schema, as far as types, defaults and enumerations go.
func arguments(schema json.RawMessage) json.RawMessage {
	var p property
	if json.Unmarshal(schema, &p) != nil {
		return json.RawMessage(`{}`)
	}
	return p.value(true)
}

// value is a value of a property; all says whether an object gets what is not required of it, too.
func (p property) value(all bool) json.RawMessage {
	switch {
	case p.Default != nil:
		return p.Default
	case len(p.Enum) > 0:
		return p.Enum[0]
	}
	switch p.Type {
	case "string":
		return json.RawMessage(`"test"`)
	case "integer", "number":
		return json.RawMessage(`1`)
	case "boolean":
		return json.RawMessage(`true`)
	case "array":
		return json.RawMessage(`[]`)
	}
	fields := map[string]json.RawMessage{}
	for name, inner := range p.Properties {
		if all || slices.Contains(p.Required, name) || inner.Default != nil {
			fields[name] = inner.value(all)
		}
	}
	text, _ := json.Marshal(fields) // of JSON values
	return text
}

// person answers what servers ask.
type person struct{}

func (person) Ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "roots/list":
		return json.RawMessage(`{"roots":[]}`), nil
	case "sampling/createMessage":
		return json.RawMessage(`{"role":"assistant","model":"none","content":{"type":"text","text":"test"},"stopReason":"endTurn"}`), nil
	}
	var p struct {
		Schema property `json:"requestedSchema"`
	}
	_ = json.Unmarshal(params, &p) // without a schema there is nothing to fill in
	return json.Marshal(map[string]any{"action": "accept", "content": p.Schema.value(false)})
}

func (person) Tell(string, json.RawMessage)  {}
func (person) Capabilities() json.RawMessage { return json.RawMessage(declared) }
func (person) TakesQuestions() bool          { return false }
func (person) WantsProgress() bool           { return false }
func (person) LogLevel() string              { return "" }
