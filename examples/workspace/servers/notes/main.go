// Command notes is a small MCP server: short notes, kept in a file, one JSON object a line.
//
// It speaks MCP over standard input and output with nothing but the standard library, to show how little a server is.
// Standard output carries the protocol and nothing else; what a person should read goes to standard error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
)

// maxLine bounds one message, in bytes.
const maxLine = 1 << 20

const protocolVersion = "2025-11-25"

// JSON-RPC error codes.
const (
	codeParse          = -32700
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
)

type request struct {
	ID     json.RawMessage `json:"id"` // nil for a notification, which gets no answer
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("notes: ")
	path := os.Getenv("NOTES_FILE")
	if path == "" {
		path = "notes.jsonl"
	}
	if err := serve(&store{path: path}, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// serve answers requests one after the other until the client closes its end.
func serve(notes *store, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var req request
		if err := json.Unmarshal(lines.Bytes(), &req); err != nil {
			broken := response{"2.0", json.RawMessage("null"), nil, &rpcError{codeParse, "this is no JSON-RPC message"}}
			if err := answers.Encode(broken); err != nil {
				return err
			}
			continue
		}
		if req.ID == nil {
			continue
		}
		result, failure := handle(notes, req)
		if err := answers.Encode(response{"2.0", req.ID, result, failure}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func handle(notes *store, req request) (any, *rpcError) {
	switch req.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": protocolVersion,
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": "notes", "version": "1.0.0"},
		}, nil
	case "ping":
		return map[string]any{}, nil
	case "tools/list":
		return map[string]any{"tools": catalog}, nil
	case "tools/call":
		return call(notes, req.Params)
	}
	return nil, &rpcError{codeMethodNotFound, fmt.Sprintf("the method %q is not known here", req.Method)}
}

// call runs one tool. A tool that fails is a result with isError, so that the model can read why; only a call that names
// no tool at all is an error of the protocol.
func call(notes *store, raw json.RawMessage) (any, *rpcError) {
	var params struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, &rpcError{codeInvalidParams, "params must be an object with a name and arguments that fit the tool"}
	}
	run, ok := tools[params.Name]
	if !ok {
		return nil, &rpcError{codeInvalidParams, fmt.Sprintf("there is no tool %q", params.Name)}
	}
	text, err := run(notes, params.Arguments)
	if err != nil {
		text = err.Error()
	}
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"isError": err != nil,
	}, nil
}
