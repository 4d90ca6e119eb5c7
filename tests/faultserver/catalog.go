package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const anyArguments = `{"type":"object"}`

// catalog is the list of tools as raw JSON values.
func (s *server) catalog() []string {
	if s.o.catalogFile != "" {
		return readCatalog(s.o.catalogFile)
	}
	tools := []string{
		tool("echo", "Returns its text.", `{"type":"object","properties":{"text":{"type":"string"}}}`, readOnly),
		tool("add", "Adds two numbers.",
			`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`, readOnly),
		tool("sleep", "Answers after ms milliseconds.", `{"type":"object","properties":{"ms":{"type":"integer"}}}`, readOnly),
		tool("slow", "Reports progress steps times, then answers.", `{"type":"object","properties":{"steps":{"type":"integer"}}}`, readOnly),
		tool("env", "Returns the environment.", anyArguments, readOnly),
		tool("crash", "Exits with status 3 in the middle of the call.", anyArguments, ""),
		tool("big", "Returns bytes bytes of text.", `{"type":"object","properties":{"bytes":{"type":"integer"}}}`, readOnly),
		tool("nan", "Returns a number that is no JSON.", anyArguments, readOnly),
		tool("counter", "Counts its calls.", anyArguments, ""),
		tool("write", "Pretends to change something.", anyArguments, `{"destructiveHint":true}`),
		tool("fail", "Returns a tool error.", anyArguments, readOnly),
		tool("cancelled", "Counts the cancellations received.", anyArguments, readOnly),
		tool("ask", "Sends the client a request and returns its answer.",
			`{"type":"object","properties":{"method":{"type":"string"},"params":{"type":"object"}}}`, ""),
		tool("log", "Sends a log message.", `{"type":"object","properties":{"text":{"type":"string"}}}`, readOnly),
		tool("touch", "Says that a resource was updated.", `{"type":"object","properties":{"uri":{"type":"string"}}}`, readOnly),
		tool("level", "Returns the level of log messages.", anyArguments, readOnly),
		tool("asked", "Returns what the client answered.", anyArguments, readOnly),
		tool("grandchild", "Returns the pid of the grandchild.", anyArguments, readOnly),
	}
	if s.o.duplicate {
		tools = append(tools, tool("echo", "A second echo.", anyArguments, ""))
	}
	if s.o.schema != "" {
		tools = append(tools, badTool(s.o.schema))
	}
	if s.o.leakEnv != "" {
		quoted, _ := json.Marshal(s.leak(""))
		tools = append(tools, tool("leak", "Uses the key"+s.leak(" "),
			`{"type":"object","properties":{"key":{"type":"string","default":`+string(quoted)+`}}}`, ""))
	}
	for i := range s.o.tools {
		tools = append(tools, tool(fmt.Sprintf("plain%04d", i), "One of many.", anyArguments, ""))
	}
	return tools
}

const readOnly = `{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}`

func tool(name, description, schema, annotations string) string {
	if annotations == "" {
		annotations = `{}`
	}
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s,"annotations":%s}`, name, description, schema, annotations)
}

func badTool(kind string) string {
	switch kind {
	case "null":
		return `{"name":"bad","inputSchema":null}`
	case "missing":
		return `{"name":"bad"}`
	case "untyped":
		return `{"name":"bad","inputSchema":{"properties":{"a":{"type":"string"}}}}`
	case "array":
		return `{"name":"bad","inputSchema":{"type":["object","null"]}}`
	case "string":
		return `{"name":"bad","inputSchema":{"type":"string"}}`
	}
	fatal(fmt.Errorf("unknown -schema %q", kind))
	return ""
}

func readCatalog(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		fatal(err)
	}
	tools := make([]string, len(raw))
	for i := range raw {
		tools[i] = string(raw[i])
	}
	return tools
}

// list answers tools/list. A cursor is the index of the first tool of a page.
func (s *server) list(m message, send sender) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &p)
	all := s.catalog()
	first, _ := strconv.Atoi(p.Cursor)
	first = min(first, len(all))
	last := len(all)
	if s.o.page > 0 {
		last = min(first+s.o.page, len(all))
	}
	var next string
	switch {
	case s.o.repeatCursor:
		next = `,"nextCursor":"same"`
	case last < len(all):
		next = fmt.Sprintf(`,"nextCursor":"%d"`, last)
	}
	s.answer(m, send, `{"tools":[`+strings.Join(all[first:last], ",")+`]`+next+`}`)
}
