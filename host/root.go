package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// source is a folder that capabilities are declared in. Equal sources are one root.
type source struct {
	dir    string // absolute
	origin capability.Origin
	prefix string               // of the paths that are told
	data   string               // of a plugin: absolute
	layout *declare.Layout      // nil: that of a workspace; the same pointer for the same plugin
	plugin *pluginstore.Enabled // nil: its files are all that is known of it
	of     *plugins             // that plugin is one of
}

// root is a source with what was read of it.
type root struct {
	dir     string
	opts    declare.Options
	scanner *declare.Scanner
	result  declare.Result
	failure string // why it cannot be read now; empty: it can, or it is not there

	place  func(declare.Result) declare.Result // nil: what is read is what is declared
	placed uint64                              // revision that result was made of by place
}

// newRoot is the root of a source other than the workspace. reading is what all roots of a tenant have in common.
func newRoot(s source, reading declare.Options) *root {
	reading.Origin, reading.Layout, reading.Prefix = s.origin, s.layout, s.prefix
	reading.Folder = capability.Folder{Path: filepath.ToSlash(s.dir), Data: filepath.ToSlash(s.data)}
	if s.plugin == nil {
		return openedAt(s.dir, reading)
	}
	reading.LookupSecret = s.of.lookup(s.plugin.Record.ID, reading.LookupSecret)
	r := openedAt(s.dir, reading)
	r.place = func(read declare.Result) declare.Result { return s.of.place(s.plugin, read) }
	return r
}

func openedAt(dir string, opts declare.Options) *root {
	return &root{dir: dir, opts: opts, scanner: declare.NewScanner(opts)}
}

// scan reads it. The folder is opened anew each time: one that was replaced is another folder.
func (r *root) scan() error {
	folder, err := os.OpenRoot(r.dir)
	if err != nil {
		return vakerr.New(vakerr.WorkspaceUnreadable, "the workspace %s cannot be opened", r.dir).
			WithRemedy("put it back, or see that it is readable for the user of the daemon").WithCause(err)
	}
	defer func() { _ = folder.Close() }()
	result, err := r.scanner.Scan(rootfs.FS(r.dir, folder), time.Now())
	switch {
	case r.place == nil:
		r.result = result
	case err == nil && r.placed != result.Revision:
		r.result, r.placed = r.place(result), result.Revision
	}
	return err
}

// keepOnFailure reads a root that need not be there. Of one that is gone nothing stays; of one that cannot be read what was
// read before does. One that was never readable may hold any restriction, if its layout has rules, and closes everything.
func (r *root) keepOnFailure() {
	switch err := r.scan(); {
	case err == nil:
		r.failure = ""
	case errors.Is(err, fs.ErrNotExist):
		r.failure = ""
		if r.result.Revision > 0 {
			*r = *openedAt(r.dir, r.opts)
		}
	default:
		r.failure = "the folder " + r.dir + " cannot be read"
		if r.result.Revision == 0 && r.opts.Layout == nil {
			closed := config.Closed()
			r.result.Config, r.result.Permissions = closed, []policy.PermissionRules{closed.Permissions}
		}
	}
}

func (r *root) problem() capability.Problem {
	return capability.Problem{
		Severity: capability.SeverityError, Code: "folder_unreadable", Path: r.opts.Prefix, Message: r.failure,
		Hint: "make it readable for the user of the daemon, or remove it",
	}
}

// watch lists the folders in which an edit matters; of a root that is not there, the one it would appear in.
func (r *root) watch() []string {
	if r.result.Revision == 0 {
		return []string{filepath.Dir(r.dir)}
	}
	all := make([]string, 0, len(r.result.Watch))
	for _, folder := range r.result.Watch {
		all = append(all, filepath.Join(r.dir, filepath.FromSlash(folder)))
	}
	return all
}

// UserFolders are the two folders whose capabilities a user shares between workspaces: one that is laid out as a workspace,
// and the home folder, of which texts for other programs are read. Empty where the environment names none.
func UserFolders() (config, home string) {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		home = ""
	}
	if config = os.Getenv("XDG_CONFIG_HOME"); !filepath.IsAbs(config) {
		if home == "" {
			return "", ""
		}
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "vak-actors"), home
}

// userRoots are the roots of Options.UserConfig and Options.Home. A folder that is the workspace is no second root.
func (h *Host) userRoots(workspace string, reading declare.Options) []*root {
	var roots []*root
	add := func(dir, prefix string, layout *declare.Layout) {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return
		}
		if dir = realFolder(dir); dir == workspace {
			return
		}
		origin := capability.Origin{Kind: capability.OriginShared}
		roots = append(roots, newRoot(source{dir: dir, origin: origin, prefix: prefix, layout: layout}, reading))
	}
	if dir := h.options.UserConfig; dir != "" {
		add(dir, shortened(dir, h.options.Home), nil)
	}
	if dir := h.options.Home; dir != "" {
		layout := declare.HomeLayout()
		add(dir, "~/", &layout)
	}
	return roots
}

func realFolder(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}

// shortened is a folder as people write it, ending with a slash.
func shortened(dir, home string) string {
	if rel, err := filepath.Rel(home, dir); home != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel) + "/"
	}
	return filepath.ToSlash(dir) + "/"
}
