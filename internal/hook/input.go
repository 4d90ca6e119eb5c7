package hook

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
)

// Input is what hooks are told of an event. Each dialect writes it in its own way, see Encode.
type Input struct {
	Event     Event
	SessionID string
	Cwd       string // the workspace, absolute
	Mode      string // of the permissions
	Call      *Call  // for the events of a call
	Text      string // the prompt, the result of a call (a CallToolResult), or how a session ended
	Took      time.Duration
	Source    string // of session-start: startup
	KeepInput bool   // of pre-tool-use: what hooks want the input to be is not taken; they are not told
	Continued bool   // of stop: a hook has kept this session from stopping before
}

// MaxInput is the largest input a hook is given, in bytes of JSON. A longer Text is cut to fit; a call is never cut,
// because a hook that judged part of it would judge something else.
const MaxInput = 8 << 20

// Encode is the input as one line of JSON with its newline, as the hook's dialect writes it.
func (in Input) Encode(h *capability.Hook) ([]byte, error) {
	const room = 64 << 10 // for the escapes of a cut text and the other fields
	if longest := MaxInput/2 - room; len(in.Text) > longest {
		in.Text = strings.ToValidUTF8(in.Text[:longest], "")
	}
	var told any
	switch h.Dialect {
	case capability.DialectVAK:
		told = in.own()
	case capability.DialectCursor:
		told = in.cursor(h)
	case capability.DialectClaude, capability.DialectCodex, capability.DialectGemini:
		told = in.claude(h)
	}
	line, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the input: %w", err)
	}
	if len(line) > MaxInput {
		return nil, fmt.Errorf("the input has %d bytes, more than the %d a hook is given", len(line), MaxInput)
	}
	return append(line, '\n'), nil
}

// tool is a call as the own dialect tells it.
type tool struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (in Input) own() any {
	told := struct {
		Event     Event  `json:"event"`
		SessionID string `json:"session_id"`
		Cwd       string `json:"cwd"`
		Tool      *tool  `json:"tool,omitempty"`
		Text      string `json:"text,omitempty"`
	}{Event: in.Event, SessionID: in.SessionID, Cwd: in.Cwd, Text: in.Text}
	if in.Call != nil {
		told.Tool = &tool{in.Call.Name, in.Call.Input}
	}
	return told
}

// claude is the input of Claude Code, which Codex shares and Gemini has with other words for the events. There is no
// transcript file, so none is named.
func (in Input) claude(h *capability.Hook) map[string]any {
	told := map[string]any{"session_id": in.SessionID, "cwd": in.Cwd, "hook_event_name": h.Event}
	if in.Mode != "" {
		told["permission_mode"] = in.Mode
	}
	switch in.Event {
	case SessionStart:
		told["source"] = in.Source
	case SessionEnd:
		told["reason"] = in.endReason()
	case UserPrompt:
		told["prompt"] = in.Text
	case Stop:
		told["stop_hook_active"] = in.Continued
	case PreToolUse, PostToolUse, PostToolFailure:
		told["tool_name"] = toolNames(h.Dialect, in.Call)[0]
		told["tool_input"] = in.toolInput()
		told["tool_use_id"] = in.Call.ID
	}
	if in.Event == PostToolUse || in.Event == PostToolFailure {
		told["tool_response"] = response(in.Text)
		told["duration_ms"] = in.Took.Milliseconds()
	}
	return told
}

// endReason is why a session ended, in the words of Claude Code and Gemini; every other reason is "other" there.
func (in Input) endReason() string {
	switch in.Text {
	case "clear", "resume", "logout", "prompt_input_exit", "exit":
		return in.Text
	}
	return "other"
}

func (in Input) cursor(h *capability.Hook) map[string]any {
	told := map[string]any{"conversation_id": in.SessionID, "hook_event_name": h.Event, "workspace_roots": []string{in.Cwd}}
	switch in.Event {
	case UserPrompt:
		told["prompt"] = in.Text
	case Stop:
		told["status"] = "completed"
	case SessionEnd:
		told["reason"] = in.Text
	case SessionStart:
	case PreToolUse, PostToolUse, PostToolFailure:
		told["generation_id"] = in.Call.ID
		told["tool_name"] = toolNames(h.Dialect, in.Call)[0]
		told["tool_input"] = in.toolInput()
		in.cursorCall(told)
	}
	if in.Event == PostToolUse || in.Event == PostToolFailure {
		told["tool_output"] = in.Text
		told["duration"] = in.Took.Milliseconds()
	}
	return told
}

// cursorCall adds what the narrower events of Cursor name beside the tool.
func (in Input) cursorCall(told map[string]any) {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(in.Call.Input, &arguments) != nil {
		return
	}
	if command, is := arguments["command"]; is {
		told["command"], told["cwd"] = command, in.Cwd
	}
	if p, is := filePath(arguments, in.Cwd); is {
		told["file_path"] = p
	}
}

// toolInput is a call's arguments as other programs name them: a path also as an absolute file_path.
func (in Input) toolInput() json.RawMessage {
	if in.Call.Server != "" {
		return in.Call.ServerInput
	}
	var arguments map[string]json.RawMessage
	if json.Unmarshal(in.Call.Input, &arguments) != nil {
		return in.Call.Input
	}
	p, is := filePath(arguments, in.Cwd)
	if !is {
		return in.Call.Input
	}
	text, err := json.Marshal(p)
	if err != nil {
		return in.Call.Input
	}
	arguments["file_path"] = text
	told, err := json.Marshal(arguments)
	if err != nil {
		return in.Call.Input
	}
	return told
}

// filePath is the absolute spelling of the argument path; false where there is none, or file_path is the tool's own.
func filePath(arguments map[string]json.RawMessage, cwd string) (string, bool) {
	var p string
	if _, own := arguments["file_path"]; own || json.Unmarshal(arguments["path"], &p) != nil || p == "" {
		return "", false
	}
	if !path.IsAbs(p) {
		p = path.Join(cwd, p)
	}
	return p, true
}

// rewritten turns the input that a hook of another program wants back into arguments of the tool. merge keeps what the
// hook does not name.
func (in Input) rewritten(wanted json.RawMessage, merge bool) (json.RawMessage, error) {
	var after map[string]json.RawMessage
	if json.Unmarshal(wanted, &after) != nil || after == nil {
		return nil, fmt.Errorf("the input it wants is no JSON object")
	}
	before := map[string]json.RawMessage{}
	if err := json.Unmarshal(in.toolInput(), &before); err != nil {
		return nil, fmt.Errorf("the call's own input is no JSON object")
	}
	if merge {
		for name, value := range before {
			if _, named := after[name]; !named {
				after[name] = value
			}
		}
	}
	if in.Call.Server != "" {
		return in.brokered(after)
	}
	var own map[string]json.RawMessage
	_ = json.Unmarshal(in.Call.Input, &own)
	if _, added := filePath(own, in.Cwd); added {
		if named, is := after["file_path"]; is && string(named) != string(before["file_path"]) {
			after["path"] = named
		} else if _, has := after["path"]; !has {
			after["path"] = own["path"]
		}
		delete(after, "file_path")
	}
	return json.Marshal(after)
}

// brokered puts new arguments of a server's tool into the call of the broker.
func (in Input) brokered(arguments map[string]json.RawMessage) (json.RawMessage, error) {
	var call map[string]json.RawMessage
	if err := json.Unmarshal(in.Call.Input, &call); err != nil {
		return nil, fmt.Errorf("the call's own input is no JSON object")
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	call["arguments"] = text
	return json.Marshal(call)
}

// response is a tool's result as JSON where it is that, and as a text where not.
func response(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}
