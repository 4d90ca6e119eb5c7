package turn

import (
	"strings"
	"unicode/utf8"
)

// maxSentence is the longest first sentence, in runes.
const maxSentence = 160

// FirstSentence is the first sentence of a description, on one line: up to a full stop, question or exclamation mark
// before white space, or an empty line. A longer one is cut, at a word where it can be.
func FirstSentence(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.Index(text, "\n\n"); i >= 0 {
		text = text[:i]
	}
	words := strings.Fields(text)
	length := 0
	for i, w := range words {
		runes := utf8.RuneCountInString(w)
		if length+runes > maxSentence {
			if i == 0 {
				return string([]rune(w)[:maxSentence]) + "…"
			}
			return strings.Join(words[:i], " ") + " …"
		}
		length += runes + 1
		if strings.ContainsRune(".!?", rune(w[len(w)-1])) && !abbreviation(w) {
			return strings.Join(words[:i+1], " ")
		}
	}
	return strings.Join(words, " ")
}

// abbreviation keeps "e.g." and its like from ending a sentence.
func abbreviation(word string) bool {
	switch strings.ToLower(strings.TrimLeft(word, "(")) {
	case "e.g.", "i.e.", "etc.", "vs.", "cf.":
		return true
	}
	return false
}
