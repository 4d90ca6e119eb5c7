package expand

import (
	"regexp"
	"strconv"
	"strings"
)

// placeholder is $ARGUMENTS, $ARGUMENTS[N], $N, ${CLAUDE_NAME} or $name, with what may escape it in front.
var placeholder = regexp.MustCompile(`\\?\$(?:ARGUMENTS(?:\[(\d{1,3})\])?|(\d{1,3})\b|\{(CLAUDE_[A-Z_]+)\}|([A-Za-z_][A-Za-z0-9_-]*))`)

// substitute puts arguments and facts into a text. $ARGUMENTS is all of the arguments as typed; $ARGUMENTS[N] and $N are
// single ones, counted from 0 and split as a shell would, and one that was not given stays as written; $name is one that
// the document names, empty when it was not given. \$ keeps a placeholder from being replaced. In a block of code $N and
// $name are that code's own.
func (w *writer) substitute(text string, code bool) string {
	var out strings.Builder
	end := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		if w.size+out.Len() > MaxBytes {
			w.size += out.Len()
			return ""
		}
		if at[0] < end {
			continue
		}
		whole := text[at[0]:at[1]]
		value, used, argument, found := w.value(text, at, code)
		switch {
		case !found:
			continue // what is no placeholder here keeps its backslash, too
		case whole[0] == '\\':
			value = whole[1:used]
		default:
			w.asked = w.asked || argument
		}
		out.WriteString(text[end:at[0]])
		out.WriteString(value)
		end = at[0] + used
	}
	out.WriteString(text[end:])
	return out.String()
}

var factPlaceholder = regexp.MustCompile(`\\?\$\{(CLAUDE_[A-Z_]+)\}`)

// known puts facts alone into a text.
func (w *writer) known(text string) string {
	return factPlaceholder.ReplaceAllStringFunc(text, func(whole string) string {
		value, found := w.fact(strings.TrimSuffix(whole[strings.IndexByte(whole, '{')+1:], "}"))
		switch {
		case !found:
			return whole
		case whole[0] == '\\':
			return whole[1:]
		}
		return value
	})
}

// value is what a match stands for, and how many bytes of it are the placeholder.
func (w *writer) value(text string, at []int, code bool) (value string, used int, argument, found bool) {
	group := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return text[at[2*n]:at[2*n+1]]
	}
	used = at[1] - at[0]
	escaped := text[at[0]] == '\\'
	index, indexed := group(1), at[2] >= 0
	if at[4] >= 0 {
		index, indexed = group(2), true
		if code {
			return "", 0, false, false
		}
	}
	switch {
	case indexed:
		n, err := strconv.Atoi(index)
		if err == nil && n < len(w.words) {
			return w.words[n], used, true, true
		}
		return "", used, false, escaped
	case at[6] >= 0:
		value, found = w.fact(group(3))
		return value, used, false, found
	case at[8] >= 0:
		name := w.name(group(4))
		if name == "" || code {
			return "", 0, false, false
		}
		return w.named[name], used - len(group(4)) + len(name), true, true
	}
	return w.arguments, used, true, true
}

// name is the longest declared name that the text begins with.
func (w *writer) name(text string) string {
	for n := len(text); n > 0; n-- {
		if _, declared := w.named[text[:n]]; declared {
			return text[:n]
		}
	}
	return ""
}

// fact is what a document may know of where it runs. A fact that there is not leaves the placeholder as written.
func (w *writer) fact(name string) (string, bool) {
	var value string
	switch name {
	case "CLAUDE_SESSION_ID":
		value = w.facts.Session
	case "CLAUDE_PROJECT_DIR":
		value = w.facts.Project
	case "CLAUDE_SKILL_DIR":
		value = w.skillDir
	case "CLAUDE_PLUGIN_ROOT":
		value = w.invocation.Root.Path
	case "CLAUDE_PLUGIN_DATA":
		value = w.invocation.Root.Data
	case "CLAUDE_EFFORT":
		value = w.invocation.Effort
	}
	return value, value != ""
}

// split cuts arguments at white space; quotes hold a word together and a backslash keeps what follows it. An open quote
// ends with the text.
func split(arguments string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range arguments {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}
