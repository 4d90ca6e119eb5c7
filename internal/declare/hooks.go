package declare

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/hook"
)

// maxHooks bounds what one file of hooks may declare.
const maxHooks = 256

// HookFile is what a file of hooks says, whichever program it was written for.
type HookFile struct {
	Dialect  capability.Dialect
	Hooks    []HookEntry // in order of the file
	Problems []capability.Problem
	Broken   bool // it could not be read as a whole
}

// HookEntry is one handler, and where it stands: in which group of its event, and where in that. Programs that know no
// groups count the entries of an event.
type HookEntry struct {
	Group, Index int
	Line         int
	Hook         *capability.Hook
}

// ReadHooks reads a file of hooks. Whose it is follows from its path and from the shape of what it holds; no file is read
// in two dialects.
func ReadHooks(file string, raw []byte) HookFile {
	r := &hookReader{mcpReader: mcpReader{reporter: reporter{path: file}, client: clientOf(file)}}
	root, ok := r.parse(raw)
	if ok {
		r.file(root)
	}
	return HookFile{Dialect: r.dialect, Hooks: r.hooks, Problems: r.problems, Broken: !ok}
}

// readHooks is what a file of hooks contributes.
func readHooks(file string, raw []byte) *product {
	f := ReadHooks(file, raw)
	p := &product{problems: f.Problems, broken: f.Broken}
	names := map[string]*capability.Hook{}
	for _, e := range f.Hooks {
		e.Hook.Position = len(p.declarations)
		name := hookName(e.Hook)
		if _, twice := names[name]; twice {
			continue // the same handler for the same matcher runs once
		}
		names[name] = e.Hook
		p.declarations = append(p.declarations, capability.Declaration{
			ID: capability.ID{Kind: capability.KindHook, Name: name}, Summary: summary(hookSummary(e.Hook)), Source: file, Config: e.Hook,
		})
	}
	return p
}

// hookName is the id of a hook of another program: two handlers differ when their events, matchers or commands do.
func hookName(h *capability.Hook) string {
	name := h.Event
	if h.Match != "" {
		name += "[" + h.Match + "]"
	}
	if h.If != "" {
		name += "(" + h.If + ")"
	}
	what := strings.Join(config.MaskArgs(strings.Fields(h.Command+" "+strings.Join(h.Args, " "))), " ")
	switch {
	case h.Type == capability.HookHTTP:
		what = config.MaskURL(h.URL)
	case h.Command == "":
		what = string(h.Type)
	}
	const longest = 96
	whole := h.Command + "\x00" + strings.Join(h.Args, "\x00") + h.URL + h.Idle
	if len(what) > longest || what != h.Command && h.Type != capability.HookHTTP {
		what = strings.ToValidUTF8(what[:min(len(what), longest)], "") + "#" + capability.ContentDigest([]byte(whole))[:8]
	}
	return strings.ToValidUTF8(name[:min(len(name), 200)], "") + "/" + what
}

func hookSummary(h *capability.Hook) string {
	text := "runs at " + h.Event
	if h.Match != "" {
		text += " for " + h.Match
	}
	switch {
	case h.Refusal != "":
		return "refuses every tool call: " + h.Refusal
	case h.Idle != "":
		return "never runs here: " + h.Idle
	}
	return text
}

type hookReader struct {
	mcpReader
	dialect capability.Dialect
	flat    bool   // handlers stand in their event's list, without groups
	off     string // why no hook of the file runs; empty: they do
	hooks   []HookEntry
}

// file finds the hooks of a file: below hooks, or, in a file of hooks alone, at its top.
func (r *hookReader) file(root value) {
	section, found := root.find("hooks")
	events := section.value
	if !found {
		if !slices.ContainsFunc(root.members, func(m member) bool { return anyDialectHas(m.name) }) {
			return // settings without hooks
		}
		events, section.line = root, root.line
	}
	r.shape(events)
	if m, is := root.find("disableAllHooks"); is && m.value.text == "true" {
		r.off = "disableAllHooks is set in " + r.path
	}
	if events.kind != '{' {
		r.error("hook_shape", section.line, "hooks is no object of events", `write {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "..."}]}]}}`)
		return
	}
	for _, m := range r.members(events, "below hooks") {
		if found || anyDialectHas(m.name) {
			r.event(m)
		}
	}
}

func anyDialectHas(event string) bool {
	for _, d := range []capability.Dialect{capability.DialectClaude, capability.DialectGemini, capability.DialectCursor} {
		if _, known := hook.MomentOf(d, event); known {
			return true
		}
	}
	return false
}

// shape settles the dialect: by the path, and by whether the handlers stand in groups.
func (r *hookReader) shape(events value) {
	for _, m := range events.members {
		for _, item := range m.value.items {
			if _, grouped := item.find("hooks"); grouped {
				r.dialect = r.grouped()
				return
			}
			for _, key := range []string{"command", "bash", "powershell"} {
				if _, is := item.find(key); is {
					r.flat = true
				}
			}
		}
	}
	if r.dialect = r.grouped(); r.flat {
		r.dialect = capability.DialectCursor
	}
}

// grouped is the dialect of a file whose handlers stand in groups.
func (r *hookReader) grouped() capability.Dialect {
	switch folder := path.Base(path.Dir(r.path)); {
	case r.client == clientGemini:
		return capability.DialectGemini
	case r.client == clientCodex, folder == ".codex":
		return capability.DialectCodex
	}
	return capability.DialectClaude
}

func (r *hookReader) event(m member) {
	moment, known := hook.MomentOf(r.dialect, m.name)
	if !known {
		hint := "the events that run here: " + strings.Join(delivered(r.dialect), ", ")
		if near := config.Nearest(m.name, hook.EventsOf(r.dialect)); near != "" {
			hint = "did you mean " + near + "?"
		}
		r.error("hook_event", m.line, fmt.Sprintf("%s is no event of %s; what it holds never runs", quoted(m.name), dialectName(r.dialect)), hint)
		return
	}
	if m.value.kind != '[' {
		r.error("hook_shape", m.line, fmt.Sprintf("%s is no list of handlers; what it holds never runs", m.name), "write a list: [ ... ]")
		return
	}
	for i, item := range m.value.items {
		if item.kind != '{' {
			r.error("hook_shape", item.line, fmt.Sprintf("entry %d of %s is no object", i+1, m.name), "write { ... }, or remove it")
			continue
		}
		if r.flat {
			r.handler(handlerAt{event: m.name, moment: moment, group: i, item: item, line: item.line})
			continue
		}
		r.group(m.name, moment, i, item)
	}
}

// delivered lists the events of a dialect that happen here.
func delivered(d capability.Dialect) []string {
	return slices.DeleteFunc(hook.EventsOf(d), func(name string) bool {
		m, _ := hook.MomentOf(d, name)
		return m.Idle != ""
	})
}

// group reads a matcher and its handlers.
func (r *hookReader) group(event string, moment hook.Moment, i int, item value) {
	at := handlerAt{event: event, moment: moment, group: i}
	if m, is := item.find("matcher"); is && m.value.kind != 'n' {
		if m.value.kind != '"' {
			r.error("hook_matcher", m.line, fmt.Sprintf("the matcher of entry %d of %s is no text; its handlers are asked every time", i+1, event), `write "matcher": "Bash"`)
		}
		at.matcher = m.value.text
		r.matcher(m, at)
	}
	if m, is := item.find("sequential"); is {
		at.sequential = m.value.text == "true"
	}
	handlers, is := item.find("hooks")
	if !is || handlers.value.kind != '[' {
		r.error("hook_shape", item.line, fmt.Sprintf("entry %d of %s holds no list of hooks", i+1, event), `write "hooks": [{"type": "command", "command": "..."}]`)
		return
	}
	for n, h := range handlers.value.items {
		at.index, at.item, at.line = n, h, h.line
		r.handler(at)
	}
}

// matcher warns of texts that are read as a regular expression and were meant as something else.
func (r *hookReader) matcher(m member, at handlerAt) {
	text := m.value.text
	never := ""
	switch {
	case strings.Contains(text, " == ") || strings.Contains(text, "&&") || strings.Contains(text, " matches "):
		never = "is an expression"
	case strings.Contains(text, "(") && strings.HasSuffix(text, ")") && !strings.HasPrefix(text, "(") && !strings.Contains(text, "|"):
		never = "looks like a permission rule"
	case hook.MatchingOf(text) == hook.MatchNothing:
		r.warn("hook_matcher", m.line, fmt.Sprintf("the matcher of %s cannot be read as a regular expression; its handlers are asked every time", at.event),
			"write names such as Bash or Write|Edit, or an expression without look-around")
		return
	}
	if never != "" {
		r.warn("hook_matcher", m.line, fmt.Sprintf("the matcher of %s %s and not the name of a tool; as a regular expression it meets none", at.event, never),
			`write the tool as matcher, and the rest as "if": "Bash(git push *)"`)
	}
}

func dialectName(d capability.Dialect) string {
	switch d {
	case capability.DialectCodex:
		return "Codex"
	case capability.DialectGemini:
		return "Gemini"
	case capability.DialectCursor:
		return "Cursor"
	case capability.DialectVAK:
		return "this program"
	case capability.DialectClaude:
	}
	return "Claude Code"
}
