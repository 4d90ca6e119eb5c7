package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
)

// What a catalog lacks, and what in it cannot be checked or listed, is a problem of the server's file, a bounded number.
func TestProblemsOfCatalogs(t *testing.T) {
	natural := strings.TrimPrefix(ExposedName("s", "a.b"), "s__")
	set := newWorkshop(t).core().tool("git__status", capability.Tool{}).
		server("git", capability.Server{}, "commit", "status").
		server("s", capability.Server{}, "a.b", natural, "fine").server("cold", capability.Server{}).set(nil)
	broken, _ := set.Get(capability.ID{Kind: capability.KindMCP, Name: "s"})
	o := broken.Config.(*capability.Server).Observation
	o.Notes = []string{"odd: left out: it has no name"}
	o.Catalog[2].InputSchema = json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"https://elsewhere.example/x"}}}`)
	found := map[string]string{}
	for c := range set.OfKind(capability.KindMCP) {
		for _, p := range CatalogProblems(c) {
			found[p.Code] += p.Message + "\n"
			if p.Hint == "" || p.Severity != capability.SeverityWarning {
				t.Errorf("%+v", p)
			}
		}
	}
	for _, p := range CollisionProblems(set) {
		found[p.Code] += p.Message + "\n"
	}
	for code, words := range map[string][]string{
		"server_catalog": {"mcp:s: odd: left out", "mcp:s: fine: the schema cannot be used"},
		"exposed_name":   {"mcp:git: the tool status is listed under no name, for git__status", "the tool a.b", "the tool " + natural},
	} {
		for _, word := range words {
			if !strings.Contains(found[code], word) {
				t.Errorf("%s does not say %q:\n%s", code, word, found[code])
			}
		}
		if strings.Count(found[code], "\n") != len(words) {
			t.Errorf("%s says more:\n%s", code, found[code])
		}
	}

	o.Notes = nil
	for i := range 1000 {
		o.Notes = append(o.Notes, fmt.Sprintf("tool %d: left out", i))
	}
	if all := CatalogProblems(broken); len(all) != maxCatalogProblems || !strings.Contains(all[len(all)-1].Message, "more like it") {
		t.Errorf("%d problems of one server", len(all))
	}
}
