package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxCommand bounds the shell commands that are parsed, in bytes. A longer one counts as unreadable.
const maxCommand = 10_000

// maxNested bounds how deep commands in the arguments of shells (sh -c '...') are looked into.
const maxNested = 4

// shellCommand is what a command line would run, as far as its text tells.
type shellCommand struct {
	parts      []shellPart // every simple command, those of substitutions and loops included
	reads      []string    // files that redirections read
	writes     []string    // files that redirections write
	opaque     bool        // it may run what its text does not name, so no pattern may allow it
	unreadable bool        // it is no shell command, or too long to be parsed
}

// shellPart is one simple command. What is quoted without need is written without quotes, so that a rule meets r"m" as rm.
type shellPart struct {
	allowed string   // as an allow rule sees it: harmless assignments and wrappers are left out; empty: it can match none
	seen    []string // every text under which a deny or ask rule may meet it
}

// readShell reads a command line. It never fails: what cannot be read is marked as such.
func readShell(text string) shellCommand {
	var c shellCommand
	c.read(text, maxNested)
	return c
}

func (c *shellCommand) read(text string, nested int) {
	if len(text) > maxCommand || nested == 0 {
		c.guess(text)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.guess(text)
		return
	}
	if strings.ContainsAny(text, "\n\r") {
		c.opaque = true
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			c.call(n, nested)
		case *syntax.DeclClause: // export, declare: an assignment that later commands see
			c.opaque = true
		case *syntax.FuncDecl, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause:
			c.opaque = true
		case *syntax.Redirect:
			c.redirect(n)
		}
		return true
	})
}

// maxGuesses bounds the places at which a command may begin in a text that cannot be parsed.
const maxGuesses = 256

// guess takes every word of a text that cannot be parsed for the begin of a command, so that a deny rule still meets what
// a shell might make of it.
func (c *shellCommand) guess(text string) {
	c.unreadable = true
	text = strings.NewReplacer(`\`, "", "'", "", `"`, "").Replace(text[:min(len(text), maxCommand)])
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&(){}!`$<>", r) })
	var part shellPart
	for i := range words[:min(len(words), maxGuesses)] {
		part.see(words[i:])
	}
	c.parts = append(c.parts, part)
}

// call notes a simple command.
func (c *shellCommand) call(n *syntax.CallExpr, nested int) {
	if len(n.Args) == 0 {
		if len(n.Assigns) > 0 {
			c.opaque = true // it changes what the commands after it mean
		}
		return
	}
	words := make([]string, len(n.Args))
	for i, w := range n.Args {
		var plain bool
		if words[i], plain = wordText(w); !plain && i == 0 {
			c.opaque = true // which program it is turns out only when it runs
		}
	}
	part := shellPart{}
	var assigned []string
	safe := true
	for _, a := range n.Assigns {
		value := ""
		if a.Value != nil {
			value, _ = wordText(a.Value)
		}
		if a.Name == nil {
			continue
		}
		assigned = append(assigned, a.Name.Value+"="+value)
		safe = safe && slices.Contains(harmlessVariables, a.Name.Value)
	}
	if len(assigned) > 0 {
		part.see(append(assigned, words...))
	}
	if rest, ok := unwrapped(words, allowedWrapper); ok && safe {
		part.allowed = strings.Join(rest, " ")
	}
	for rest := words; len(rest) > 0; {
		part.see(rest)
		next, wraps := unwrapOnce(rest, anyWrapper)
		if !wraps {
			c.inner(rest, nested)
			break
		}
		rest = next
	}
	c.parts = append(c.parts, part)
}

// see notes a spelling: with the program as written, and by its bare name.
func (p *shellPart) see(words []string) {
	p.seen = append(p.seen, strings.Join(words, " "))
	if base := path.Base(words[0]); base != words[0] && !strings.Contains(words[0], "=") {
		p.seen = append(p.seen, strings.Join(append([]string{base}, words[1:]...), " "))
	}
}

// inner looks into commands that are handed to a shell as text.
func (c *shellCommand) inner(words []string, nested int) {
	switch path.Base(words[0]) {
	case "eval":
		c.opaque = true
		c.read(strings.Join(words[1:], " "), nested-1)
	case "source", ".", "alias", "trap", "hash", "enable", "shopt":
		c.opaque = true
	case "sh", "bash", "dash", "zsh", "ksh":
		for i, w := range words[1:] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c") && i+2 < len(words) {
				c.opaque = true
				c.read(words[i+2], nested-1)
				return
			}
		}
	}
}

func (c *shellCommand) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		c.opaque = true
		return
	case syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		if text, plain := wordText(n.Word); plain && strings.Trim(text, "0123456789-") == "" {
			return // another of its own streams
		}
	case syntax.RdrIn:
		if text, plain := wordText(n.Word); plain {
			c.reads = append(c.reads, text)
			return
		}
	default:
		if text, plain := wordText(n.Word); plain {
			if !slices.Contains(streamDevices, text) {
				c.writes = append(c.writes, text)
			}
			return
		}
	}
	c.opaque = true // it reads or writes a file whose name is not known
}

var streamDevices = []string{"/dev/null", "/dev/stdout", "/dev/stderr"}

// harmlessVariables may be set before a command without changing which program runs or what it loads.
var harmlessVariables = []string{
	"LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CI", "DEBUG",
	"RUST_BACKTRACE", "RUST_LOG", "NODE_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "CGO_ENABLED", "GOOS", "GOARCH",
}

// wordText is a word without the quotes it does not need. plain is false when the shell would put something else in its
// place: a variable, the output of a command, a glob in a brace.
func wordText(w *syntax.Word) (text string, plain bool) {
	if w == nil {
		return "", true
	}
	var b strings.Builder
	plain = true
	for _, p := range w.Parts {
		plain = partText(&b, p) && plain
	}
	return b.String(), plain
}

func partText(b *strings.Builder, p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		b.WriteString(unescape(p.Value))
		return true
	case *syntax.SglQuoted:
		b.WriteString(p.Value)
		return !p.Dollar
	case *syntax.DblQuoted:
		plain := true
		for _, inner := range p.Parts {
			plain = partText(b, inner) && plain
		}
		return plain
	}
	_ = syntax.NewPrinter().Print(b, p) // as written, so that a rule can name it
	return false
}

// unescape takes the backslashes from a literal: \rm runs rm.
func unescape(lit string) string {
	if !strings.Contains(lit, `\`) {
		return lit
	}
	var b strings.Builder
	for i := 0; i < len(lit); i++ {
		if lit[i] == '\\' && i+1 < len(lit) {
			i++
			if lit[i] == '\n' {
				continue
			}
		}
		b.WriteByte(lit[i])
	}
	return b.String()
}
