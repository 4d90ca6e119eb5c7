package declare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// V120: what is repaired is beyond doubt, and nothing else is touched.
func TestRepairs(t *testing.T) {
	fsys := files(
		"vak.toml", "[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/a.sh now\"\n[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/b.sh\"\n"+
			"[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"true\"\n[[hooks]]\nevent = \"pre-tool-use\"\ncommand = \"./hooks/none.sh\"\n",
		"hooks/a.sh", "#!/bin/sh\n", "hooks/b.sh", "#!/bin/sh\n",
		"skills/lower/skill.md", "---\nname: lower\ndescription: L.\n---\nx\n", "skills/fine/SKILL.md", "---\nname: fine\ndescription: F.\n---\nx\n",
	)
	fsys["hooks/b.sh"].Mode = 0o755
	want := []Repair{
		{"skills/lower/skill.md", "skills/lower/SKILL.md", "other programs do not read skill.md"},
		{"hooks/a.sh", "", "the hook pre-tool-use/./hooks/a.sh now runs it and it was not executable"},
	}
	if diff := cmp.Diff(want, Repairs(fsys, scan(t, fsys))); diff != "" {
		t.Error(diff)
	}
}
