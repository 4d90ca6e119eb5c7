package policy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func bash(command string) Request {
	return Request{Tool: "bash", Subject: command, Kind: SubjectCommand}
}

// V157: every part of a command line has to be allowed, and what its text does not name is never allowed.
func TestAllowedCommands(t *testing.T) {
	e := engine(t, PermissionRules{Allow: []string{"bash(git *)", "bash(ls*)", "bash(go test:*)", "bash(make all && make check)", "bash(echo $(date))", "bash(source *)", "write(out/**)"}})
	for command, want := range map[string]Effect{
		"git":                                    Allow, // "git *" has a word boundary
		"git status":                             Allow,
		"gitk":                                   Ask,
		"lsof":                                   Allow, // "ls*" has none
		"go test ./...":                          Allow,
		"go testing":                             Ask,
		"git status && git log":                  Allow,
		"git status; git log | ls":               Allow,
		"git status & ls":                        Allow,
		"git status || rm x":                     Ask,
		"git status |& tee x":                    Ask,
		"(git status; rm x)":                     Ask,
		"if git status; then rm x; fi":           Ask,
		"for f in a; do git add a; done":         Allow,
		"git log $(rm x)":                        Ask,
		"git log `rm x`":                         Ask,
		"git diff <(rm x)":                       Ask,
		"git status\nrm x":                       Ask,
		"git status\ngit log":                    Ask, // a line break is opaque
		"git log <<EOF\nx\nEOF":                  Ask,
		"git log <<< x":                          Allow,
		"$GIT status":                            Ask,
		"git log $HOME":                          Allow,
		"NO_COLOR=1 git log":                     Allow,
		"PATH=/tmp git log":                      Ask,
		"LD_PRELOAD=x.so git log":                Ask,
		"X=1; git log":                           Ask,
		"export PATH=/tmp; git log":              Ask,
		"git() { rm x; }; git":                   Ask,
		"timeout 5 git log":                      Allow,
		"timeout -k 1 5 nice -n 3 ls":            Allow,
		"time nohup git log":                     Allow,
		"ls | xargs git add":                     Allow,
		"ls | xargs -I{} rm {}":                  Ask,
		"sudo git log":                           Ask, // no allow rule looks through it
		"env git log":                            Ask,
		"eval git log":                           Ask,
		"bash -c 'git log'":                      Ask,
		"git log > out/log":                      Allow,
		"git log > ../log":                       Ask,
		"git log > .git/hooks/post-x":            Ask,
		"git log 2> /dev/null":                   Allow,
		"git log 2>&1":                           Allow,
		"git log > $FILE":                        Ask,
		"git log < out/log":                      Allow,
		"./timeout 5 git log":                    Ask, // not the timeout that is known
		"timeout $T git log":                     Ask, // $T may be "5 rm"
		"/usr/bin/time -o vak.toml git log":      Ask,
		"command -v git":                         Ask,
		"nice -5 git log":                        Allow,
		"timeout --signal=KILL 5 git log":        Allow,
		"stdbuf -oL git log":                     Allow,
		"git log > ~/x":                          Ask,
		"git log > ~other/x":                     Ask,
		"git log > *.x":                          Ask,
		"git log > {a,b}":                        Ask,
		"cd .. && git log > out/log":             Ask,
		"git log ${x:=y}":                        Ask,
		"git log ${x@P}":                         Ask,
		"git log $((a[0]))":                      Ask,
		"[[ a -eq 1 ]] && git log":               Ask,
		"git log 'a$(rm x)'":                     Ask,
		"git log $'\\x24(rm x)'":                 Ask,
		"git add {a,b}":                          Allow,
		"{git,rm} x":                             Allow, // git rm x
		"{rm,git} x":                             Ask,
		"git*":                                   Ask,
		"./git log":                              Ask,
		"make all && make check":                 Allow, // exactly the line of the rule
		"make all && make check; rm x":           Ask,
		"make all":                               Ask,
		"echo $(date)":                           Ask, // no rule about a line allows what it hides
		"source x; git log":                      Ask,
		`"git" st\atus`:                          Allow,
		"git 'unclosed":                          Ask,
		"":                                       Ask,
		"git " + strings.Repeat("a", maxCommand): Ask,
	} {
		if got := e.Decide(bash(command)); got.Effect != want || got.Reason == "" {
			t.Errorf("%.60q: %+v, want %s", command, got, want)
		}
	}
	if got := engine(t, PermissionRules{Allow: []string{"bash"}}).Decide(bash("anything $(at all)")); got.Effect != Allow {
		t.Errorf("a rule without a pattern: %+v", got)
	}
}

// V157: a deny rule meets a command wherever it stands in a line and however it is spelled.
func TestDeniedCommands(t *testing.T) {
	e, problems := CompileEngine(Host{"/srv/ws", "/srv/u", "read", "write"},
		PermissionRules{Mode: "full-access", Deny: []string{"bash(rm *)", "write(secret/**)", "read(secret/**)"}, Ask: []string{"bash(git push *)"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for command, want := range map[string]Effect{
		"rm":                            Deny,
		"rm -rf /":                      Deny,
		"rmdir x":                       Allow,
		"ls; rm x":                      Deny,
		"ls && (cd x; rm y)":            Deny,
		"echo $(rm x)":                  Deny,
		"cat <(rm x)":                   Deny,
		"echo \"$(rm x)\"":              Deny,
		"X=1 rm x":                      Deny,
		`r"m" x`:                        Deny,
		`\rm x`:                         Deny,
		"'rm' x":                        Deny,
		"/bin/rm x":                     Deny,
		"sudo -u root rm x":             Deny,
		"env -i A=b rm x":               Deny,
		"timeout -s KILL 5 rm x":        Deny,
		"find . | xargs -n 1 rm":        Deny,
		"nice -n 5 nohup setsid rm x":   Deny,
		"exec rm x":                     Deny,
		"sh -c 'rm x'":                  Deny,
		"bash -ec 'ls; sh -c \"rm x\"'": Deny,
		"eval rm x":                     Deny,
		"eval 'rm x'":                   Deny,
		"ls\nrm x":                      Deny,
		"rm   x":                        Deny,
		"while true; do rm x; done":     Deny,
		"f() { rm x; }; f":              Deny,
		"echo rm x":                     Allow,
		"git push origin":               Ask,
		"git  push":                     Ask,

		"{rm,-rf,x}":                        Deny,
		"r{m,} x":                           Deny,
		`$'rm' x`:                           Deny,
		`$'\x72\155' x`:                     Deny,
		`$'\u0072m' x`:                      Deny,
		`"/bin"/rm x`:                       Deny,
		`env -S "rm -rf x"`:                 Deny,
		`env -iS "rm -rf x"`:                Deny,
		`env --split-string="rm x"`:         Deny,
		`find . -name x -exec rm {} \;`:     Deny,
		`find . -exec sh -c 'rm x' \;`:      Deny,
		"trap 'rm x' EXIT":                  Deny,
		"alias l='rm x'":                    Deny,
		"busybox rm x":                      Deny,
		"watch -n 1 'ls; rm x'":             Deny,
		"flock f rm x":                      Deny,
		"flock f -c 'rm x'":                 Deny,
		"su -c 'rm x'":                      Deny,
		"parallel rm ::: x":                 Deny,
		"$X x":                              Ask, // it may be rm
		"$(echo rm) x":                      Ask,
		"/bin/r? x":                         Ask,
		"bash <<< 'rm x'":                   Ask,
		"echo rm x | sh":                    Ask,
		"eval $X":                           Ask,
		"echo x > $F":                       Ask,
		"cd secret && echo x > a":           Ask,
		"[ -f x ]":                          Allow,
		"test -f *.go":                      Allow,
		"echo x > $'secret/\\x61'":          Deny,
		"echo x >& secret/a":                Deny,
		"echo x > /srv/ws/secret/a":         Deny,
		"echo x > secret/a":                 Deny,
		"echo x >> ./secret/../secret/a":    Deny,
		"cat < secret/a":                    Deny,
		"echo x > other":                    Allow,
		"echo " + strings.Repeat("a", 10e3): Ask,
	} {
		if got := e.Decide(bash(command)); got.Effect != want {
			t.Errorf("%.60q: %+v, want %s", command, got, want)
		}
	}
}

// A line that hides a file is asked about where rules speak of files, one that hides a program where they speak of commands,
// and neither where there is nothing to get around.
func TestHiddenCommands(t *testing.T) {
	for _, tc := range []struct {
		rules         PermissionRules
		file, program Effect
	}{
		{PermissionRules{}, Allow, Allow},
		{PermissionRules{Deny: []string{"fetch(https://*)"}}, Allow, Allow},
		{PermissionRules{Deny: []string{"write(secret/**)"}}, Ask, Ask},
		{PermissionRules{Ask: []string{"bash(rm *)"}}, Ask, Ask},
		{PermissionRules{Deny: []string{"bash"}}, Deny, Deny},
	} {
		tc.rules.Mode = "full-access"
		e := engine(t, tc.rules)
		if file, program := e.Decide(bash("echo x > $F")), e.Decide(bash("$F x")); file.Effect != tc.file || program.Effect != tc.program {
			t.Errorf("%+v: a file is %+v, a program %+v", tc.rules, file, program)
		}
	}
}

// V157: no way of dressing up a command turns a refusal into a permission.
func TestDressingUpGrantsNothing(t *testing.T) {
	e := engine(t, PermissionRules{Mode: "full-access", Deny: []string{"bash(rm *)"}, Allow: []string{"bash(ls *)", "bash(echo *)"}})
	dress := []func(string) string{
		func(s string) string { return "A=1 " + s },
		func(s string) string { return "timeout 5 " + s },
		func(s string) string { return "sudo " + s },
		func(s string) string { return "env X=y " + s },
		func(s string) string { return "nohup " + s },
		func(s string) string { return "ls; " + s },
		func(s string) string { return s + " && ls" },
		func(s string) string { return "( " + s + " )" },
		func(s string) string { return "{ " + s + "; }" },
		func(s string) string { return "echo $( " + s + " )" },
		func(s string) string { return "if ls; then " + s + "; fi" },
		func(s string) string { return "! " + s },
		func(s string) string { return s + " > out" },
	}
	wraps := dress[:5] // these want a simple command
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom([]string{
			"rm x", `r\m -rf /`, "'rm' \"a b\"", "/usr/bin/rm x", `r''m x`, `"r"$'\x6d' x`, "{rm,x}", "r{m,} x", `find . -exec rm x +`,
		}).Draw(t, "command")
		for range rapid.IntRange(0, 3).Draw(t, "wrappers") {
			command = rapid.SampledFrom(wraps).Draw(t, "wrap")(strings.TrimPrefix(command, "A=1 "))
		}
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			command = rapid.SampledFrom(dress[5:]).Draw(t, "dress")(command)
		}
		if got := e.Decide(bash(command)); got.Effect != Deny && (got.Effect == Allow || !readShell(command).unreadable) {
			t.Fatalf("%s: %+v", command, got)
		}
	})
}

// No text makes the reader fail, and no allow rule about one command ever covers a line that holds another.
func FuzzShell(f *testing.F) {
	for _, s := range []string{"ls", "a && b", "echo $(x)", "x <<E\ny\nE", "case a in b) c;; esac", "[[ a =~ b ]]", "((1+1))", "a\\\nb", "coproc x", "select x in y; do z; done"} {
		f.Add(s)
	}
	allow, _ := CompileEngine(Host{}, PermissionRules{Allow: []string{"bash(ls *)"}})
	f.Fuzz(func(t *testing.T, text string) {
		c := readShell(text)
		if got := allow.Decide(bash(text)); got.Effect == Allow {
			for _, p := range c.parts {
				if first, _, _ := strings.Cut(p.allowed, " "); first != "ls" {
					t.Fatalf("%q is allowed and runs %q", text, p.seen)
				}
			}
			if c.opaque || c.unreadable || slices.ContainsFunc(c.writes, func(w string) bool { return !inside(w) }) {
				t.Fatalf("%q is allowed: %+v", text, c)
			}
		}
	})
}

func BenchmarkDecideCommand(b *testing.B) {
	var deny []string
	for s := range strings.FieldsSeq(strings.Repeat("rm dd mkfs ", 66)) {
		deny = append(deny, "bash("+s+" *)")
	}
	e := engine(b, PermissionRules{Deny: deny, Allow: []string{"bash(git *)", "bash(ls *)"}})
	b.ReportAllocs()
	for b.Loop() {
		e.Decide(bash("git status && ls -la | git hash-object --stdin"))
	}
}
