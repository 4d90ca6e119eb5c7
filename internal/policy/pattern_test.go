package policy

import "testing"

// V164: a hook's match is a permission rule without its effect.
func TestPattern(t *testing.T) {
	write := Request{Tool: "write", Subject: "src/a/b.go", Kind: SubjectPath}
	shell := Request{Tool: "bash", Subject: "ls; rm -rf x", Kind: SubjectCommand}
	server := Request{Tool: BrokerTool, Server: "github", ServerTool: "create_issue"}
	for _, tt := range []struct {
		pattern string
		req     Request
		want    bool
	}{
		{"", write, true},
		{"*", server, true},
		{"Write", write, true},
		{"write(src/**)", write, true},
		{"write(src/*)", write, false},
		{"edit", write, false},
		{"bash(ls*)", shell, true},
		{"mcp", server, true},
		{"mcp(github/*)", server, true},
		{"mcp__github__create_issue", server, true},
		{"mcp(gitlab/*)", server, false},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Matches(tt.req); got != tt.want {
			t.Errorf("%q on %s: %t", tt.pattern, tt.req.Rule(), got)
		}
	}
	for _, bad := range []string{"write(", "+write", "a b", "write([)"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
