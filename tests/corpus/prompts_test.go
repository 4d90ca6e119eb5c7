package corpus

import (
	"path"
	"strings"
	"testing"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/expand"
	"github.com/vak-actors/vak-actors/internal/op/optest"
)

func bodyOf(d capability.Declaration) []byte { return d.Config.(*capability.Command).Body }

// Every command can be planned, and asks for no command line that the table does not count: what stands in a block of code
// or in the middle of a word is no command. Nothing is run by reading, planning or listing.
func TestPrompts(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	planned, lines, counted := 0, 0, 0
	for _, group := range rows(t, dir, "commands") {
		r := group[0]
		got := scan(t, dir, r.file, path.Join(commandsFolder(r.file), r.detail.NS, path.Base(r.file)))
		if len(got.Declarations) != 1 {
			continue
		}
		d := got.Declarations[0]
		plan, err := expand.New(optest.NewBound(d), "/"+d.ID.Name+" one 'two words'", expand.Facts{Session: "s", Project: "/ws"})
		if err != nil || plan.ID != d.ID {
			t.Errorf("%s: planned as %v, %v", r.file, plan.ID, err)
			continue
		}
		here := 0
		for _, p := range plan.Parts {
			if p.Kind == expand.Command {
				here++
			}
		}
		most := r.detail.Placeholders["bang"] + strings.Count(string(bodyOf(d)), "```!")
		if d.Config.(*capability.Command).Dialect == "" && here > most {
			t.Errorf("%s: %d command lines, the table counts %d", r.file, here, most)
		}
		planned, lines, counted = planned+1, lines+here, counted+most
	}
	t.Logf("%d commands planned, %d command lines of %d counted", planned, lines, counted)
	if planned < 767 || lines < counted*98/100 {
		t.Error("too few")
	}
}
