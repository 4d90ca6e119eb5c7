package turn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

// V7: what a plugin contributes is of the same five kinds and goes the same way: it is admitted, resolved and reported like
// everything else, and its origin is all that tells it apart.
func TestPluginContributionsTakeTheOneWay(t *testing.T) {
	own := newWorkshop(t).core().tool("lint", capability.Tool{ReadOnly: true}).skill("pdf", "x").server("git", capability.Server{}, "status")
	plugged := newWorkshop(t).core().tool("lint", capability.Tool{ReadOnly: true}).skill("pdf", "x").server("git", capability.Server{}, "status")
	plugin := capability.Origin{Kind: capability.OriginPlugin, Plugin: "kit", Scope: "user"}
	for i := range plugged.declared {
		plugged.declared[i].Origin = plugin
	}
	a, b := own.admit(), plugged.admit()
	for _, call := range []struct{ name, arguments string }{
		{"lint", `{}`}, {"skill", `{"name":"pdf"}`}, {"status", `{}`}, {"git__status", `{}`}, {"nothing", `{}`}, {"pdf", `{}`},
	} {
		x, xErr := Resolve(a, call.name, []byte(call.arguments), nil)
		y, yErr := Resolve(b, call.name, []byte(call.arguments), nil)
		if (xErr == nil) != (yErr == nil) || xErr != nil && xErr.Error() != yErr.Error() {
			t.Errorf("%s: %v from the workspace, %v from a plugin", call.name, xErr, yErr)
		}
		if diff := cmp.Diff(x.IDs, y.IDs); diff != "" {
			t.Errorf("%s (-workspace +plugin):\n%s", call.name, diff)
		}
	}
	report := capability.NewReport(capability.ReportInput{Snapshot: capability.Snapshot{Epoch: 1, Set: b.Set}})
	for _, row := range report.Capabilities {
		if row.Origin != "plugin:user:kit" || !row.Usable {
			t.Errorf("%s: origin %q, usable %v", row.ID, row.Origin, row.Usable)
		}
	}
}
