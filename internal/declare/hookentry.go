package declare

import (
	"fmt"
	"strconv"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/hook"
	"github.com/vak-actors/vak-actors/internal/policy"
)

// handlerAt is one handler with what it inherits from where it stands.
type handlerAt struct {
	event        string
	moment       hook.Moment
	matcher      string
	sequential   bool
	group, index int
	item         value
	line         int
}

func (at handlerAt) String() string {
	return fmt.Sprintf("handler %d.%d of %s", at.group, at.index, at.event)
}

// handler reads one handler.
func (r *hookReader) handler(at handlerAt) {
	if len(r.hooks) == maxHooks {
		r.error("too_many", at.line, fmt.Sprintf("hooks beyond the first %d are left out", maxHooks), "remove what is not needed")
		return
	}
	if at.item.kind != '{' {
		r.error("hook_shape", at.line, fmt.Sprintf("%s is no object", at), "write { ... }, or remove it")
		return
	}
	h := &capability.Hook{
		Event: at.event, Dialect: r.dialect, Match: at.matcher, Sequential: at.sequential || r.dialect == capability.DialectVAK,
		FailureMode: capability.FailOpen, Idle: at.moment.Idle,
	}
	if h.Match == "*" {
		h.Match = ""
	}
	if r.off != "" {
		h.Idle = r.off
	}
	e := &handlerReader{hookReader: r, at: at, hook: h}
	if e.read() {
		r.hooks = append(r.hooks, HookEntry{at.group, at.index, at.line, h})
	}
}

type handlerReader struct {
	*hookReader
	at   handlerAt
	hook *capability.Hook
}

// read reports false for a handler that is left out. One that is, or may be, fail-closed never is: it refuses instead.
func (e *handlerReader) read() bool {
	e.mode()
	e.timeout()
	if m, is := e.at.item.find("matcher"); is && e.flat {
		e.hook.Match = m.value.text
		e.matcher(m, e.at)
	}
	if m, is := e.at.item.find("if"); is {
		e.hook.If = m.value.text
		if _, err := policy.ParsePatternOf(e.dialect, m.value.text); err != nil {
			e.warn("hook_matcher", m.line, fmt.Sprintf("the rule of %s cannot be read, so it does not narrow when it is asked: %v", e.at, err), "write one permission rule")
		}
	}
	kind, why := e.kind()
	switch kind {
	case "command":
		return e.command()
	case "http":
		return e.http()
	case "prompt", "agent", "mcp_tool":
		e.hook.Type = capability.HookType(kind)
		e.hook.Command = e.text("prompt") + e.text("tool")
		if e.hook.Idle == "" {
			e.hook.Idle = "it asks a " + map[string]string{"prompt": "model", "agent": "model", "mcp_tool": "server's tool"}[kind] + ", which hooks here cannot"
		}
		return true
	}
	return e.leaveOut("hook_type", why, `write "type": "command"`)
}

func (e *handlerReader) kind() (kind, why string) {
	m, is := e.at.item.find("type")
	switch {
	case !is && e.flat:
		return "command", ""
	case !is:
		return "", "has no type"
	case m.value.kind != '"':
		return "", "has a type that is no text"
	}
	return m.value.text, fmt.Sprintf("has the unknown type %s", quoted(m.value.text))
}

// leaveOut reports why a handler cannot be used.
func (e *handlerReader) leaveOut(code, why, hint string) bool {
	if e.hook.FailureMode == capability.FailClosed {
		e.error(code, e.at.line, fmt.Sprintf("%s %s; it is fail-closed, so every tool call is blocked", e.at, why), hint)
		e.hook.Type, e.hook.Refusal, e.hook.Idle = capability.HookCommand, e.at.String()+" "+why, ""
		return true
	}
	e.error(code, e.at.line, fmt.Sprintf("%s %s and never runs", e.at, why), hint)
	return false
}

func (e *handlerReader) text(key string) string {
	m, _ := e.at.item.find(key)
	if m.value.kind != '"' {
		return ""
	}
	return m.value.text
}

func (e *handlerReader) command() bool {
	e.hook.Type = capability.HookCommand
	if e.hook.Command = e.text("command"); e.hook.Command == "" {
		e.hook.Command = e.text("bash")
	}
	if e.hook.Command == "" {
		return e.leaveOut("hook_command", "has no command", `write "command": "..."`)
	}
	m, is := e.at.item.find("args")
	if !is {
		return true
	}
	e.hook.Args = []string{}
	for _, item := range m.value.items {
		if item.kind != '"' {
			return e.leaveOut("hook_command", "has args that are no list of texts", `write "args": ["..."]`)
		}
		e.hook.Args = append(e.hook.Args, item.text)
	}
	return true
}

func (e *handlerReader) http() bool {
	e.hook.Type, e.hook.URL = capability.HookHTTP, e.text("url")
	if e.hook.URL == "" {
		return e.leaveOut("hook_command", "has no url", `write "url": "https://..."`)
	}
	if m, is := e.at.item.find("headers"); is {
		e.hook.Headers = map[string]string{}
		for _, h := range m.value.members {
			e.hook.Headers[h.name] = h.value.text
		}
	}
	if m, is := e.at.item.find("allowedEnvVars"); is {
		for _, item := range m.value.items {
			e.hook.AllowedEnv = append(e.hook.AllowedEnv, item.text)
		}
	}
	return true
}

// mode reads the one failure mode that another program has.
func (e *handlerReader) mode() {
	m, is := e.at.item.find("failClosed")
	if !is {
		return
	}
	if m.value.text != "false" {
		e.hook.FailureMode = capability.FailClosed
	}
	if m.value.kind != 't' {
		e.error("hook_shape", m.line, fmt.Sprintf("failClosed of %s is neither true nor false; it counts as true", e.at), "write true or false")
	}
}

// Bounds of a hook's time, and what holds where nothing is written.
const (
	maxHookTime    = 10 * time.Minute
	geminiHookTime = time.Minute
	promptHookTime = 30 * time.Second
	endHookTime    = 1500 * time.Millisecond
	odd            = 1000 // seconds from which on milliseconds were meant
)

func (e *handlerReader) timeout() {
	e.hook.Timeout = maxHookTime
	switch {
	case e.dialect == capability.DialectGemini:
		e.hook.Timeout = geminiHookTime
	case len(e.at.moment.Events) > 0 && e.at.moment.Events[0] == hook.UserPrompt:
		e.hook.Timeout = promptHookTime
	case len(e.at.moment.Events) > 0 && e.at.moment.Events[0] == hook.SessionEnd:
		e.hook.Timeout = endHookTime
	}
	m, is := e.at.item.find("timeout")
	if !is {
		m, is = e.at.item.find("timeoutSec")
	}
	if !is {
		return
	}
	unit := time.Second
	if e.dialect == capability.DialectGemini {
		unit = time.Millisecond
	}
	n, err := strconv.ParseFloat(m.value.text, 64)
	if err != nil || m.value.kind != '0' || n <= 0 {
		e.error("hook_timeout", m.line, fmt.Sprintf("the timeout of %s is no number above 0; %s holds", e.at, e.hook.Timeout), "write a number of "+unitName(unit))
		return
	}
	if unit == time.Second && n >= odd {
		e.warn("hook_timeout", m.line, fmt.Sprintf("the timeout of %s is %g seconds; milliseconds were probably meant", e.at, n), "write seconds")
	}
	e.hook.Timeout = min(time.Duration(min(n, float64(maxHookTime/unit))*float64(unit)), maxHookTime)
}

func unitName(unit time.Duration) string {
	if unit == time.Millisecond {
		return "milliseconds"
	}
	return "seconds"
}
