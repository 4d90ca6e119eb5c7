package config

import (
	"strings"
	"testing"
)

// What can be written and does nothing yet is said, with its line: an operator must not rely on it.
func TestWithoutEffect(t *testing.T) {
	for text, says := range map[string]string{
		"[mcp.servers.a]\ncommand = \"a\"\nnetwork = false\n": "network = false in [mcp.servers.a] has no effect yet",
		"[cluster]\n":    "[cluster] is not supported yet",
		"[components]\n": "[components] is not supported yet",
	} {
		_, problems := parse(t, text)
		if len(problems) != 1 || problems[0].Code != "config_unsupported" || !strings.Contains(problems[0].Message, says) || problems[0].Line == 0 {
			t.Errorf("%q: want a problem that says %q, got %+v", text, says, problems)
		}
	}
	for _, text := range []string{
		"[[hooks]]\nevent = \"stop\"\ncommand = \"a\"\n", "[[hooks]]\nevent = \"session_end\"\ncommand = \"a\"\n",
		"[[hooks]]\nevent = \"user-prompt\"\ncommand = \"a\"\n", "[[hooks]]\nevent = \"post-tool-failure\"\ncommand = \"a\"\n", "[[hooks]]\nevent = \"post-tool-use\"\ncommand = \"a\"\n",
		"[mcp.servers.a]\ncommand = \"a\"\n", "[mcp.servers.a]\ncommand = \"a\"\nnetwork = true\n",
	} {
		if _, problems := parse(t, text); len(problems) > 0 {
			t.Errorf("%q: %+v", text, problems)
		}
	}
}
