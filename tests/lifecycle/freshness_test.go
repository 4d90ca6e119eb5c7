package lifecycle

import (
	"testing"
	"time"

	"github.com/vak-actors/vak-actors/host"
)

// V36: a turn reconciles before it is admitted: an edit that nobody hinted at, with the next tick an hour away, is in the
// turn that begins right after it. A server that answers nobody holds no turn up.
func TestTurnBeginsWithWhatIsOnDisk(t *testing.T) {
	w := newWorldWith(t, host.Options{}, map[string]string{
		"vak.toml":         "[reconcile]\ntick = \"1h\"\n[mcp.servers.silent]\nurl = \"http://127.0.0.1:9/mcp\"\n",
		skillFile("greet"): skill("greet", "Say hello."),
	})
	a := w.open()
	a.begin().end()
	for _, text := range []string{"Say good evening.", "Say good night."} {
		w.write(skillFile("greet"), skill("greet", text))
		begun := time.Now()
		u := a.begin()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the turn waited %s, as long as something remote might take", took)
		}
		u.want(u.call("skill", object{"name": "greet"}), text)
		u.end()
	}
}
