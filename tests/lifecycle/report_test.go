package lifecycle

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/internal/turn"
)

// The report says what of a server's catalog is left out, cannot be checked or is listed under no name; its findings are
// those of doctor. When the server is mended they are gone.
func TestReportTellsOfCatalogs(t *testing.T) {
	w := newWorld(t, nil)
	clash := strings.TrimPrefix(turn.ExposedName("s", "a.b"), "s__")
	write := func(tools ...object) {
		text, err := json.Marshal(tools)
		w.must(err)
		w.must(os.WriteFile(w.outside("catalog.json"), text, 0o600))
	}
	schema := object{"type": "object"}
	write(object{"name": "a.b", "inputSchema": schema}, object{"name": clash, "inputSchema": schema},
		object{"name": "elsewhere", "inputSchema": object{"type": "object", "properties": object{"x": object{"$ref": "https://elsewhere.example/x"}}}},
		object{"name": "fine", "inputSchema": schema}, object{"name": "fine", "inputSchema": schema})
	s := w.fault("s", []string{"-catalog-file", w.outside("catalog.json"), "-list-changed-on-call"})
	w.write("vak.toml", toml(s.config))
	u := w.open().begin()
	u.want(u.call("mcp", object{"action": "list", "server": "s"}), "elsewhere")
	said := func() string {
		report, _ := w.report()
		var all []string
		for _, f := range report.Findings() {
			all = append(all, f.Subject+": "+f.Problem)
		}
		return strings.Join(all, "\n")
	}
	eventually(t, "the report tells what is wrong with the catalog", func() bool { return strings.Count(said(), "\n") == 3 })
	for _, word := range []string{
		"vak.toml: mcp:s: fine: left out: its name is listed already", "mcp:s: elsewhere: the schema cannot be used",
		"mcp:s: the tool a.b is listed under no name", "mcp:s: the tool " + clash,
	} {
		if !strings.Contains(said(), word) {
			t.Errorf("the findings do not say %q:\n%s", word, said())
		}
	}
	write(object{"name": "fine", "inputSchema": schema})
	u.mcp("s", "fine", object{})
	u.want(u.call("mcp", object{"action": "list", "server": "s"}), "fine")
	eventually(t, "nothing is wrong any more", func() bool { return said() == "" })
}
