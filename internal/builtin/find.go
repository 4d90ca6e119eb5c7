package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of find_tools.
const (
	findDefault = 5
	findMost    = 20
	findSchema  = 4 << 10  // bytes of a schema that is shown with an answer
	findSchemas = 16 << 10 // bytes of all schemas that are shown with one answer
)

func findToolsOp() op.Op {
	return op.Op{Run: findTools, Declaration: declaration("find_tools",
		"Finds tools by what they do and loads them.",
		"Describe the task in a few words. What is found can be called at once, also in the same session later.",
		`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
			"query":{"type":"string","minLength":1,"maxLength":500},
			"limit":{"type":"integer","minimum":1,"maximum":20,"description":"How many tools to return; 5 if absent."}}}`,
		nil, capability.Tool{ReadOnly: true, AlwaysLoaded: true},
	)}
}

func findTools(_ context.Context, c op.Call) (op.Result, error) {
	args := struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}{Limit: findDefault}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	if strings.TrimSpace(args.Query) == "" {
		return op.Result{}, vakerr.New(vakerr.InvalidArguments, "query is empty").WithRemedy("describe what the tool should do")
	}
	repeated := c.Bound.RepeatedSearch(args.Query)
	found := c.Bound.Search(args.Query, min(max(args.Limit, 1), findMost))
	var promote []string
	var text strings.Builder
	for _, hit := range found {
		if !hit.Known {
			promote = append(promote, hit.Name)
		}
	}
	text.WriteString(headline(len(found), len(promote), repeated))
	room := findSchemas
	for _, hit := range found {
		text.WriteString("\n\n" + howToCall(hit, min(room, findSchema)))
		room = max(0, room-len(hit.Schema))
	}
	result := op.Text(text.String())
	result.Promote = promote
	return result, nil
}

// headline says how much of the answer is news, so that a model that searches in circles notices.
func headline(found, fresh int, repeated bool) string {
	var line string
	switch {
	case found == 0:
		line = "No tool matches. Try other words for the task, or do without."
	case fresh == 0:
		line = fmt.Sprintf("%d tools match; none is new. Call one of them.", found)
	default:
		line = fmt.Sprintf("%d tools match; %d new, loaded now.", found, fresh)
	}
	if repeated {
		line += " You have made this search before; it has the same answer until the capabilities change."
	}
	return line
}

// howToCall describes a hit, with its schema where that takes at most so many bytes.
func howToCall(hit op.Found, room int) string {
	news := ""
	if !hit.Known {
		news = " (new)"
	}
	if hit.Server == "" {
		return fmt.Sprintf("%s%s: %s\nCall it by its name.", hit.Name, news, hit.Summary)
	}
	call, err := json.Marshal(struct {
		Action    string   `json:"action"`
		Server    string   `json:"server"`
		Tool      string   `json:"tool"`
		Arguments struct{} `json:"arguments"`
	}{Action: "call", Server: hit.Server, Tool: hit.Tool})
	if err != nil {
		call = nil
	}
	text := fmt.Sprintf("%s%s: %s\nCall mcp with %s", hit.Name, news, hit.Summary, call)
	if len(hit.Schema) > room {
		return text + "\nIts input schema is left out: read it with mcp, action list, with this server and tool."
	}
	return text + "\nSchema of arguments: " + string(hit.Schema)
}
