package declare

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// maxHops bounds the links followed on the way to one file; more is a cycle.
const maxHops = 32

// realPath resolves every link of name and returns the path it stands for. A link that leads nowhere, in circles or out
// of the workspace is a fault. On a file system without links name is real.
func realPath(fsys fs.FS, name string) (string, *fault) {
	links, ok := fsys.(fs.ReadLinkFS)
	if !ok {
		return name, nil
	}
	done, left, hops := ".", name, 0
	for left != "" {
		var step string
		step, left, _ = strings.Cut(left, "/")
		at := path.Join(done, step)
		info, err := links.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", linkFault("link_dangling", name, "leads nowhere")
		case err != nil || info.Mode()&fs.ModeSymlink == 0:
			done = at // an unreadable folder is reported by whoever reads it
			continue
		}
		if hops++; hops > maxHops {
			return "", linkFault("link_cycle", name, "leads in a circle")
		}
		target, err := links.ReadLink(at)
		if err != nil {
			return "", linkFault("link_dangling", name, "cannot be read")
		}
		goal := path.Join(done, target)
		if path.IsAbs(target) || goal == ".." || strings.HasPrefix(goal, "../") {
			return "", linkFault("link_outside", name, "leaves the workspace")
		}
		done, left = ".", path.Join(goal, left)
		if left == "." {
			left = ""
		}
	}
	return done, nil
}

func linkFault(code, name, what string) *fault {
	hint := "point it to a file or folder of the workspace, by a relative path, or remove it"
	return &fault{code: code, message: "the link " + quoted(name) + " " + what, hint: hint}
}
