package host

import (
	"fmt"
	"os"
	"time"

	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Repair mends what needs no judgement in a workspace, see declare.Repairs, and says what it did. A clone that nobody trusts
// is left as it is. trustFile is TrustFile.
func Repair(trustFile, workspace string) ([]string, error) {
	folder, err := workspaceFolder(workspace)
	if err != nil {
		return nil, err
	}
	if whose, _ := ProvenanceOf(trustFile, folder); whose == Cloned {
		return nil, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace %s cannot be opened", folder).WithCause(err)
	}
	defer func() { _ = root.Close() }()
	fsys := rootfs.FS(folder, root)
	read, err := declare.NewScanner(declare.Options{}).Scan(fsys, time.Now())
	if err != nil {
		return nil, err
	}
	var done []string
	for _, r := range declare.Repairs(fsys, read) {
		if err := mend(root, r); err != nil {
			return done, vakerr.New(vakerr.FileNotFound, "%s cannot be mended", r.Path).
				WithRemedy("see that it is yours to change").WithCause(err)
		}
		if r.To == "" {
			done = append(done, fmt.Sprintf("made %s executable: %s", r.Path, r.Because))
		} else {
			done = append(done, fmt.Sprintf("renamed %s to %s: %s", r.Path, r.To, r.Because))
		}
	}
	return done, nil
}

func mend(root *os.Root, r declare.Repair) error {
	if r.To != "" {
		return root.Rename(r.Path, r.To)
	}
	info, err := root.Stat(r.Path)
	if err != nil {
		return err
	}
	return root.Chmod(r.Path, info.Mode().Perm()|0o111&(info.Mode().Perm()>>2))
}
