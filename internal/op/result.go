package op

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Result is the outcome of a call.
type Result struct {
	// Content is a complete MCP CallToolResult object. That of a server is passed on as it came.
	Content json.RawMessage
	IsError bool // what Content says in isError

	Promote   []string           // names, as in Found, that the session loads from now on
	Retrieved capability.Domains // what the call retrieved from outside the host; nil: nothing
}

// callToolResult is the part of MCP's CallToolResult that is written here.
type callToolResult struct {
	Content    []textBlock `json:"content"`
	Structured any         `json:"structuredContent,omitempty"`
	IsError    bool        `json:"isError,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Text is a result of one text.
func Text(s string) Result {
	return Result{Content: encode(callToolResult{Content: []textBlock{{"text", s}}})}
}

// ErrorText is a tool's own failure, told in one text.
func ErrorText(s string) Result {
	return Result{IsError: true, Content: encode(callToolResult{Content: []textBlock{{"text", s}}, IsError: true})}
}

// Refusal is how an error is told to a model and to an agent loop.
type Refusal struct {
	Code         vakerr.Code `json:"code"`
	Reason       string      `json:"reason"`
	Remedy       string      `json:"remedy,omitempty"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"`
}

// Failure is the result that tells an error: {"error":{code,reason,remedy}} as text and as structured content. The error's
// private cause is left out.
func Failure(err *vakerr.Error) Result {
	told := struct {
		Error Refusal `json:"error"`
	}{Refusal{err.Code, err.Reason, err.Remedy, int64(err.RetryAfter / time.Millisecond)}}
	text := string(encode(told))
	return Result{IsError: true, Content: encode(callToolResult{
		Content: []textBlock{{"text", text}}, Structured: told, IsError: true,
	})}
}

// blocks is a list that is looked at and not read. Null stands for none: servers with an empty list write it.
type blocks struct{}

func (*blocks) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' && raw[0] != 'n' {
		return errors.New("content is no list")
	}
	return nil
}

// Passed is the result a server gave. Content is kept byte for byte; only whether it is an error is read from it.
func Passed(content json.RawMessage) (Result, error) {
	var read struct {
		Blocks  blocks `json:"content"`
		IsError bool   `json:"isError"`
	}
	if !isObject(content) {
		return Result{}, errNoResult(errors.New("it is no object"))
	}
	if err := json.Unmarshal(content, &read); err != nil {
		return Result{}, errNoResult(err)
	}
	return Result{Content: content, IsError: read.IsError}, nil
}

func errNoResult(cause error) error {
	return vakerr.New(vakerr.OutputInvalid, "the answer is no MCP tool result").
		WithRemedy("report it to the author of the server").WithCause(cause)
}

// Annotated returns the result with one more text at the end of its content; everything else in it is kept.
func (r Result) Annotated(text string) (Result, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(r.Content, &object); err != nil || object == nil {
		return r, errNoResult(err)
	}
	var blocks []json.RawMessage
	if raw, ok := object["content"]; ok {
		if err := json.Unmarshal(raw, &blocks); err != nil {
			return r, errNoResult(err)
		}
	}
	object["content"] = encode(append(blocks, encode(textBlock{"text", text})))
	r.Content = encode(object)
	return r, nil
}

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// encode writes values of this package, which always have a JSON form; <, > and & stay readable.
func encode(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("op: cannot encode %T: %v", v, err))
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}
