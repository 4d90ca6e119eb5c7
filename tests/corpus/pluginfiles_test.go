package corpus

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/declare"
)

// The files inside of plugins: every skill, command, hook and server of the table, each row exactly. With the manifests and
// marketplaces these are all rows of plugins.
func TestPluginFiles(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	skills, commands, hooks, servers := newTally(), newTally(), newTally(), newTally()
	for _, group := range rows(t, dir, "plugins") {
		r := group[0]
		kind, name, _ := strings.Cut(group[len(group)-1].expect, ":")
		switch {
		case kind == "plugin" || kind == "marketplace": // TestManifests
		case kind == "skill":
			at := path.Join("skills", path.Base(path.Dir(r.file)), path.Base(r.file))
			skills.count(r, document(r, scan(t, dir, r.file, at), r.expect))
		case kind == "command":
			at := path.Join("commands", r.detail.NS, path.Base(r.file))
			want := r.expect
			if r.detail.NS != "" {
				want = "command:" + strings.ReplaceAll(r.detail.NS, "/", ":") + ":" + name
			}
			commands.count(r, document(r, scan(t, dir, r.file, at), want))
		case kind == "hook":
			raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.file)))
			if err != nil {
				t.Fatal(err)
			}
			got := declare.ReadHooks("hooks/hooks.json", raw)
			for _, r := range group {
				hooks.count(r, handler(r, got))
			}
			if n := len(group) - 1; n != len(got.Hooks) {
				t.Errorf("%s: %d hooks are read, the table has %d", r.file, len(got.Hooks), n)
			}
		case kind == "mcp":
			got, problems := readServers(t, dir, r.file, path.Base(r.file))
			for _, r := range group {
				servers.count(r, serverRow(r, group, got, problems))
			}
			if extra := len(got) - declaredRows(group); extra != 0 {
				t.Errorf("%s: %d servers more than the table knows", r.file, extra)
			}
		default:
			t.Errorf("%s: nobody checks the row %s", r.file, r.expect)
		}
	}
	skills.exact(t, "skills of plugins")
	commands.exact(t, "commands of plugins")
	hooks.exact(t, "hooks of plugins")
	servers.exact(t, "servers of plugins")
}
