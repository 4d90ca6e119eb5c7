package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Placeholders of every dialect become those of this program, and what is none stays as it is.
func TestNotation(t *testing.T) {
	shout, dollar := Notation{Shout: true}, Notation{Dollar: true}
	for _, c := range []struct {
		notation   Notation
		text, want string
	}{
		{shout, "${env:A}", "${A}"},
		{shout, "${env:A:-d}", "${A:-d}"},
		{shout, "${A:-d} and ${B}", "${A:-d} and ${B}"},
		{shout, "Bearer $API_KEY", "Bearer ${API_KEY}"},
		{shout, "pa$word $1 $$ $( $X y$", "pa$word $1 $$ $( $X y$"},
		{shout, "$MixedName", "$MixedName"},
		{dollar, "$lower/$UP", "${lower}/${UP}"},
		{Notation{}, "$API_KEY", "$API_KEY"},
		{Notation{Braces: true}, "{env:A}", "${A}"},
		{shout, "${input:api-key}", "${INPUT_API_KEY}"},
		{Notation{Inputs: map[string]string{"port": "80"}}, "${input:port}", "${INPUT_PORT:-80}"},
		{shout, "${workspaceRoot}${/}x${pathSeparator}y", "${workspaceFolder}/x/y"},
		{shout, "${userHome}", "${userHome}"},
		{shout, "${open", "${open"},
		{shout, "${cmd: op read}", "${cmd: op read}"},
	} {
		if diff := cmp.Diff(c.want, c.notation.Rewrite(c.text)); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

// A default that holds a placeholder is none: it would be sent as it is written.
func TestNestedDefaultIsNeverSent(t *testing.T) {
	got, missing := Expand("${A:-${B}}", func(string) (string, bool) { return "", false })
	if len(missing) == 0 {
		t.Errorf("expanded to %q", got)
	}
}

// V208, V210: a layer adds servers, hooks, ask and deny rules, widens nothing, and has nothing of other layers in it.
func TestLayer(t *testing.T) {
	c, problems := ParseLayer("x.toml", []byte("theme = 1\n[permissions]\nmode = \"full-access\"\nallow = [\"*\"]\nask = [\"write\"]\ndeny = [\"bash\"]\n"+
		"[mcp.servers.a]\ncommand = \"c\"\n"))
	if diff := cmp.Diff([]string{"layer_key:1", "layer_grant:3", "layer_grant:4"}, codes(problems)); diff != "" {
		t.Error(diff)
	}
	p := c.Permissions
	if p.Mode != "" || p.Allow != nil || strings.Join(p.Ask, " ") != "write" || strings.Join(p.Deny, " ") != "bash" || len(c.MCP) != 1 || c.Listen != "" {
		t.Errorf("%+v", c)
	}
	if c, _ = ParseLayer("x.toml", []byte("[mcp")); !c.Unreadable || strings.Join(c.Permissions.Deny, " ") != "*" {
		t.Errorf("an unreadable layer denies %v", c.Permissions.Deny)
	}
}

// ServerID keeps names that can be addressed and makes others so.
func TestServerID(t *testing.T) {
	for name, want := range map[string]string{
		"git": "git", "Google Drive": "Google Drive", "aws.docs": "aws.docs", "@21st-dev/magic": "21st-dev-magic",
		"github.com/upstash/context7-mcp": "github.com-upstash-context7-mcp", "../x": "x", "..": "", "": "", "a\nb": "a-b",
	} {
		if got := ServerID(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
