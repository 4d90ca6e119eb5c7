package expand

import (
	"regexp"
	"strings"
)

// markdown cuts a body of Markdown into parts: text, !`command` and blocks that begin with ```!, and @file. Commands and
// files stand at the begin of a line or after a blank, and never in a block of code: there they are examples.
func (w *writer) markdown(body string) {
	var open fence
	var script strings.Builder
	block := "" // the line that opened the script
	for line := range strings.Lines(body) {
		switch {
		case w.full():
			return
		case open.length > 0 && open.closedBy(line):
			if open.runs {
				w.command(strings.TrimRight(script.String(), "\n"))
				w.text(lineEnd(line))
				script.Reset()
			} else {
				w.text(line)
			}
			open = fence{}
		case open.runs:
			script.WriteString(line)
		case open.length > 0:
			w.text(w.substitute(line, true))
		default:
			if open = opened(line); open.runs {
				block = line
			} else if open.length > 0 {
				w.text(line)
			} else {
				w.line(line)
			}
		}
	}
	if open.runs { // one that is never closed is no block of commands
		w.text(block + script.String())
	}
}

// fence is an open block of code.
type fence struct {
	mark   byte
	length int
	runs   bool // its content is run
}

func opened(line string) fence {
	text := strings.TrimLeft(line, " \t")
	for _, mark := range []byte{'`', '~'} {
		rest := strings.TrimLeft(text, string(mark))
		length := len(text) - len(rest)
		if info := strings.TrimSpace(rest); length >= 3 && (mark == '~' || !strings.Contains(info, "`")) {
			return fence{mark, length, mark == '`' && info == "!"}
		}
	}
	return fence{}
}

func (f fence) closedBy(line string) bool {
	text := strings.TrimSpace(line)
	return len(text) >= f.length && strings.Trim(text, string(f.mark)) == ""
}

func lineEnd(line string) string {
	if strings.HasSuffix(line, "\n") {
		return "\n"
	}
	return ""
}

var inline = regexp.MustCompile("(^|[ \t])(?:!`([^`\n]+)`|@([^\\s`'\"<>|*?;]+))|`+")

// line cuts a line outside of blocks.
func (w *writer) line(line string) {
	end := 0
	for end <= len(line) && !w.full() {
		at := inline.FindStringSubmatchIndex(line[end:])
		if at == nil {
			break
		}
		for i := range at {
			if at[i] >= 0 {
				at[i] += end
			}
		}
		switch {
		case line[at[0]] != '`' && !(at[0] == 0 || isBlank(line[at[0]-1]) || isBlank(line[at[0]])):
			at[1] = at[0] + 1 // the begin of what is left is no begin of the line
			w.text(w.substitute(line[end:at[1]], false))
		case at[4] >= 0:
			w.text(w.substitute(line[end:at[3]], false))
			w.command(line[at[4]:at[5]])
		case at[6] >= 0:
			mention := strings.TrimRight(line[at[6]:at[7]], ".,:)]}!")
			at[1] = at[6] + len(mention)
			w.text(w.substitute(line[end:at[3]], false))
			w.mention(mention)
		default:
			at[1] = codeSpan(line, at[0], at[1])
			w.text(w.substitute(line[end:at[1]], false))
		}
		end = at[1]
	}
	w.text(w.substitute(line[end:], false))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// codeSpan is the end of the code that begins with the marks between from and to; the end of the marks where it is never
// closed.
func codeSpan(line string, from, to int) int {
	marks := line[from:to]
	for rest := to; ; {
		at := strings.Index(line[rest:], marks)
		if at < 0 {
			return to
		}
		begin := rest + at
		end := begin + len(marks)
		for end < len(line) && line[end] == '`' {
			end++
		}
		if end-begin == len(marks) {
			return end
		}
		rest = end
	}
}

func (w *writer) command(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	w.add(Part{Kind: Command, Text: w.substitute(line, false)})
}

// mention adds a file that the text speaks of. What cannot be a path, or is an address or a name of a package to everybody,
// is text.
func (w *writer) mention(name string) {
	p := w.substitute(name, false)
	if p == "" || !strings.ContainsAny(p, "./") || strings.Contains(p, "://") || strings.ContainsAny(p, "\n\x00") {
		w.text("@" + p)
		return
	}
	w.add(Part{Kind: Mention, Text: "@" + p, Path: p})
}
