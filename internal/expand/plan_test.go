package expand_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/op/optest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// planned is the plan of /x with these arguments, one line a part.
func planned(t *testing.T, v capability.Invocation, body, arguments string) string {
	t.Helper()
	d := command("x", body)
	d.Config.(*capability.Command).Invocation = v
	plan, err := expand.New(optest.NewBound(d), "/x "+arguments, expand.Facts{Session: "s-1", Project: "/ws"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range plan.Parts {
		switch p.Kind {
		case expand.Text:
			all = append(all, fmt.Sprintf("text %q", p.Text))
		case expand.Command:
			all = append(all, fmt.Sprintf("run %q", p.Text))
		case expand.File:
			all = append(all, fmt.Sprintf("file %q", p.Path))
		case expand.Mention:
			all = append(all, fmt.Sprintf("mention %q of %q", p.Text, p.Path))
		}
	}
	return strings.Join(all, "\n")
}

// Commands and files stand at the begin of a line or after a blank, outside of code.
func TestMarkdownParts(t *testing.T) {
	for _, c := range []struct{ name, body, arguments, want string }{
		{"a command", "- now: !`git status`\n", "", "text \"- now: \"\nrun \"git status\"\ntext \"\\n\""},
		{"at the begin", "!`a`!`b` !`c`", "", "run \"a\"\ntext \"!`b` \"\nrun \"c\""},
		{"within a word", "x!`a` (!`b`)", "", "text \"x!`a` (!`b`)\""},
		{"in a code span", "say `` !`a` `` and ` @b.md `", "", "text \"say `` !`a` `` and ` @b.md `\""},
		{"in a block", "```sh\n!`a`\n@b.md\n```\n~~~\n!`a`\n~~~\n", "", "text \"```sh\\n!`a`\\n@b.md\\n```\\n~~~\\n!`a`\\n~~~\\n\""},
		{"in an open block", "```\n!`a`\n", "", "text \"```\\n!`a`\\n\""},
		{"a block of commands", "x\n```!\ngit log\ngit diff\n```\ny", "", "text \"x\\n\"\nrun \"git log\\ngit diff\"\ntext \"\\ny\""},
		{"an open block of commands", "```!\nrm x\n", "", "text \"```!\\nrm x\\n\""},
		{"an empty block of commands", "```!\n\n```\n", "", "text \"\\n\""},
		{"a longer fence", "````\n```!\nrm x\n```\n````\n", "", "text \"````\\n```!\\nrm x\\n```\\n````\\n\""},
		{"files", "See @src/a.go, (@b.md) and @c.md.", "", "text \"See \"\nmention \"@src/a.go\" of \"src/a.go\"\ntext \", (@b.md) and \"\nmention \"@c.md\" of \"c.md\"\ntext \".\""},
		{"no files", "me@a.b @decorator @ x@y.z @https://a.b @", "", "text \"me@a.b @decorator @ x@y.z @https://a.b @\""},
		{"arguments in commands and files", "!`log $0` @$1", "main a.md", "run \"log main\"\ntext \" \"\nmention \"@a.md\" of \"a.md\""},
		{"arguments make no commands", "Do $ARGUMENTS", "!`rm x` @a.md ```!", "text \"Do !`rm x` @a.md ```!\""},
		{"an argument ends no command", "!`log $ARGUMENTS`", "x` !`rm", "run \"log x` !`rm\""},
		{"code keeps its own", "```\necho $1 $name $ARGUMENTS ${CLAUDE_PROJECT_DIR}\n```\n$1", "a b", "text \"```\\necho $1 $name a b /ws\\n```\\nb\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, planned(t, capability.Invocation{}, c.body, c.arguments)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Arguments by number, by name and as a whole; facts; what is not there.
func TestPlaceholders(t *testing.T) {
	v := capability.Invocation{
		Arguments: []string{"file", "file-mode"}, Effort: "high", Root: capability.Folder{Path: "/plug", Data: "/data"},
	}
	for _, c := range []struct{ body, arguments, want string }{
		{"$0|$1|$2|$ARGUMENTS[1]|$ARGUMENTS[9]", `one "two three"`, "one|two three|$2|two three|$ARGUMENTS[9]"},
		{"$0", `a\ b c`, "a b"},
		{"$file/$file-mode/$files/$other", "a b", "a/b/as/$other"},
		{"[$file-mode]", "a", "[]"},
		{`\$0 \$file \$ARGUMENTS \$x $$0`, "a", `$0 $file $ARGUMENTS \$x $a`},
		{"${CLAUDE_SESSION_ID} ${CLAUDE_PROJECT_DIR} ${CLAUDE_PLUGIN_ROOT} ${CLAUDE_PLUGIN_DATA} ${CLAUDE_EFFORT}", "", "s-1 /ws /plug /data high"},
		{"${CLAUDE_SKILL_DIR} ${CLAUDE_NOTHING} ${HOME} $HOME \\${CLAUDE_EFFORT}", "", "${CLAUDE_SKILL_DIR} ${CLAUDE_NOTHING} ${HOME} $HOME ${CLAUDE_EFFORT}"},
		{"nothing asked", "a b", "nothing asked\n\nARGUMENTS: a b"},
		{"${CLAUDE_EFFORT}\n", "a", "high\n\nARGUMENTS: a"},
		{"$7", "a", "$7\n\nARGUMENTS: a"},
	} {
		if got, want := planned(t, v, c.body, c.arguments), fmt.Sprintf("text %q", c.want); got != want {
			t.Errorf("%q with %q is %s, want %s", c.body, c.arguments, got, want)
		}
	}
	if got := planned(t, capability.Invocation{}, "${CLAUDE_PLUGIN_ROOT} ${CLAUDE_EFFORT}", ""); got != `text "${CLAUDE_PLUGIN_ROOT} ${CLAUDE_EFFORT}"` {
		t.Errorf("without facts: %s", got)
	}
}

// The dialect of Gemini has its own placeholders, and none of the others.
func TestGeminiParts(t *testing.T) {
	v := capability.Invocation{Dialect: capability.DialectGemini}
	for _, c := range []struct{ body, arguments, want string }{
		{"Do {{args}} and $ARGUMENTS !`x` @a.md", "it", "text \"Do it and $ARGUMENTS !`x` @a.md\""},
		{"!{grep {{args}} .} end", "it's $(rm)", "run \"grep 'it'\\\\''s $(rm)' .\"\ntext \" end\""},
		{"!{echo {a} }@{ b.md }", "", "run \"echo {a}\"\nfile \"b.md\""},
		{"Review.", "it", "text \"Review.\\n\\n/x it\""},
		{"Open !{a and @{b and {{args}", "", "text \"Open !{a and @{b and {{args}\""},
		{"!{} @{ }", "", "text \"!{} @{ }\""},
		{"{{args}}", "!{rm x} @{y} {{args}}", "text \"!{rm x} @{y} {{args}}\""},
	} {
		if diff := cmp.Diff(c.want, planned(t, v, c.body, c.arguments)); diff != "" {
			t.Errorf("%q: %s", c.body, diff)
		}
	}
}

// Results stand in the place of their parts as they are; files that were mentioned follow.
func TestJoin(t *testing.T) {
	b := optest.NewBound(command("x", "A !`one` B @c.md D !`two`\n"))
	plan, err := expand.New(b, "/x", expand.Facts{})
	if err != nil || plan.Pure() {
		t.Fatal(err, plan)
	}
	got, err := plan.Join([]string{"!`rm` $ARGUMENTS @d.md", "<file>", "2"})
	if want := "A !`rm` $ARGUMENTS @d.md B @c.md D 2\n\n<file>"; err != nil || got != want {
		t.Errorf("joined to %q, %v; want %q", got, err, want)
	}
	if _, err := plan.Join([]string{strings.Repeat("x", expand.MaxBytes), "", ""}); vakerr.CodeOf(err) != vakerr.TooLarge {
		t.Errorf("a prompt without bound: %v", err)
	}
}

func TestPlansAreBounded(t *testing.T) {
	for name, body := range map[string]string{
		"commands": strings.Repeat("!`a`\n", 33), "files": strings.Repeat("@a.b\n", 65),
	} {
		if _, err := expand.New(optest.NewBound(command("x", body)), "/x", expand.Facts{}); vakerr.CodeOf(err) != vakerr.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
	// In time that grows with the length alone: this would run for hours.
	for _, body := range []string{strings.Repeat("\n", 1<<20), strings.Repeat("`", 1<<20), strings.Repeat("{", 1<<20), strings.Repeat("`` ` ", 1<<17), strings.Repeat("@{!{", 1<<16)} {
		d := command("x", "x"+body)
		for _, dialect := range []capability.Dialect{"", capability.DialectGemini} {
			d.Config.(*capability.Command).Dialect = dialect
			if _, err := expand.New(optest.NewBound(d), "/x", expand.Facts{}); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
}

// Whatever is typed after a command, its plan has the same commands and files, in number and kind.
func TestArgumentsMakeNoParts(t *testing.T) {
	bodies := []string{"Do $ARGUMENTS\n!`a $0`\n@b/$1\n```\n$ARGUMENTS\n```", "{{args}} !{a {{args}}} @{b/{{args}}}"}
	rapid.Check(t, func(t *rapid.T) {
		d := command("x", rapid.SampledFrom(bodies).Draw(t, "body"))
		if strings.Contains(string(d.Config.(*capability.Command).Body), "{{") {
			d.Config.(*capability.Command).Dialect = capability.DialectGemini
		}
		kinds := func(arguments string) (all []expand.Kind) {
			plan, err := expand.New(optest.NewBound(d), "/x "+arguments, expand.Facts{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plan.Parts {
				if p.Kind != expand.Text {
					all = append(all, p.Kind)
				}
			}
			return all
		}
		typed := rapid.OneOf(rapid.String(), rapid.StringMatching("[!`@{}$ a./\\n\\\\]*")).Draw(t, "arguments")
		got, want := kinds(strings.ReplaceAll(typed, "\x00", "")), kinds("plain words")
		if len(got) > len(want) {
			t.Fatalf("%q makes %v of %v", typed, got, want)
		}
	})
}

func FuzzPlan(f *testing.F) {
	for _, s := range []string{"$ARGUMENTS", "!`a`", "```!\na\n```", "@a/b `x` @c.d", "{{args}} @{a} !{b}", "\\$0 ${CLAUDE_SKILL_DIR} $a-b", "``` ``\n~~~"} {
		f.Add(s, "one \"two", false)
		f.Add(s, "'", true)
	}
	f.Fuzz(func(t *testing.T, body, arguments string, gemini bool) {
		if !utf8.ValidString(body) || strings.TrimSpace(body) == "" {
			return
		}
		d := command("x", body)
		v := capability.Invocation{Arguments: []string{"a", "a-b"}}
		if gemini {
			v.Dialect = capability.DialectGemini
		}
		d.Config.(*capability.Command).Invocation = v
		plan, err := expand.New(optest.NewBound(d), "/x "+arguments, expand.Facts{Project: "/ws"})
		if err != nil {
			return
		}
		var results []string
		for _, p := range plan.Parts {
			if p.Kind != expand.Text {
				results = append(results, "")
			}
		}
		if _, err := plan.Join(results); err != nil {
			t.Error(err)
		}
	})
}
