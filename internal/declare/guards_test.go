package declare

import (
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
)

// A hook is never switched off by another of the same name: those of several roots all stay, under ids of their own that do
// not depend on what else is read; only what does the same runs once.
func TestHooksOfOneNameAllStay(t *testing.T) {
	guard := func(source, match string, mode capability.FailureMode) Result {
		return Result{Declarations: []capability.Declaration{{
			ID: capability.ID{Kind: capability.KindHook, Name: "pre-tool-use/./guard.sh"}, Source: source,
			Config: &capability.Hook{Event: "pre-tool-use", Match: match, Command: "./guard.sh", FailureMode: mode},
		}}}
	}
	clone, user := guard("vak.toml", "never", capability.FailOpen), guard("user:vak.toml", "write", capability.FailClosed)
	all := Merge(clone, user)
	if len(all.Declarations) != 2 || len(all.Shadowed) != 0 {
		t.Fatalf("%d hooks in force, shadowed %v", len(all.Declarations), all.Shadowed)
	}
	own := all.Declarations[1].ID.Name
	if !strings.HasPrefix(own, "pre-tool-use/./guard.sh@") || all.Declarations[1].Source != "user:vak.toml" {
		t.Errorf("the user's guard is %s of %s", own, all.Declarations[1].Source)
	}
	third := Merge(clone, guard("plugin:x/hooks.json", "edit", capability.FailOpen), user)
	if len(third.Declarations) != 3 || third.Declarations[1].ID.Name != own && third.Declarations[2].ID.Name != own {
		t.Errorf("with a third root the user's guard has another id: %v", third.Declarations)
	}
	if same := Merge(user, guard("other.toml", "write", capability.FailClosed)); len(same.Declarations) != 1 || len(same.Shadowed) != 1 {
		t.Errorf("hooks that do the same: %v", same.Declarations)
	}
}
