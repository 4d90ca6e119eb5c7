package lifecycle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// V126, V97, V213: while twenty sessions have a turn open a plugin is enabled, updated and disabled. What it brings is there,
// and in its new form, from the next turn on; what is taken away is refused at once.
func TestPluginsAreLive(t *testing.T) {
	w := newWorld(t, nil)
	source := w.outside("kit")
	write := func(body string) {
		for path, text := range map[string]string{".claude-plugin/plugin.json": `{"name":"kit","version":"1.0.0"}`, skillFile("s"): skill("s", body)} {
			path = filepath.Join(source, path)
			w.must(os.MkdirAll(filepath.Dir(path), 0o700))
			w.must(os.WriteFile(path, []byte(text), 0o600))
		}
	}
	store := pluginstore.Open(host.PluginFolder(dataOf(w.folder), ""))
	enable := func() {
		r, err := store.Find("kit", "user")
		w.must(err)
		c, err := store.Load(r.Pending().Digest)
		w.must(err)
		_, err = store.Enable("kit", "user", plugin.Consent{Digest: c.Digest, Scope: "user", Brings: c.Brings.Digest()}, nil)
		w.must(err)
		w.reload()
	}
	agents := w.openMany(20)
	turns := make([]*aTurn, len(agents))
	each := func(f func(i int)) { parallel(len(agents), f) }
	next := func() {
		each(func(i int) {
			if turns[i] != nil {
				turns[i].end()
			}
			turns[i] = agents[i].begin()
		})
	}
	all := func(see func(*aTurn)) { each(func(i int) { see(turns[i]) }) }

	write("The old body.")
	_, _, err := store.Install(t.Context(), pluginstore.Request{Source: source, Scope: "user"})
	w.must(err)
	w.reload()
	next()
	all(lacks("kit:s")) // nobody has consented
	enable()
	all(lacks("kit:s"))
	next()
	all(reads("kit:s", "The old body."))

	write("The new body.")
	_, err = store.Update(t.Context(), "kit", "user", pluginstore.Request{})
	w.must(err)
	enable()
	all(reads("kit:s", "The old body."))
	next()
	all(reads("kit:s", "The new body."))

	_, err = store.Disable("kit", "user")
	w.must(err)
	w.reload()
	all(func(u *aTurn) {
		refused(t, u.call("skill", object{"name": "kit:s"}).err, vakerr.CapabilityRevoked, "kit")
	})
	next()
	all(lacks("kit:s"))
	w.verify()
}
