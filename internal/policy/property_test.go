package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vak-actors/vak-actors/capability"
)

// ruleTexts are rules that overlap, of the own dialect and of Claude Code.
var ruleTexts = map[capability.Dialect][]string{
	capability.DialectVAK: {
		"read", "write", "write(src/**)", "write(**/*.go)", "write(../**)", "mcp", "git/*", "mcp(git/drop)", "mcp__git__com*",
		"bash", "bash(git *)", "bash(git status)", "bash(ls*)", "bash(rm *)", "*", "delete", "fetch(https://example.org/*)",
	},
	capability.DialectClaude: {
		"Read", "Edit", "Edit(src/**)", "Edit(*.go)", "Read(//etc/**)", "mcp__git", "mcp__git__*", "mcp__git__drop",
		"Bash", "Bash(git *)", "Bash(git status)", "Bash(ls*)", "Bash(rm:*)", "WebFetch(domain:example.org)",
	},
}

var asked = []Request{
	reading, writing, outside, absolute, deleting, fetching, shell, remote, dropping, status,
	bash("git status && ls"), bash("git log; rm x"), bash("ls $(git log)"), bash("git log > src/a.go"), bash("timeout 5 git status"),
	bash("A=1 rm x"), bash("$X"), bash("if"),
}

func drawLayer(t *rapid.T) PermissionRules {
	dialect := rapid.SampledFrom([]capability.Dialect{capability.DialectVAK, capability.DialectClaude}).Draw(t, "dialect")
	some := rapid.SliceOfN(rapid.SampledFrom(ruleTexts[dialect]), 0, 3)
	return PermissionRules{
		Dialect: dialect, Untrusted: rapid.Bool().Draw(t, "untrusted"),
		Allow: some.Draw(t, "allow"), Ask: some.Draw(t, "ask"), Deny: some.Draw(t, "deny"),
	}
}

func compiled(t *rapid.T, layers []PermissionRules) *Engine {
	e, problems := CompileEngine(Host{"/srv/ws", "/srv/u", "read", "write"}, layers...)
	for _, p := range problems {
		if p.Severity == capability.SeverityError {
			t.Fatal(problems)
		}
	}
	return e
}

// V156, V208: a deny or ask rule more, or an allow rule or trust less, never widens, in any layer; and the order of rules, and
// of layers, never decides.
func TestRulesAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := rapid.SliceOfN(rapid.Custom(drawLayer), 1, 3).Draw(t, "layers")
		layers[0].Mode = rapid.SampledFrom([]string{"", "read-only", "full-access"}).Draw(t, "mode")
		if layers[0].Dialect == capability.DialectClaude {
			layers[0].Mode = ""
		}
		loose := compiled(t, layers)

		shuffled := slices.Clone(layers)
		for i := range shuffled {
			for _, list := range []*[]string{&shuffled[i].Allow, &shuffled[i].Ask, &shuffled[i].Deny} {
				if len(*list) > 0 {
					*list = rapid.Permutation(*list).Draw(t, "order")
				}
			}
		}
		slices.Reverse(shuffled)
		same := compiled(t, shuffled)

		strict := slices.Clone(layers)
		at := rapid.IntRange(0, len(strict)-1).Draw(t, "layer")
		more := rapid.SampledFrom(ruleTexts[strict[at].Dialect]).Draw(t, "rule")
		switch rapid.SampledFrom([]string{"deny", "ask", "allow", "trust"}).Draw(t, "change") {
		case "deny":
			strict[at].Deny = append(slices.Clone(strict[at].Deny), more)
		case "ask":
			strict[at].Ask = append(slices.Clone(strict[at].Ask), more)
		case "allow":
			strict[at].Allow = strict[at].Allow[:max(0, len(strict[at].Allow)-1)]
		case "trust":
			strict[at].Untrusted = true
		}
		stricter := compiled(t, strict)
		for _, req := range asked {
			before, after := loose.Decide(req), stricter.Decide(req)
			if after.Effect > before.Effect {
				t.Fatalf("%s: %+v became %+v", req.Rule(), before, after)
			}
			if got := same.Decide(req); got.Effect != before.Effect {
				t.Fatalf("%s: %+v, in another order %+v", req.Rule(), before, got)
			}
		}
	})
}
