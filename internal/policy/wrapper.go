package policy

import (
	"path"
	"slices"
	"strings"
)

// wrapper is a program that runs the command in its arguments. valued lists its flags that take a value; operands is how
// many words stand between its flags and the command.
type wrapper struct {
	valued   []string
	operands int

	// An allow rule looks through it, where it has no other flags than these; deny and ask rules always do.
	allowed bool
	flags   []string
}

var (
	timeoutFlags = []string{"-s", "-k", "--signal", "--kill-after"}
	stdbufFlags  = []string{"-i", "-o", "-e", "--input", "--output", "--error"}
	niceFlags    = []string{"-n", "--adjustment"}
)

var wrappers = map[string]wrapper{
	"timeout": {
		valued: timeoutFlags, operands: 1, allowed: true,
		flags: append([]string{"-v", "--verbose", "--foreground", "--preserve-status"}, timeoutFlags...),
	},
	"time":    {valued: []string{"-f", "-o", "--format", "--output"}, allowed: true, flags: []string{"-p"}},
	"nice":    {valued: niceFlags, allowed: true, flags: niceFlags},
	"nohup":   {allowed: true},
	"stdbuf":  {valued: stdbufFlags, allowed: true, flags: stdbufFlags},
	"command": {allowed: true, flags: []string{"-p"}},
	"builtin": {allowed: true},
	"noglob":  {allowed: true},
	"xargs": {allowed: true, valued: []string{ // with flags it may put what it reads in the place of the program
		"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-lines", "--replace",
	}},
	"exec":    {valued: []string{"-a"}},
	"env":     {valued: []string{"-u", "-C", "--unset", "--chdir"}},
	"sudo":    {valued: []string{"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "--user", "--group", "--host", "--prompt"}},
	"doas":    {valued: []string{"-u", "-C"}},
	"setsid":  {},
	"ionice":  {valued: []string{"-c", "-n", "--class", "--classdata"}},
	"chrt":    {valued: []string{"-T", "-P", "-D"}, operands: 1},
	"taskset": {operands: 1},
	"chroot":  {valued: []string{"--userspec", "--groups"}, operands: 1},
	"unshare": {valued: []string{"-S", "-G", "-R", "-w"}},
	"strace":  {valued: []string{"-e", "-o", "-p", "-s", "-u", "-E", "-P", "-a", "-b", "-I", "-O", "-S", "-X"}},
	"flock":   {valued: []string{"-w", "-E", "--timeout", "--conflict-exit-code"}, operands: 1},
	"watch":   {valued: []string{"-n", "--interval", "-q", "--equexit"}},
	"busybox": {},
	"toybox":  {},
	"parallel": {valued: []string{
		"-j", "--jobs", "-a", "--arg-file", "-I", "-n", "-N", "-L", "-P", "--colsep", "--joblog", "--results", "--timeout", "--delay",
	}},
}

// purpose is for what a wrapper is looked through.
type purpose uint8

const (
	forDeny  purpose = iota
	forAllow         // only what certainly runs nothing else: a wrapper by its bare name, with flags that are known
)

// unwrapped strips every wrapper. ok is false when one has no command.
func unwrapped(words []string, p purpose) (rest []string, ok bool) {
	for rest = words; ; {
		next, wraps := unwrapOnce(rest, p)
		if !wraps {
			return rest, true
		}
		if len(next) == 0 {
			return nil, false
		}
		rest = next
	}
}

// unwrapOnce strips the wrapper that words begin with.
func unwrapOnce(words []string, p purpose) (rest []string, wraps bool) {
	name := path.Base(words[0])
	w, known := wrappers[name]
	if !known || p == forAllow && (!w.allowed || name != words[0]) {
		return nil, false
	}
	rest = words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		flag := rest[0]
		rest = rest[1:]
		if flag == "--" {
			break
		}
		if p == forAllow && !w.harmless(flag) {
			return nil, false
		}
		if slices.Contains(w.valued, flag) && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	for name == "env" && len(rest) > 0 && strings.Contains(rest[0], "=") {
		rest = rest[1:]
	}
	return rest[min(w.operands, len(rest)):], true
}

// harmless reports whether a flag, with or without a value in the same word, is one that an allow rule knows.
func (w wrapper) harmless(flag string) bool {
	if slices.Contains(w.flags, flag) || len(w.flags) > 0 && strings.Trim(flag, "-0123456789") == "" {
		return true
	}
	name, _, _ := strings.Cut(flag, "=")
	if !strings.HasPrefix(flag, "--") {
		name = flag[:min(len(flag), 2)]
	}
	return slices.Contains(w.flags, name) && slices.Contains(w.valued, name)
}

// shells run the text after -c.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "su", "runuser", "script", "flock"}

// inner looks into commands that are handed on as text, or as arguments of programs that do more besides.
func (c *shellCommand) inner(part *shellPart, words []string, nested int) {
	text := func(command string) {
		c.opaque = true
		c.read(command, nested-1)
	}
	name, args := path.Base(words[0]), words[1:]
	switch name {
	case "cd", "pushd", "popd":
		c.moves = true
	case "eval":
		text(strings.Join(args, " "))
	case "watch", "parallel":
		command, _ := unwrapOnce(words, forDeny)
		text(strings.Join(command, " "))
	case "trap":
		if len(args) > 0 {
			text(args[0])
		}
	case "alias":
		for _, a := range args {
			if _, command, found := strings.Cut(a, "="); found {
				text(command)
			}
		}
	case "source", ".", "hash", "enable", "shopt":
		c.opaque = true
	case "env":
		for i, a := range args {
			if command, found := strings.CutPrefix(a, "--split-string="); found {
				text(command)
			} else if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "S") {
				_, attached, _ := strings.Cut(a, "S")
				text(strings.Join(append([]string{attached}, args[i+1:]...), " "))
			} else if a == "--split-string" {
				text(strings.Join(args[i+1:], " "))
			}
		}
	case "find", "fd":
		for i, a := range args {
			if slices.Contains(findRuns, a) && i+1 < len(args) {
				c.opaque = true
				part.see(args[i+1:])
				c.inner(part, args[i+1:], nested-1)
			}
		}
	}
	if slices.Contains(shells, name) {
		c.shell(args, nested)
	}
}

// findRuns are the arguments after which find runs a command.
var findRuns = []string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}

// shell looks into what a shell is told to run.
func (c *shellCommand) shell(args []string, nested int) {
	script := false
	for i, w := range args {
		short := strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--")
		if short && strings.Contains(w, "c") || w == "--command" {
			c.opaque = true
			if i+1 < len(args) {
				c.read(args[i+1], nested-1)
			}
			return
		}
		script = script || !strings.HasPrefix(w, "-")
	}
	if !script || slices.Contains(args, "-s") {
		c.hide() // it reads what it runs
	}
}
