package declare

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxFrontmatter bounds the metadata of a document, in bytes with its fences.
const maxFrontmatter = 64 << 10

// document is a Markdown file, split. There is exactly one splitter: two that split one file differently could be shown
// two different names for it.
type document struct {
	front    []byte // the text between the fences; nil when there is none
	body     []byte // everything after them; line ends are \n
	bodyLine int    // 1-based line of the file on which body begins
}

// normalise strips a byte-order mark and turns CRLF into LF, so that a file means the same whichever editor wrote it.
func normalise(text []byte) ([]byte, *fault) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if at := invalidUTF8(text); at >= 0 {
		return nil, &fault{
			"file_not_text", 1 + bytes.Count(text[:at], []byte("\n")),
			"the file is no UTF-8 text", "save it as UTF-8",
		}
	}
	if before, _, ok := bytes.Cut(text, []byte{0}); ok {
		return nil, &fault{
			"file_not_text", 1 + bytes.Count(before, []byte("\n")),
			"the file holds a NUL byte", "save it as text",
		}
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), nil
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// split separates the metadata from the body of a normalised text. Metadata begins with --- on the first line and ends
// with the next line that is --- ; blanks at the end of a fence do not count.
func split(text []byte) (document, *fault) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !fence(first) {
		return document{body: text, bodyLine: 1}, nil
	}
	window := rest[:min(len(rest), maxFrontmatter)]
	for at, line := 0, 2; at <= len(window); line++ {
		end := bytes.IndexByte(window[at:], '\n')
		if end < 0 {
			end = len(window) - at
			if len(window) < len(rest) {
				break // the line is cut by the bound, so nobody knows what it is
			}
		}
		if fence(window[at : at+end]) {
			body := rest[min(at+end+1, len(rest)):]
			return document{front: window[:at:at], body: body, bodyLine: line + 1}, nil
		}
		at += end + 1
	}
	if len(rest) > maxFrontmatter {
		return document{}, &fault{
			"frontmatter_too_large", 1, fmt.Sprintf("the metadata does not end within %d KiB", maxFrontmatter>>10),
			"close it with a line ---, and move long texts into the body",
		}
	}
	return document{}, unclosed(window)
}

func fence(line []byte) bool { return string(bytes.TrimRight(line, " \t\r")) == "---" }

// unclosed says why the metadata never ends: the traps that formatters and generators set.
func unclosed(front []byte) *fault {
	f := &fault{"frontmatter_unclosed", 1, "the metadata that begins on line 1 never ends", "close it with a line ---"}
	line := 1
	for text := range bytes.Lines(front) {
		line++
		trimmed := bytes.TrimSpace(text)
		switch {
		case len(trimmed) > 3 && len(bytes.Trim(trimmed, "-")) == 0:
			f.line, f.hint = line, "a formatter stretched the closing line; write exactly ---"
			return f
		case bytes.HasSuffix(trimmed, []byte("---")) && bytes.Contains(trimmed, []byte(": ")):
			f.line, f.hint = line, "the closing --- is glued to this value; put it on a line of its own"
			return f
		}
	}
	return f
}

// misplaced explains a document whose metadata was meant to be there but does not stand on the first line; nil for one
// that has none.
func misplaced(body []byte) *fault {
	line := 0
	for text := range bytes.Lines(body[:min(len(body), 4096)]) {
		line++
		trimmed := bytes.TrimSpace(text)
		switch {
		case len(trimmed) == 0:
		case fence(bytes.TrimRight(text, "\n")):
			return &fault{"frontmatter_misplaced", line, "the metadata does not begin on line 1", "remove what stands before the first ---"}
		case bytes.HasPrefix(trimmed, []byte("```")) && line <= 2:
			return &fault{"frontmatter_misplaced", line, "the metadata stands inside a code fence", "remove the line with the backticks, and the one that closes it"}
		case line > 20:
			return nil
		}
	}
	return nil
}

// metadataFrom reports whether what follows the fence on a line is metadata, and not the text after a rule.
func metadataFrom(body []byte, line int) bool {
	for range line {
		_, body, _ = bytes.Cut(body, []byte("\n"))
	}
	keys := 0
	for text := range bytes.Lines(body[:min(len(body), maxFrontmatter)]) {
		switch text = bytes.TrimRight(text, "\r\n"); {
		case fence(text):
			return keys > 0
		case topLevelKey.Match(text):
			keys++
		case len(bytes.TrimSpace(text)) == 0, text[0] == ' ', text[0] == '-', text[0] == '#':
		default:
			return false
		}
	}
	return false
}
