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
	reads      []string    // files that redirections read; one that begins with ~/ lies in the home folder
	writes     []string    // files that redirections write
	opaque     bool        // it may run what its text does not name, so no pattern may allow it
	hidden     bool        // and no deny or ask rule can tell what that is: a program, or a file, that turns out when it runs
	unreadable bool        // it is no shell command, or too long to be parsed
	moves      bool        // it changes the folder that later relative paths mean
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
	relative := func(file string) bool { return !path.IsAbs(file) && !strings.HasPrefix(file, "~/") }
	if c.moves && (slices.ContainsFunc(c.reads, relative) || slices.ContainsFunc(c.writes, relative)) {
		c.hide()
	}
	return c
}

// clear reports whether the text of the command says all that it runs.
func (c *shellCommand) clear() bool { return !c.opaque && !c.unreadable && len(c.parts) > 0 }

// clearCommand is clear for a text.
func clearCommand(text string) bool {
	c := readShell(text)
	return c.clear()
}

// hide notes that something turns out only when the command runs.
func (c *shellCommand) hide() { c.opaque, c.hidden = true, true }

// opaqueSigns mark a line as opaque wherever they stand, quoted or not: some programs run what their arguments quote.
var opaqueSigns = []string{"\n", "\r", "`", "$(", "<(", ">("}

func (c *shellCommand) read(text string, nested int) {
	for _, sign := range opaqueSigns {
		c.opaque = c.opaque || strings.Contains(text, sign)
	}
	if len(text) > maxCommand || nested == 0 {
		c.guess(text)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		c.guess(text)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			c.call(n, nested)
		case *syntax.DeclClause: // export, declare: an assignment that later commands see
			c.opaque = true
		case *syntax.FuncDecl, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause:
			c.opaque = true
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause: // they evaluate what variables hold
			c.opaque = true
		case *syntax.ParamExp:
			c.opaque = c.opaque || !plainParameter(n)
		case *syntax.SglQuoted:
			c.opaque = c.opaque || n.Dollar // its escapes may spell one of the signs above
		case *syntax.Redirect:
			c.redirect(n)
		}
		return true
	})
}

// plainParameter reports whether the shell puts the value of a variable in the place of p and does nothing else: other
// forms assign, or take the value for a command.
func plainParameter(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
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
	words, ok := shellWords(n.Args)
	if !ok || len(words) == 0 {
		c.hide()
		return
	}
	part := shellPart{}
	texts := textsOf(words)
	assigned, harmless := assignments(n.Assigns)
	if len(assigned) > 0 {
		part.see(append(assigned, texts...))
	}
	rest, ok := unwrapped(texts, forAllow)
	known := ok && !slices.ContainsFunc(words[:len(words)-len(rest)+1], func(w shellWord) bool { return !w.plain })
	if known && harmless {
		part.allowed = strings.Join(rest, " ")
	}
	for rest = texts; len(rest) > 0; {
		if !words[len(words)-len(rest)].plain {
			c.hide() // which program it is turns out only when it runs
		}
		part.see(rest)
		c.inner(&part, rest, nested)
		next, wraps := unwrapOnce(rest, forDeny)
		if !wraps {
			break
		}
		rest = next
	}
	c.parts = append(c.parts, part)
}

// assignments are those before a command, as written. They are harmless where they change neither which program runs nor
// what it loads.
func assignments(all []*syntax.Assign) (texts []string, harmless bool) {
	harmless = true
	for _, a := range all {
		if a.Name == nil {
			continue
		}
		value := ""
		if a.Value != nil {
			value = wordOf(a.Value).text
		}
		texts = append(texts, a.Name.Value+"="+value)
		harmless = harmless && slices.Contains(harmlessVariables, a.Name.Value)
	}
	return texts, harmless
}

// harmlessVariables may be set before a command without changing which program runs or what it loads.
var harmlessVariables = []string{
	"LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CI", "DEBUG",
	"RUST_BACKTRACE", "RUST_LOG", "NODE_ENV", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "CGO_ENABLED", "GOOS", "GOARCH",
}

// see notes a spelling: with the program as written, and by its bare name.
func (p *shellPart) see(words []string) {
	p.seen = append(p.seen, strings.Join(words, " "))
	if base := path.Base(words[0]); base != words[0] && !strings.Contains(words[0], "=") {
		p.seen = append(p.seen, strings.Join(append([]string{base}, words[1:]...), " "))
	}
}

func (c *shellCommand) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		c.opaque = true
		return
	case syntax.WordHdoc:
		return
	default: // the word is a file, or another of its own streams
	}
	w := wordOf(n.Word)
	stream := n.Op == syntax.DplIn || n.Op == syntax.DplOut
	switch {
	case !w.plain || strings.HasPrefix(w.text, "~") && !strings.HasPrefix(w.text, "~/"):
		c.hide()
	case stream && strings.Trim(w.text, "0123456789-") == "", slices.Contains(streamDevices, w.text):
	case n.Op == syntax.RdrIn || n.Op == syntax.DplIn:
		c.reads = append(c.reads, w.text)
	default:
		c.writes = append(c.writes, w.text)
	}
}

var streamDevices = []string{"/dev/null", "/dev/stdout", "/dev/stderr"}
