package rootfs

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// MaxEntries bounds how many names one Walk looks at.
const MaxEntries = 200_000

// skipped are folders that hold what tools made, in numbers that would drown what people wrote.
var skipped = map[string]bool{".git": true, "node_modules": true}

// ErrStop ends a Walk without an error when visit returns it.
var ErrStop = errors.New("stop")

// Walk calls visit for every file below base in order of names within each folder; rel is relative to base. Links are
// files to it and are not followed. Folders named .git and node_modules are passed over, unless base is in them, and so is
// what cannot be read. It ends when ctx does, with its error, and reports whether it saw everything.
func (r *Root) Walk(ctx context.Context, base string, visit func(rel string, d fs.DirEntry) error) (complete bool, err error) {
	target, err := r.Resolve(base)
	if err != nil {
		return false, err
	}
	tree, err := fs.Sub(r.root.FS(), target)
	if err != nil {
		return false, failure(base, err)
	}
	entries := 0
	complete = true
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, failed error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p == "." && failed != nil:
			return failure(base, failed)
		case failed != nil:
			return nil
		case d.IsDir() && skipped[path.Base(p)]:
			return fs.SkipDir
		}
		if entries++; entries > MaxEntries {
			complete = false
			return ErrStop
		}
		if d.IsDir() {
			return nil
		}
		return visit(p, d)
	})
	switch {
	case errors.Is(err, ErrStop):
		return complete, nil
	case errors.Is(err, context.DeadlineExceeded):
		return false, vakerr.New(vakerr.DeadlineExceeded, "the time for reading the folder is over").
			WithRemedy("name a smaller folder").WithCause(err)
	case errors.Is(err, context.Canceled):
		return false, vakerr.New(vakerr.Canceled, "the call was canceled").WithCause(err)
	}
	return complete, err
}
