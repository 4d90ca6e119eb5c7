package op

import (
	"path"
	"strings"

	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// CheckWritePath reports whether a run that is restricted to paths may write target directly. Nil paths allow all. All
// are relative to the workspace, with '/'; a path that names a folder allows what lies in it. The dispatcher asks before
// rules and mode and before the op runs. It looks at names only: an op that follows links asks again with what it found.
// The error is vakerr.PermissionDenied, or vakerr.PathEscapes for a target outside the workspace.
func CheckWritePath(paths []string, target string) error {
	clean, inside := cleanRelative(target)
	if !inside {
		return vakerr.New(vakerr.PathEscapes, "the path to write lies outside the workspace").
			WithRemedy("write below the workspace, with a relative path")
	}
	if paths == nil {
		return nil
	}
	for _, allowed := range paths {
		allowed, inside := cleanRelative(allowed)
		if inside && (allowed == "." || clean == allowed || strings.HasPrefix(clean, allowed+"/")) {
			return nil
		}
	}
	return vakerr.New(vakerr.PermissionDenied, "this run may not write %q directly", phrase.Cut(clean, 200)).
		WithRemedy("write below one of the paths of this run: %s", phrase.List(paths, 8))
}

// CheckWritePaths refuses paths that no write could ever lie below, so that whoever restricts a run hears of a slip at once.
func CheckWritePaths(paths []string) error {
	for _, p := range paths {
		if _, inside := cleanRelative(p); !inside {
			return vakerr.New(vakerr.InvalidRequest, "the write path %q leads out of the workspace, or is empty", phrase.Cut(p, 200)).
				WithRemedy("name files or folders relative to the workspace")
		}
	}
	return nil
}

func cleanRelative(p string) (string, bool) {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return "", false
	}
	clean := path.Clean(p)
	return clean, clean != ".." && !strings.HasPrefix(clean, "../")
}
