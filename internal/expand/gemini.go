package expand

import "strings"

// gemini cuts a prompt of Gemini into parts: {{args}}, @{file} and !{command}. In a command the arguments are one word of
// the shell. Where the prompt asks for none, the whole command follows it as it was typed.
func (w *writer) gemini(prompt string) {
	for prompt != "" && !w.full() {
		at := strings.IndexAny(prompt, "@!{")
		if at < 0 {
			break
		}
		w.text(prompt[:at])
		prompt = prompt[at:]
		switch {
		case strings.HasPrefix(prompt, geminiArgs):
			w.text(w.arguments)
			w.asked = true
			prompt = prompt[len(geminiArgs):]
		case strings.HasPrefix(prompt, "@{"), strings.HasPrefix(prompt, "!{"):
			inner, rest, closed := braced(prompt[1:])
			if !closed || strings.TrimSpace(inner) == "" {
				w.text(prompt[:2])
				prompt = prompt[2:]
				continue
			}
			if prompt[0] == '@' {
				w.add(Part{Kind: File, Path: strings.TrimSpace(w.put(inner, w.arguments))})
			} else {
				w.add(Part{Kind: Command, Text: strings.TrimSpace(w.put(inner, shellWord(w.arguments)))})
			}
			prompt = rest
		default:
			w.text(prompt[:1])
			prompt = prompt[1:]
		}
	}
	w.text(prompt)
}

const geminiArgs = "{{args}}"

// put puts arguments into what stands in braces.
func (w *writer) put(text, arguments string) string {
	n := strings.Count(text, geminiArgs)
	if w.asked = w.asked || n > 0; n*len(arguments) > MaxBytes {
		w.size += MaxBytes + 1
		return ""
	}
	return strings.ReplaceAll(text, geminiArgs, arguments)
}

// maxBraced bounds what stands in braces, in bytes; more is taken for text.
const maxBraced = 16 << 10

// braced cuts a text that begins with { after the } that belongs to it.
func braced(text string) (inner, rest string, closed bool) {
	depth := 0
	for i := range min(len(text), maxBraced) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[1:i], text[i+1:], true
			}
		}
	}
	return "", "", false
}

// shellWord is a text as one word of a POSIX shell; nothing for nothing.
func shellWord(text string) string {
	if text == "" {
		return ""
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
