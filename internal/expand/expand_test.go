package expand_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/op/optest"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func command(name, body string) capability.Declaration {
	return capability.Declaration{
		ID: capability.ID{Kind: capability.KindCommand, Name: name}, Digest: capability.ContentDigest([]byte(body)),
		Config: &capability.Command{Body: []byte(body)},
	}
}

func skill(name, body string) capability.Declaration {
	return capability.Declaration{
		ID: capability.ID{Kind: capability.KindSkill, Name: name}, Digest: capability.ContentDigest([]byte(body)),
		Source: "skills/" + name + "/SKILL.md", Origin: capability.Origin{Kind: capability.OriginWorkspace},
		Config: &capability.Skill{Body: []byte(body), BaseDir: "skills/" + name},
	}
}

// expanded is the text of a plan that needs nothing read or run.
func expanded(b op.Bound, text string) (string, capability.ID, error) {
	plan, err := expand.New(b, text, expand.Facts{})
	if err != nil {
		return "", plan.ID, err
	}
	var results []string
	for _, p := range plan.Parts {
		if p.Kind == expand.Listing {
			results = append(results, "")
		}
	}
	out, err := plan.Join(results)
	return out, plan.ID, err
}

// V192, V194: the host expands admitted commands; everything else passes unchanged.
func TestCommands(t *testing.T) {
	b := optest.NewBound(
		command("fix", "Fix $ARGUMENTS now, then test $ARGUMENTS.\n"),
		command("plain", "Review the change.\n"),
		command("pick", `Compare $ARGUMENTS[0] with $1; $7 stays, \$ARGUMENTS and \$0 too`),
		command("team:deploy", "Deploy"),
	)
	for _, tt := range []struct{ name, in, want string }{
		{"replaced everywhere", "/fix the bug", "Fix the bug now, then test the bug."},
		{"no arguments", "/fix", "Fix  now, then test ."},
		{"arguments of many lines", "/fix a\n  b", "Fix a\n  b now, then test a\n  b."},
		{"appended", "/plain only the tests", "Review the change.\n\nARGUMENTS: only the tests"},
		{"nothing to append", "/plain", "Review the change."},
		{"one by one", `/pick "old file" new`, `Compare old file with new; $7 stays, $ARGUMENTS and $0 too`},
		{"placeholders in arguments are text", "/fix $ARGUMENTS", "Fix $ARGUMENTS now, then test $ARGUMENTS."},
		{"a plugin's command", "/team:deploy", "Deploy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, id, err := expanded(b, tt.in)
			if err != nil || id.Kind != capability.KindCommand {
				t.Fatalf("%v, %v", id, err)
			}
			if diff := cmp.Diff(tt.want, strings.TrimRight(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, same := range []string{"/unknown x", "/etc/passwd is a file", "/", "//fix", " /fix x", "please /fix", "/fix!", "", "/skill:"} {
		if got, id, err := expanded(b, same); got != same || id != (capability.ID{}) || err != nil {
			t.Errorf("%q became %q (%v, %v)", same, got, id, err)
		}
	}
}

// V194: a command that is no longer usable does not expand; one whose body changed under its digest is refused.
func TestOnlyAdmittedCommandsExpand(t *testing.T) {
	d := command("fix", "Fix")
	set, err := capability.NewSet([]capability.Declaration{d}, capability.Revocations{d.ID: "no"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := expanded(&optest.Bound{Set: set}, "/fix x"); got != "/fix x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	d.Digest = capability.ContentDigest([]byte("other"))
	if _, _, err := expanded(optest.NewBound(d), "/fix x"); vakerr.CodeOf(err) != vakerr.CapabilityStale {
		t.Errorf("got %v", err)
	}
}

// V188: /skill:name args. V191: name, location, provenance and base directory around the body.
func TestSkillByHand(t *testing.T) {
	hidden := skill("hidden", "only by hand")
	hidden.Config.(*capability.Skill).DisableModelInvocation = true
	b := optest.NewBound(skill("pdf", "# Read\n\nUse care.\n"), hidden)
	got, id, err := expanded(b, "/skill:pdf a.pdf page 3")
	want := `<skill name="pdf" location="skills/pdf/SKILL.md" provenance="workspace" base_directory="skills/pdf">
# Read

Use care.
</skill>

ARGUMENTS: a.pdf page 3`
	if err != nil || id != (capability.ID{Kind: capability.KindSkill, Name: "pdf"}) {
		t.Fatalf("%v, %v", id, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, _, err := expanded(b, "/skill:hidden"); err != nil || !strings.Contains(got, "only by hand") {
		t.Errorf("%q, %v", got, err)
	}
	_, _, err = expanded(b, "/skill:nope x")
	if e := vakerr.From(err); e == nil || e.Code != vakerr.CapabilityNotAdmitted || !strings.Contains(e.Remedy, "pdf") || strings.Contains(e.Remedy, "hidden") {
		t.Errorf("got %v", err)
	}
}

// V187: the conditions of a skill. V186: the admitted digest is checked before the body is used.
func TestSkillErrors(t *testing.T) {
	stale, empty, binary := skill("stale", "a"), skill("empty", " \n"), skill("binary", "\xff\xfe")
	stale.Config.(*capability.Skill).Body = []byte("b")
	gone := skill("gone", "x")
	set, err := capability.NewSet([]capability.Declaration{stale, empty, binary, gone}, capability.Revocations{gone.ID: "unsafe"})
	if err != nil {
		t.Fatal(err)
	}
	b := &optest.Bound{Set: set}
	for name, want := range map[string]vakerr.Code{
		"none": vakerr.CapabilityNotAdmitted, "gone": vakerr.CapabilityUnavailable, "stale": vakerr.CapabilityStale,
		"empty": vakerr.CapabilityInvalid, "binary": vakerr.CapabilityInvalid,
	} {
		if _, err := expand.Skill(b, name); vakerr.CodeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrapQuotesAndListsFiles(t *testing.T) {
	d := skill("x", "body")
	d.Source = `a"><b/SKILL.md`
	b := optest.NewBound(d)
	c, _ := b.Skill("x")
	got := expand.Wrap(c, expand.Facts{}, []string{"skills/x/run.sh", "skills/x/a\nb"}, true)
	if !strings.Contains(got, `location="a&quot;&gt;&lt;b/SKILL.md"`) ||
		!strings.Contains(got, "- skills/x/run.sh\n- skills/x/a b\n- …\n</skill>") {
		t.Errorf("got %s", got)
	}
}

func TestExpansionIsBounded(t *testing.T) {
	b := optest.NewBound(command("loud", strings.Repeat("$ARGUMENTS ", 100_000)))
	if _, _, err := expanded(b, "/loud "+strings.Repeat("x", 100_000)); vakerr.CodeOf(err) != vakerr.TooLarge {
		t.Errorf("got %v", err)
	}
}

// Whatever is typed: text that names nothing admitted is unchanged, and an expansion holds the arguments.
func TestExpandProperties(t *testing.T) {
	b := optest.NewBound(command("a", "Do $ARGUMENTS"), command("b", "Do"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`/[abc] ?[$\\"' A-Z0-9]*`)).Draw(t, "text")
		got, id, err := expanded(b, text)
		if err != nil && !strings.HasPrefix(text, "/skill:") {
			t.Fatal(err)
		}
		if id == (capability.ID{}) && got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if id.Kind == capability.KindCommand {
			if arguments := strings.TrimSpace(text[2:]); !strings.Contains(got, arguments) {
				t.Fatalf("%q lost its arguments: %q", text, got)
			}
		}
	})
}
