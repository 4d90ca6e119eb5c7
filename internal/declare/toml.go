package declare

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/vak-actors/vak-actors/capability"
)

// tomlText is a text of a TOML file that stands at its top.
type tomlText struct {
	value string
	line  int
	text  bool // it is a text; false: something else
}

// topTexts reads what stands at the top of a TOML file, in time that grows with its length alone: the whole decoder
// compares every key with its siblings. Tables are skipped.
func topTexts(text []byte) (map[string]tomlText, *fault) {
	all := map[string]tomlText{}
	var p unstable.Parser
	p.Reset(text)
	for top := true; p.NextExpression(); {
		e := p.Expression()
		if e.Kind != unstable.KeyValue {
			top = top && e.Kind != unstable.Table && e.Kind != unstable.ArrayTable
			continue
		}
		key := e.Key()
		if !top || !key.Next() || !key.IsLast() {
			continue
		}
		name, line := string(key.Node().Data), 1+bytes.Count(text[:key.Node().Raw.Offset], []byte("\n"))
		if _, twice := all[name]; twice {
			return nil, &fault{"command_syntax", line, quoted(name) + " is written twice", "remove one of the two"}
		}
		value := e.Value()
		all[name] = tomlText{string(value.Data), line, value.Kind == unstable.String}
		if len(all) > maxKeys {
			return nil, &fault{"command_syntax", line, fmt.Sprintf("the file has more than %d keys", maxKeys), "remove what is not needed"}
		}
	}
	if err := p.Error(); err != nil {
		f := &fault{"command_syntax", 1, "this is no valid TOML", "repair the line"}
		if syntax, ok := errors.AsType[*unstable.ParserError](err); ok {
			if at := cap(text) - cap(syntax.Highlight); len(syntax.Highlight) > 0 && at >= 0 && at < len(text) {
				f.line += bytes.Count(text[:at], []byte("\n"))
			}
			f.message += ": " + syntax.Message
		}
		return nil, f
	}
	return all, nil
}

// promptTOML reads a command of Gemini: a prompt, and what it does.
func (r *reporter) promptTOML(d capability.Declaration, text []byte) *product {
	top, f := topTexts(text)
	if f != nil {
		r.fault(f)
		return r.failed()
	}
	prompt := top["prompt"]
	if !prompt.text || strings.TrimSpace(prompt.value) == "" {
		r.error("command_prompt", prompt.line, "the command has no prompt", `write prompt = """..."""`)
		return r.failed()
	}
	command := &capability.Command{Body: []byte(prompt.value), Invocation: capability.Invocation{Dialect: capability.DialectGemini}}
	switch description := top["description"]; {
	case description.text:
		command.Description = r.checkDescription(strings.TrimSpace(description.value), description.line)
	case description.line > 0:
		r.warn("frontmatter_type", description.line, "description is no text and is ignored", `write description = "one sentence"`)
	}
	return r.command(d, command, nil)
}
