package expand

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var errTooLarge = errors.New("the expansion is too large")

// placeholder is $ARGUMENTS, $ARGUMENTS[N] or $N, with what may escape it in front.
var placeholder = regexp.MustCompile(`\\?\$(?:ARGUMENTS(?:\[(\d{1,3})\])?|(\d{1,3})\b)`)

// substitute puts the arguments into a body. $ARGUMENTS is all of them as typed; $ARGUMENTS[N] and $N are single ones,
// counted from 0 and split as a shell would; one that was not given stays as written. \$ keeps a placeholder from being
// replaced. Where the body asks for none, arguments are appended.
func substitute(body, arguments string) (string, error) {
	words := split(arguments)
	var out strings.Builder
	asked, end := false, 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(body, -1) {
		out.WriteString(body[end:at[0]])
		end = at[1]
		text := body[at[0]:at[1]]
		switch {
		case text[0] == '\\':
			text = text[1:]
		case at[2] < 0 && at[4] < 0:
			text, asked = arguments, true
		default:
			index := body[max(at[2], at[4]):max(at[3], at[5])]
			if n, err := strconv.Atoi(index); err == nil && n < len(words) {
				text, asked = words[n], true
			}
		}
		out.WriteString(text)
		if out.Len() > MaxBytes {
			return "", errTooLarge
		}
	}
	out.WriteString(body[end:])
	text := out.String()
	if !asked {
		text = withArguments(text, arguments)
	}
	if len(text) > MaxBytes {
		return "", errTooLarge
	}
	return text, nil
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
