package policy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellWord is a word of a command without the quotes it does not need.
type shellWord struct {
	text  string
	plain bool // the shell takes it as it is: it puts no variable, output or file name in its place
}

// maxWords bounds what the braces of one command are written out to.
const maxWords = 1024

// shellWords writes out the words of a command; false where they are too many.
func shellWords(args []*syntax.Word) (words []shellWord, ok bool) {
	for _, a := range args {
		for _, parts := range writeOut(a.Parts, maxWords) {
			words = append(words, wordOf(&syntax.Word{Parts: parts}))
		}
		if len(words) > maxWords {
			return nil, false
		}
	}
	return words, true
}

func textsOf(words []shellWord) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return texts
}

// writeOut replaces {a,b} by one word for each of them, most+1 at the most. A range such as {1..9} stays.
func writeOut(parts []syntax.WordPart, most int) [][]syntax.WordPart {
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), parts...)}
	syntax.SplitBraces(split)
	return product(split.Parts, most)
}

func product(parts []syntax.WordPart, most int) [][]syntax.WordPart {
	all := [][]syntax.WordPart{nil}
	for _, p := range parts {
		options := [][]syntax.WordPart{{p}}
		if brace, is := p.(*syntax.BraceExp); is && !brace.Sequence {
			options = nil
			for _, e := range brace.Elems {
				options = append(options, product(e.Parts, most)...)
			}
		}
		var next [][]syntax.WordPart
		for _, before := range all {
			for _, o := range options {
				if len(next) > most {
					break
				}
				next = append(next, append(append([]syntax.WordPart(nil), before...), o...))
			}
		}
		all = next
	}
	return all
}

// wordOf reads one word.
func wordOf(w *syntax.Word) shellWord {
	out := shellWord{plain: true}
	if w == nil {
		return out
	}
	split := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	out.plain = !syntax.SplitBraces(split)
	var b strings.Builder
	for _, p := range w.Parts {
		if lit, is := p.(*syntax.Lit); is && globs(lit.Value) {
			out.plain = false
		}
		out.plain = partText(&b, p) && out.plain
	}
	out.text = b.String()
	return out
}

// globs reports whether a text without quotes holds a sign that the shell replaces by names of files.
func globs(lit string) bool {
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			if strings.Contains(lit[i:], "]") {
				return true
			}
		}
	}
	return false
}

// partText writes a part, and reports whether the shell takes it as it is.
func partText(b *strings.Builder, p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value))
		return true
	case *syntax.SglQuoted:
		if p.Dollar {
			b.WriteString(ansiText(p.Value))
		} else {
			b.WriteString(p.Value)
		}
		return true
	case *syntax.DblQuoted:
		plain := true
		for _, inner := range p.Parts {
			if lit, is := inner.(*syntax.Lit); is {
				b.WriteString(unescapeQuoted(lit.Value))
				continue
			}
			plain = partText(b, inner) && plain
		}
		return plain
	}
	_ = syntax.NewPrinter().Print(b, p) // as written, so that a rule can name it
	return false
}

// unescape takes the backslashes from a literal: \rm runs rm.
func unescape(lit string) string { return unescapeWhere(lit, func(byte) bool { return true }) }

// unescapeQuoted does so within double quotes, where few characters can be escaped.
func unescapeQuoted(lit string) string {
	return unescapeWhere(lit, func(c byte) bool { return strings.IndexByte("$`\"\\\n", c) >= 0 })
}

func unescapeWhere(lit string, escapes func(byte) bool) string {
	if !strings.Contains(lit, `\`) {
		return lit
	}
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) && escapes(lit[i+1]) {
			i++
			if lit[i] == '\n' {
				continue
			}
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}

var ansiLetters = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': '\n', 'r': '\r', 't': '\t', 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiText reads the escapes of $'...'.
func ansiText(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if c, known := ansiLetters[text[i]]; known {
			b.WriteByte(c)
			continue
		}
		digits, base, from := 0, 16, i+1
		switch c := text[i]; {
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			digits, base, from = 3, 8, i
		}
		end := from
		for end < len(text) && end-from < digits && isDigit(text[end], base) {
			end++
		}
		if n, err := strconv.ParseUint(text[from:end], base, 32); err == nil {
			if base == 8 || text[i] == 'x' {
				b.WriteByte(byte(n))
			} else {
				b.WriteRune(rune(n))
			}
			i = end - 1
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(text[i])
	}
	return b.String()
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}
