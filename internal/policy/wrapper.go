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
	allowed  bool // an allow rule looks through it; deny and ask rules always do
}

var wrappers = map[string]wrapper{
	"timeout": {valued: []string{"-s", "-k", "--signal", "--kill-after"}, operands: 1, allowed: true},
	"time":    {valued: []string{"-f", "-o", "--format", "--output"}, allowed: true},
	"nice":    {valued: []string{"-n", "--adjustment"}, allowed: true},
	"nohup":   {allowed: true},
	"stdbuf":  {valued: []string{"-i", "-o", "-e", "--input", "--output", "--error"}, allowed: true},
	"command": {allowed: true},
	"builtin": {allowed: true},
	"noglob":  {allowed: true},
	"xargs": {valued: []string{
		"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-lines", "--replace",
	}},
	"exec":   {valued: []string{"-a"}},
	"env":    {valued: []string{"-u", "-C", "-S", "--unset", "--chdir", "--split-string"}},
	"sudo":   {valued: []string{"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "--user", "--group", "--host", "--prompt"}},
	"doas":   {valued: []string{"-u", "-C"}},
	"setsid": {},
	"ionice": {valued: []string{"-c", "-n", "--class", "--classdata"}},
	"chroot": {valued: []string{"--userspec", "--groups"}, operands: 1},
}

func anyWrapper(wrapper) bool       { return true }
func allowedWrapper(w wrapper) bool { return w.allowed }

// unwrapped strips every wrapper that looks accepts. ok is false when a wrapper has no command.
func unwrapped(words []string, looks func(wrapper) bool) (rest []string, ok bool) {
	for rest = words; ; {
		next, wraps := unwrapOnce(rest, looks)
		if !wraps {
			return rest, true
		}
		if len(next) == 0 {
			return nil, false
		}
		rest = next
	}
}

// unwrapOnce strips the wrapper that words begin with. Bare xargs is looked through by allow rules, too: it only adds
// arguments.
func unwrapOnce(words []string, looks func(wrapper) bool) (rest []string, wraps bool) {
	name := path.Base(words[0])
	w, known := wrappers[name]
	bareXargs := name == "xargs" && len(words) > 1 && !strings.HasPrefix(words[1], "-")
	if !known || !looks(w) && !bareXargs {
		return nil, false
	}
	rest = words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		flag := rest[0]
		rest = rest[1:]
		if flag == "--" {
			break
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
