package op

import (
	"path"
	"strings"

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
	return vakerr.New(vakerr.PermissionDenied, "this run may not write %q directly", shorten(clean)).
		WithRemedy("write below one of the paths of this run: %s", listed(paths))
}

func cleanRelative(p string) (string, bool) {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return "", false
	}
	clean := path.Clean(p)
	return clean, clean != ".." && !strings.HasPrefix(clean, "../")
}

func listed(paths []string) string {
	const most = 8
	switch {
	case len(paths) == 0:
		return "there are none"
	case len(paths) > most:
		return strings.Join(paths[:most], ", ") + ", …"
	}
	return strings.Join(paths, ", ")
}

func shorten(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
