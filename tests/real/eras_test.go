package real

import (
	"strings"
	"testing"
)

// The Inspector in either era lists tools whose schemas are portable, calls one, reads prompts and resources of a server, and
// finds the digests of skills right.
func TestInspectorInBothEras(t *testing.T) {
	w, ok := newWorld(t)
	if !ok {
		return
	}
	w.write("skills/greeting/SKILL.md", "---\nname: greeting\ndescription: How to greet.\n---\nSay hello.\n")
	w.write("skills/greeting/scripts/hello.sh", "echo hello\n")
	d := w.serve()
	w.call(d.overHTTP(""), "mcp", "action=list", "server=everything") // demand, so that what it offers is known
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			w := w.on(t)
			target := d.overHTTP("")
			for what, c := range map[string]struct {
				args []string
				says string
			}{
				"tools":     {[]string{"--method", "tools/list", "--strict"}, `"everything__echo"`},
				"a call":    {[]string{"--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hi"}, "hi"},
				"prompts":   {[]string{"--method", "prompts/list"}, "everything__simple-prompt"},
				"a prompt":  {[]string{"--method", "prompts/get", "--prompt-name", "everything__simple-prompt"}, "messages"},
				"resources": {[]string{"--method", "resources/list"}, "skill://greeting/SKILL.md"},
				"a skill":   {[]string{"--method", "resources/read", "--uri", "skill://greeting/SKILL.md"}, "Say hello."},
				"skills":    {[]string{"--method", "skills/list", "--verify"}, "skill://greeting/scripts/hello.sh"},
			} {
				code, out := w.inspect(target, append([]string{"--protocol-era", era, "--transport", "http"}, c.args...)...)
				if code != 0 || !strings.Contains(out, c.says) {
					t.Errorf("%s: exit %d, want %s in\n%s", what, code, c.says, out)
				}
			}
		})
	}
}
