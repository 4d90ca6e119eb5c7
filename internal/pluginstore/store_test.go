package pluginstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kit is the folder of a plugin with one skill.
func kit(t testing.TB, body string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kit")
	write(t, filepath.Join(dir, ".claude-plugin/plugin.json"), `{"name":"kit","version":"1.0.0"}`)
	body = "---\nname: a\ndescription: A.\n---\n" + body + "\n"
	write(t, filepath.Join(dir, "skills/a/SKILL.md"), body)
	return dir
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func install(t testing.TB, s *Store, dir, scope string) (plugin.Record, *Content) {
	t.Helper()
	r, c, err := s.Install(t.Context(), Request{Source: dir, Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	return r, c
}

func consent(r plugin.Record, c *Content) plugin.Consent {
	return plugin.Consent{Digest: r.Pending().Digest, Scope: r.Scope, Brings: c.Brings.Digest()}
}

func inForce(t testing.TB, s *Store) []string {
	t.Helper()
	enabled, _, err := s.Enabled()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range enabled {
		all = append(all, e.Record.Scope+":"+e.Record.ID+"@"+e.Content.Digest[:12])
	}
	return all
}

// V196: installed means disabled, and a consent is for one content in one scope that brings exactly this.
func TestConsentIsForExactlyThis(t *testing.T) {
	s := Open(t.TempDir())
	r, c := install(t, s, kit(t, "one"), "user")
	if got := inForce(t, s); len(got) > 0 {
		t.Fatalf("installed, and in force: %q", got)
	}
	good := consent(r, c)
	for what, bad := range map[string]plugin.Consent{
		"none":           {},
		"another digest": {Digest: strings.Repeat("0", 64), Scope: good.Scope, Brings: good.Brings},
		"another scope":  {Digest: good.Digest, Scope: "local", Brings: good.Brings},
		"another set":    {Digest: good.Digest, Scope: good.Scope, Brings: "x"},
	} {
		if _, err := s.Enable("kit", "user", bad, nil); vakerr.CodeOf(err) != vakerr.ConsentRequired {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := inForce(t, s); len(got) > 0 {
		t.Fatalf("in force without a consent: %q", got)
	}
	must[plugin.Record](t)(s.Enable("kit", "user", good, nil))
	if got := inForce(t, s); len(got) != 1 {
		t.Fatalf("in force: %q", got)
	}
	// A record that is moved to another scope by hand is no consent there.
	text := must[[]byte](t)(os.ReadFile(s.recordPath("user", "kit")))
	write(t, s.recordPath("local", "kit"), strings.Replace(string(text), `"scope": "user"`, `"scope": "local"`, 1))
	if got := inForce(t, s); len(got) != 1 || !strings.HasPrefix(got[0], "user:") {
		t.Errorf("in force: %q", got)
	}
}

// A plugin that was disabled is still disabled for whoever opens the store next, and enabling it asks again.
func TestDisabledStaysDisabled(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir)
	r, c := install(t, s, kit(t, "one"), "user")
	must[plugin.Record](t)(s.Enable("kit", "", consent(r, c), nil))
	must[[]plugin.Record](t)(s.Disable("kit", ""))
	if got := inForce(t, Open(dir)); len(got) > 0 {
		t.Errorf("in force after a restart: %q", got)
	}
	r = must[plugin.Record](t)(s.Find("kit", ""))
	if r.Current.Consent != nil || r.Enabled {
		t.Errorf("the record is %+v", r)
	}
	if _, facts := s.Facts(r); r.State(facts) != plugin.StateRevoked {
		t.Errorf("the state is %s", r.State(facts))
	}
}

// V197: new content under the same version is an update. It waits for its own consent, the old version stays in force until
// then, and a rollback brings it back with the consent that it has.
func TestUpdateOfTheSameVersion(t *testing.T) {
	s := Open(t.TempDir())
	dir := kit(t, "one")
	r, c := install(t, s, dir, "user")
	must[plugin.Record](t)(s.Enable("kit", "", consent(r, c), nil))
	old := inForce(t, s)

	write(t, filepath.Join(dir, "skills/a/SKILL.md"), "---\nname: a\ndescription: A.\n---\ntwo\n")
	r = must[plugin.Record](t)(s.Update(t.Context(), "kit", "", Request{}))
	if r.Staged == nil || r.Staged.Version != "1.0.0" {
		t.Fatalf("the record is %+v", r)
	}
	if got := inForce(t, s); len(got) != 1 || got[0] != old[0] {
		t.Errorf("before the consent: %q, want %q", got, old)
	}
	newer := must[*Content](t)(s.Load(r.Staged.Digest))
	if changes := plugin.Diff(c.Brings, newer.Brings); len(changes) != 1 || changes[0].ID != "skill:kit:a" {
		t.Errorf("the changes are %+v", changes)
	}
	if _, err := s.Enable("kit", "", plugin.Consent{Digest: c.Digest, Scope: "user", Brings: c.Brings.Digest()}, nil); vakerr.CodeOf(err) != vakerr.ConsentRequired {
		t.Errorf("the consent for the old version was taken for the new one: %v", err)
	}
	must[plugin.Record](t)(s.Enable("kit", "", consent(r, newer), nil))
	if got := inForce(t, s); len(got) != 1 || got[0] == old[0] {
		t.Errorf("after the consent: %q", got)
	}
	must[plugin.Record](t)(s.Rollback("kit", ""))
	if got := inForce(t, s); len(got) != 1 || got[0] != old[0] {
		t.Errorf("after the rollback: %q, want %q", got, old)
	}
	if _, err := s.Rollback("kit", ""); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("a second rollback: %v", err)
	}
}

// Installing an older copy again does not replace what is installed, and a pinned digest admits nothing else.
func TestOlderCopiesAndPins(t *testing.T) {
	s := Open(t.TempDir())
	older, newer := kit(t, "old"), kit(t, "new")
	r, _ := install(t, s, newer, "user")
	if _, _, err := s.Install(t.Context(), Request{Source: older, Scope: "user"}); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("the older copy was installed: %v", err)
	}
	if got := must[plugin.Record](t)(s.Find("kit", "")); got.Current.Digest != r.Current.Digest {
		t.Errorf("content %.12s, want %.12s", got.Current.Digest, r.Current.Digest)
	}
	if _, _, err := s.Install(t.Context(), Request{Source: older, Scope: "local", Digest: r.Current.Digest}); vakerr.CodeOf(err) != vakerr.PluginUnsafe {
		t.Errorf("another content than the pinned one: %v", err)
	}
	pinned, _, err := s.Install(t.Context(), Request{Source: newer, Scope: "local", Digest: r.Current.Digest})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(newer, "more"), "x")
	if _, err := s.Update(t.Context(), "kit", "local", Request{}); vakerr.CodeOf(err) != vakerr.PluginUnsafe {
		t.Errorf("the pin of %.12s did not hold: %v", pinned.Source.Pin, err)
	}
}

// V198, V202: a content that was changed in the store is blocked, even when size and times are set back; installing it again
// repairs it.
func TestChangedContentIsBlocked(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(file string) error
	}{
		{"text", func(f string) error {
			info, err := os.Stat(f)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if err := os.Chmod(f, 0o600); err != nil {
				return err
			}
			text[len(text)-2] ^= 1
			if err := os.WriteFile(f, text, 0o600); err != nil {
				return err
			}
			return os.Chtimes(f, info.ModTime(), info.ModTime())
		}},
		{"executable", func(f string) error { return os.Chmod(f, 0o755) }},
		{"removed", os.Remove},
		{"added", func(f string) error { return os.WriteFile(f+".more", nil, 0o600) }},
		{"link", func(f string) error {
			if err := os.Remove(f); err != nil {
				return err
			}
			return os.Symlink("/etc/passwd", f)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := Open(t.TempDir())
			s.Now = func() time.Time { return time.Now().Add(time.Hour) } // every change counts as settled
			dir := kit(t, "one")
			r, content := install(t, s, dir, "user")
			must[plugin.Record](t)(s.Enable("kit", "", consent(r, content), nil))
			if got := inForce(t, s); len(got) != 1 {
				t.Fatalf("in force: %q", got)
			}
			if err := c.change(filepath.Join(content.Dir, "skills/a/SKILL.md")); err != nil {
				t.Fatal(err)
			}
			enabled, problems, err := s.Enabled()
			if err != nil || len(enabled) != 0 || len(problems) != 1 || problems[0].Code != "plugin_blocked" {
				t.Fatalf("in force %v, problems %v, %v", enabled, problems, err)
			}
			r = must[plugin.Record](t)(s.Find("kit", ""))
			if _, facts := s.Facts(r); r.State(facts) != plugin.StateBlocked {
				t.Errorf("the state is %s", r.State(facts))
			}
			install(t, s, dir, "user")
			if got := inForce(t, s); len(got) != 1 {
				t.Errorf("after installing it again: %q", got)
			}
		})
	}
}

// Of a plugin that is enabled in several scopes the narrowest one counts, and disabling it without a scope ends all.
func TestScopes(t *testing.T) {
	s := Open(t.TempDir())
	for _, scope := range []string{"user", "local"} {
		r, c := install(t, s, kit(t, scope), scope)
		must[plugin.Record](t)(s.Enable("kit", scope, consent(r, c), nil))
	}
	if got := inForce(t, s); len(got) != 1 || !strings.HasPrefix(got[0], "local:") {
		t.Errorf("in force: %q", got)
	}
	if _, err := s.Find("kit", ""); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("nobody said which scope: %v", err)
	}
	must[[]plugin.Record](t)(s.Disable("kit", ""))
	if got := inForce(t, s); len(got) != 0 {
		t.Errorf("in force: %q", got)
	}
	if _, _, err := s.Install(t.Context(), Request{Source: kit(t, "x"), Scope: "world"}); vakerr.CodeOf(err) != vakerr.InvalidRequest {
		t.Errorf("an unknown scope: %v", err)
	}
}

// A record that cannot be read means: not in force.
func TestBrokenRecords(t *testing.T) {
	for what, text := range map[string]string{
		"no JSON": "{", "another id": `{"schema":1,"id":"x","scope":"user","current":{"digest":"` + strings.Repeat("a", 64) + `"},"enabled":true}`,
		"a path for a digest": `{"schema":1,"id":"kit","scope":"user","current":{"digest":"../../x"},"enabled":true}`,
		"a later schema":      `{"schema":9,"id":"kit","scope":"user","current":{"digest":"` + strings.Repeat("a", 64) + `"},"enabled":true}`,
	} {
		s := Open(t.TempDir())
		write(t, s.recordPath("user", "kit"), text)
		enabled, problems, err := s.Enabled()
		if err != nil || len(enabled) > 0 || len(problems) != 1 || problems[0].Code != "plugin_blocked" {
			t.Errorf("%s: in force %v, problems %v, %v", what, enabled, problems, err)
		}
		if _, err := s.Remove("kit", "user", false); err != nil {
			t.Errorf("%s: it cannot be removed: %v", what, err)
		}
	}
}

// Fifty updates leave a bounded number of contents, and removing the plugin leaves none.
func TestOldVersionsAreBounded(t *testing.T) {
	s := Open(t.TempDir())
	dir := kit(t, "0")
	r, c := install(t, s, dir, "user")
	must[plugin.Record](t)(s.Enable("kit", "", consent(r, c), nil))
	for i := range 50 {
		write(t, filepath.Join(dir, "skills/a/SKILL.md"), "---\nname: a\ndescription: A.\n---\n"+strings.Repeat("x", i+1)+"\n")
		r = must[plugin.Record](t)(s.Update(t.Context(), "kit", "", Request{}))
		c = must[*Content](t)(s.Load(r.Pending().Digest))
		must[plugin.Record](t)(s.Enable("kit", "", consent(r, c), nil))
		if err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
	}
	if n := contents(t, s); n != 1+plugin.KeptVersions {
		t.Errorf("%d contents are kept, want %d", n, 1+plugin.KeptVersions)
	}
	must[plugin.Record](t)(s.Remove("kit", "", false))
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	if n := contents(t, s); n != 0 || len(s.contents) != 0 {
		t.Errorf("%d contents are left, %d remembered", n, len(s.contents))
	}
}

func contents(t *testing.T, s *Store) (n int) {
	t.Helper()
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(s.dir)) {
		if !badDigest(e.Name()) {
			n++
		}
	}
	return n
}
