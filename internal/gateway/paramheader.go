package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// mirrored are the tools of a session some of whose arguments a client repeats in headers (x-mcp-header).
type mirrored struct {
	mu     sync.Mutex // guards what follows
	known  bool
	moved  uint64 // publications heard of when the tools were listed
	byName map[string]*mcp.Tool
}

// paramHeaders compares the arguments of a call with the headers that have to repeat them.
func (s *session) paramHeaders(m message, header http.Header) *rpcError {
	if m.Method != string(mcp.MethodToolsCall) {
		return nil
	}
	name, _ := mcp.ExtractHeaderName(mcp.MethodToolsCall, m.Params)
	tool := s.mirroring(name)
	if tool == nil {
		return nil
	}
	stated := func(name string) (value string, is bool) { // an empty argument is repeated by an empty header
		return header.Get(name), len(header.Values(name)) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(stated, tool, m.Params); err != nil {
		return mismatch("the headers do not repeat the arguments: %.200s", err.Error())
	}
	return nil
}

// mirroring is the tool of that name, if it has such arguments. The list is read once a publication.
func (s *session) mirroring(name string) *mcp.Tool {
	s.mu.Lock()
	moved := s.list.moved
	s.mu.Unlock()
	t := &s.mirrored
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known && t.moved == moved {
		return t.byName[name]
	}
	answer, err := s.tools(s.life)
	if err != nil {
		return nil // the call will be told why
	}
	t.known, t.moved, t.byName = true, moved, map[string]*mcp.Tool{}
	if !bytes.Contains(answer.GetToolsJson(), []byte(`"x-mcp-header"`)) {
		return nil
	}
	var definitions []json.RawMessage
	_ = json.Unmarshal(answer.GetToolsJson(), &definitions) // it was made by the session
	for _, raw := range definitions {
		tool := &mcp.Tool{}
		if bytes.Contains(raw, []byte(`"x-mcp-header"`)) && json.Unmarshal(raw, tool) == nil {
			t.byName[tool.Name] = tool
		}
	}
	return t.byName[name]
}
