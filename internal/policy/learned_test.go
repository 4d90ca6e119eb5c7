package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
)

func learnedEngine(t testing.TB, rules PermissionRules, learned ...string) *Engine {
	t.Helper()
	e, problems := CompileEngine(Host{}, rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e.Guarding([]string{"guard.sh"}).Learning((*Learned)(nil).With(learned...))
}

// V158: a learned rule answers a question of the mode for exactly what was asked, and nothing else wins over it but deny, ask
// and a read-only mode.
func TestLearnedRules(t *testing.T) {
	deploy := Request{Tool: "deploy", Subject: "staging", Kind: SubjectURL}
	for name, tc := range map[string]struct {
		rules   PermissionRules
		learned string
		req     Request
		want    Effect
	}{
		"exactly it":               {learned: "deploy(staging)", req: deploy, want: Allow},
		"nothing learned":          {req: deploy, want: Ask},
		"another subject":          {learned: "deploy(production)", req: deploy, want: Ask},
		"no pattern":               {learned: "deploy(*)", req: deploy, want: Ask},
		"the tool alone":           {learned: "deploy", req: deploy, want: Ask},
		"a prefix":                 {learned: "deploy(stag)", req: deploy, want: Ask},
		"deny wins":                {rules: PermissionRules{Deny: []string{"deploy"}}, learned: "deploy(staging)", req: deploy, want: Deny},
		"ask wins":                 {rules: PermissionRules{Ask: []string{"deploy"}}, learned: "deploy(staging)", req: deploy, want: Ask},
		"a read-only mode wins":    {rules: PermissionRules{Mode: "read-only"}, learned: "deploy(staging)", req: deploy, want: Deny},
		"never what destroys":      {learned: "deploy(staging)", req: Request{Tool: "deploy", Subject: "staging", Destructive: true}, want: Ask},
		"a destroying server tool": {learned: "mcp(db/drop)", req: Request{Tool: "mcp", Server: "db", ServerTool: "drop", Destructive: true}, want: Ask},
		"a command":                {learned: "sh(make test)", req: Request{Tool: "sh", Subject: "make test", Kind: SubjectCommand}, want: Allow},
		"never an opaque command":  {learned: "sh(make $(x))", req: Request{Tool: "sh", Subject: "make $(x)", Kind: SubjectCommand}, want: Ask},
		"never what it redirects":  {learned: "sh(echo x > vak.toml)", req: Request{Tool: "sh", Subject: "echo x > vak.toml", Kind: SubjectCommand}, want: Ask},
		"a text of .claude":        {learned: "write(.claude/skills/a/SKILL.md)", req: Request{Tool: "write", Subject: ".claude/skills/a/SKILL.md", Kind: SubjectPath}, want: Allow},
		"never the settings":       {learned: "write(.claude/settings.json)", req: Request{Tool: "write", Subject: ".claude/settings.json", Kind: SubjectPath}, want: Ask},
		"never vak.toml":           {learned: "write(vak.toml)", req: Request{Tool: "write", Subject: "vak.toml", Kind: SubjectPath}, want: Ask},
		"never a hook's program":   {learned: "write(guard.sh)", req: Request{Tool: "write", Subject: "guard.sh", Kind: SubjectPath}, want: Ask},
		"never below .git":         {learned: "write(.claude/.git/x.md)", req: Request{Tool: "write", Subject: ".claude/.git/x.md", Kind: SubjectPath}, want: Ask},
	} {
		t.Run(name, func(t *testing.T) {
			e := learnedEngine(t, tc.rules, tc.learned)
			if tc.learned == "" {
				e = learnedEngine(t, tc.rules)
			}
			if got := e.Decide(tc.req); got.Effect != tc.want {
				t.Errorf("%s: %s", got.Effect, got.Reason)
			}
		})
	}
}

// The files that a learned command writes are those that the shell would write, however they are named.
func TestLearnedRedirections(t *testing.T) {
	for line, want := range map[string]Effect{
		"echo x > note": Allow, "echo x > /srv/ws/note": Allow, "echo x > vak.toml": Ask, "echo x > /srv/ws/vak.toml": Ask,
	} {
		e, _ := CompileEngine(Host{Workspace: "/srv/ws", WriteTool: "write"}, PermissionRules{})
		if got := e.Learning((*Learned)(nil).With("sh(" + line + ")")).Decide(Request{Tool: "sh", Subject: line, Kind: SubjectCommand}); got.Effect != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// What an answer for more than once would leave: each request that asks, by its own rule; nothing when one must be asked
// about each time.
func TestLearnable(t *testing.T) {
	url := Request{Tool: "fetch", Subject: "https://a.example/x", Kind: SubjectURL}
	inside := Request{Tool: "fetch", Subject: "out.html", Kind: SubjectPath}
	for name, tc := range map[string]struct {
		rules PermissionRules
		reqs  []Request
		want  []string
	}{
		"one":             {reqs: []Request{url}, want: []string{"fetch(https://a.example/x)"}},
		"what is allowed": {reqs: []Request{url, inside}, want: []string{"fetch(https://a.example/x)"}},
		"two":             {reqs: []Request{url, {Tool: "fetch", Subject: "/tmp/x", Kind: SubjectPath}}, want: []string{"fetch(https://a.example/x)", "fetch(/tmp/x)"}},
		"an ask rule":     {rules: PermissionRules{Ask: []string{"fetch"}}, reqs: []Request{url}},
		"one of them":     {reqs: []Request{url, {Tool: "fetch", Subject: "vak.toml", Kind: SubjectPath}}},
		"destructive":     {reqs: []Request{{Tool: "mcp", Server: "s", ServerTool: "t", Destructive: true}}},
		"two lines":       {reqs: []Request{{Tool: "note", Subject: "a\nb", Kind: SubjectName}}},
		"too long":        {reqs: []Request{{Tool: "note", Subject: strings.Repeat("x", maxLearned), Kind: SubjectName}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, learnedEngine(t, tc.rules).Learnable(tc.reqs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLearnableIsExact: whatever asks and can be learned is allowed by its own rule, and no request that differs is.
func TestLearnableIsExact(t *testing.T) {
	request := rapid.Custom(func(t *rapid.T) Request {
		return Request{
			Tool:        rapid.SampledFrom([]string{"write", "fetch", "sh"}).Draw(t, "tool"),
			Subject:     rapid.SampledFrom([]string{"", "a", "a*", "*", "a[b", "vak.toml", ".claude/x.md", "/etc/a", "a;b", "a(b)"}).Draw(t, "subject"),
			Kind:        rapid.SampledFrom([]SubjectKind{SubjectPath, SubjectURL, SubjectCommand}).Draw(t, "kind"),
			Destructive: rapid.Bool().Draw(t, "destructive"),
		}
	})
	plain := learnedEngine(t, PermissionRules{})
	rapid.Check(t, func(t *rapid.T) {
		a, b := request.Draw(t, "a"), request.Draw(t, "b")
		rules := plain.Learnable([]Request{a})
		if len(rules) == 0 {
			return
		}
		e := plain.Learning((*Learned)(nil).With(rules...))
		if d := e.Decide(a); d.Effect != Allow {
			t.Fatalf("%+v is not allowed by its own rule %v: %s", a, rules, d.Reason)
		}
		if a.Rule() != b.Rule() && e.Decide(b).Effect != plain.Decide(b).Effect {
			t.Fatalf("the rules of %+v decide about %+v", a, b)
		}
	})
}

// V152: a tool of which a learned rule allows some calls can be reached where nobody answers.
func TestReachKnowsWhatWasLearned(t *testing.T) {
	tool := &capability.Capability{Declaration: capability.Declaration{
		ID:     capability.ID{Kind: capability.KindTool, Name: "fetch"},
		Config: &capability.Tool{InputSchema: []byte(`{"type":"object","properties":{"url":{"type":"string"}}}`)},
	}}
	whole := &capability.Capability{Declaration: capability.Declaration{ID: capability.ID{Kind: capability.KindTool, Name: "ping"}, Config: &capability.Tool{}}}
	for name, tc := range map[string]struct {
		c       *capability.Capability
		learned []string
		want    State
	}{
		"nothing learned":   {tool, nil, Blocked},
		"of another tool":   {tool, []string{"fetcher(x)"}, Blocked},
		"one of its calls":  {tool, []string{"fetch(https://a.example)"}, Gated},
		"all of its calls":  {whole, []string{"ping"}, Open},
		"none of its calls": {whole, nil, Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			if s := StandingOf(learnedEngine(t, PermissionRules{}, tc.learned...), tc.c, nil, false); s.State != tc.want {
				t.Errorf("%s: %s", s.State, s.Reason)
			}
		})
	}
}

func TestLearnedFile(t *testing.T) {
	at := time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC)
	text, err := AppendLearned(nil, []string{`fetch(https://a.example/?q="x")`, "write(a[1].tsx)"}, `ann "the boss"`, at)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "# mine\n[[allow]] # by hand\nrule = 'ping'"...)
	if text, err = AppendLearned(text, []string{"ping", "pong(\u202e)"}, "bob", at); err != nil {
		t.Fatal(err)
	}
	rules, problems := ParseLearned("learned.toml", text)
	want := []LearnedRule{
		{`fetch(https://a.example/?q="x")`, `ann "the boss"`, at},
		{"write(a[1].tsx)", `ann "the boss"`, at},
		{Rule: "ping"},
		{"pong(\u202e)", "bob", at},
	}
	if diff := cmp.Diff(want, rules); diff != "" || len(problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", problems, diff)
	}
	if !strings.Contains(string(text), "# mine\n[[allow]] # by hand\n") || strings.Count(string(text), "ping") != 1 {
		t.Errorf("what was written by hand changed:\n%s", text)
	}
}

// Whatever is wrong with the file, it allows less, says where, and is not written over.
func TestLearnedFileIsBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		text, code string
		line, kept int
		appends    bool
	}{
		"no TOML":          {"[[allow]]\nrule = \"a\"\n[[allow", "learned_syntax", 3, 0, false},
		"unknown key":      {"[[allow]]\nrule = \"a\"\nrules = 1\n", "learned_syntax", 3, 0, false},
		"unknown list":     {"[[deny]]\nrule = \"a\"\n", "learned_syntax", 1, 0, false},
		"another case":     {"[[allow]]\nrule = \"a\"\n[[Allow]]\nrule = \"b\"\n", "learned_syntax", 3, 0, false},
		"a key's case":     {"[[allow]]\nRule = \"a\"\n", "learned_syntax", 2, 0, false},
		"another type":     {"[[allow]]\nrule = 1\n", "learned_syntax", 2, 0, false},
		"a list of allow":  {"allow = [\"a\"]\n", "learned_syntax", 1, 0, false},
		"no rule":          {"[[allow]]\nrule = \"a b\"\n[[allow]]\nrule = \"c\"\n", "learned_rule", 0, 1, true},
		"empty":            {"[[allow]]\n", "learned_rule", 0, 0, true},
		"a prefix":         {"[[allow]]\nrule = \"-read\"\n", "learned_rule", 0, 0, true},
		"a pattern":        {"[[allow]]\nrule = \"mcp(s/*)\"\n", "learned_rule", 0, 1, true},
		"too large":        {strings.Repeat("#", MaxLearnedBytes+1), "learned_too_many", 0, 0, false},
		"too many":         {strings.Repeat("[[allow]]\nrule=\"a\"\n", maxLearnedRules+1), "learned_too_many", 0, 0, false},
		"nothing is wrong": {"", "", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			rules, problems := ParseLearned("learned.toml", []byte(tc.text))
			if len(rules) != tc.kept || tc.code == "" != (len(problems) == 0) {
				t.Fatalf("%d rules, %+v", len(rules), problems)
			}
			if tc.code != "" && (problems[0].Code != tc.code || problems[0].Line != tc.line || problems[0].Path != "learned.toml" || problems[0].Hint == "") {
				t.Errorf("%+v", problems[0])
			}
			after, err := AppendLearned([]byte(tc.text), []string{"more"}, "ann", time.Time{}.AddDate(2025, 0, 0))
			if (err == nil) != tc.appends || err == nil && !strings.HasPrefix(string(after), tc.text) {
				t.Errorf("appended: %v", err)
			}
		})
	}
}

func FuzzParseLearned(f *testing.F) {
	f.Add([]byte("[[allow]]\nrule = \"mcp(a/b)\"\nby = \"x\"\nat = 2026-12-01T00:00:00Z\n"))
	f.Add([]byte("allow = [{rule='a'}]\n"))
	f.Add([]byte("[[allow]]\nrule = '''a\nb'''"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 { // a long text only takes long
			return
		}
		rules, problems := ParseLearned("p", text)
		for _, r := range rules {
			if !literalRule(r.Rule) {
				t.Fatalf("%q is taken for a rule", r.Rule)
			}
		}
		after, err := AppendLearned(text, []string{"new(rule)"}, "x", time.Unix(0, 0))
		if err != nil {
			return
		}
		again, more := ParseLearned("p", after)
		if !slices.ContainsFunc(again, func(r LearnedRule) bool { return r.Rule == "new(rule)" }) || len(again) < len(rules) || len(more) != len(problems) {
			t.Fatalf("%v, %v after %v, %v", again, more, rules, problems)
		}
	})
}
