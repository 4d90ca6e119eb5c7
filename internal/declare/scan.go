package declare

import (
	"io/fs"
	"path"
	"reflect"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Options configure a Scanner. The zero value reads a workspace.
type Options struct {
	// Origin of everything the root declares; zero: the workspace.
	Origin capability.Origin

	// Layout says what is read; nil: WorkspaceLayout.
	Layout *Layout

	// Prefix stands before every path that is told, so that people know which root it belongs to: "~/", "plugin:kit/".
	// Empty for the workspace.
	Prefix string

	// Folder is where the root lies, and the data folder of a plugin. Zero for the workspace, relative to which its paths
	// stay; a skill of another root has an absolute BaseDir.
	Folder capability.Folder

	// LookupSecret resolves a placeholder for Server.SecretDigest; nil: nobody can, and the digests stay empty. It is
	// called by Scan on its goroutine, for every placeholder in every pass, and must not block.
	LookupSecret func(name string) (value string, found bool)

	// SecretKey keys Server.SecretDigest. It must stay the same for as long as digests are compared; default none.
	SecretKey []byte

	// Limits bound what is read until vak.toml says otherwise; zero: config.DefaultLimits.
	Limits config.Limits
}

// Result is what a workspace declares.
type Result struct {
	// Revision rises when anything below differs from the Result before. Two Results of one Scanner with one Revision
	// share everything.
	Revision uint64

	Declarations []capability.Declaration // in order of ids, each id once
	Problems     []capability.Problem     // in order of paths
	Shadowed     []capability.Shadow      // in order of ids
	Permissions  []policy.PermissionRules // of every file that has any, in order of precedence; those of Config come first
	Config       config.Config            // of vak.toml; a version that was read before while the file is broken
	Watch        []string                 // folders in which an edit matters, relative, sorted; those that exist
}

// Scanner reads a workspace again and again. Use it from one goroutine.
type Scanner struct {
	opts Options
	tree tree

	good map[string]*product // of each file of the layout the last version that could be read as a whole

	last     Result
	products []*product           // of the last result, in order of precedence
	notes    []capability.Problem // of the last result: problems of folders and links
	aliases  []capability.Shadow  // of the last result: one folder found twice
	roots    []string             // of the last result: the folders that exist of those named in the layout
	secrets  []string             // of the last result: digest per server, in order
}

// NewScanner returns a Scanner that has read nothing yet.
func NewScanner(opts Options) *Scanner {
	if opts.Limits == (config.Limits{}) {
		opts.Limits = config.DefaultLimits()
	}
	if opts.Layout == nil {
		workspace := WorkspaceLayout()
		opts.Layout = &workspace
	}
	if opts.Origin == (capability.Origin{}) {
		opts.Origin.Kind = capability.OriginWorkspace
	}
	s := &Scanner{opts: opts, good: map[string]*product{}}
	s.tree.stamp = s.opts.stamp
	s.tree.governs = opts.Layout.governs
	return s
}

// stamp completes what a reader declared, before anybody sees it: whose it is and where it belongs.
func (o *Options) stamp(p *product) {
	for i := range p.declarations {
		d := &p.declarations[i]
		d.Origin = o.Origin
		d.ID.Name = o.Layout.Prefix + d.ID.Name
		file := d.Source
		d.Source = o.Prefix + d.Source
		var plugin capability.Folder
		if o.Origin.Kind == capability.OriginPlugin {
			plugin = o.Folder
		}
		switch c := d.Config.(type) {
		case *capability.Skill:
			c.Root = plugin
			if o.Folder.Path != "" {
				c.BaseDir = path.Join(o.Folder.Path, c.BaseDir)
			}
		case *capability.Command:
			c.Root = plugin
		case *capability.Hook:
			c.Position += o.position(file)
			c.Root = plugin
		}
	}
	for i := range p.off {
		p.off[i].ID.Name = o.Layout.Prefix + p.off[i].ID.Name
		p.off[i].By = o.Prefix + p.off[i].By
	}
	for i := range p.problems {
		p.problems[i].Path = o.Prefix + p.problems[i].Path
		if id := &p.problems[i].Declares; id.Name != "" {
			id.Name = o.Layout.Prefix + id.Name
		}
	}
}

// position puts the hooks of a file behind those of files and roots that come first.
func (o *Options) position(file string) int {
	const aRoot, aFile = 1 << 20, 1 << 10 // more than a root has files, and a file has hooks
	i := slices.IndexFunc(o.Layout.Files, func(f File) bool { return f.Path == file })
	return int(o.Origin.Kind-capability.OriginWorkspace)*aRoot + max(i, 0)*aFile
}

// Scan reads the workspace. now is the present time, to be compared with the times of files. The error is a
// vakerr.WorkspaceUnreadable, and the Result then the one before: a folder that is gone declares nothing to be removed.
func (s *Scanner) Scan(fsys fs.FS, now time.Time) (Result, error) {
	if info, err := fs.Stat(fsys, "."); err != nil || !info.IsDir() {
		return s.last, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace folder cannot be read").
			WithRemedy("see that the folder exists and is readable for the user of this program").WithCause(err)
	}
	w := s.walk(fsys, now)
	secrets := s.digests(w.products)
	if s.last.Revision > 0 && !s.tree.moved && slices.Equal(w.products, s.products) && slices.Equal(w.notes, s.notes) &&
		slices.Equal(w.aliases, s.aliases) && slices.Equal(w.roots, s.roots) && slices.Equal(secrets, s.secrets) {
		return s.last, nil
	}
	s.products, s.notes, s.aliases, s.roots, s.secrets = w.products, w.notes, w.aliases, w.roots, secrets
	s.last = s.result()
	return s.last, nil
}

// walk visits everything once.
func (s *Scanner) walk(fsys fs.FS, now time.Time) *walk {
	s.tree.begin(fsys, now)
	w := &walk{tree: &s.tree, opts: &s.opts, limits: s.opts.Limits, products: make([]*product, 0, len(s.products)+1)}
	s.tree.maxFile, s.tree.maxTotal = w.limits.MaxFileBytes, w.limits.MaxTotalBytes

	for _, f := range s.opts.Layout.Files {
		p, shown := s.lastGood(f.Path, s.tree.read(f.Path, f.read))
		w.add(p, shown)
		if p != nil && p.config != nil {
			w.limits = p.config.Limits
			s.tree.maxFile, s.tree.maxTotal = w.limits.MaxFileBytes, w.limits.MaxTotalBytes
			w.hookPrograms(f.Path, p.config.EnabledHooks())
		}
	}
	w.misnamed()
	for _, root := range s.opts.Layout.SkillFolders {
		w.oneSkill(root)
	}
	for _, root := range s.opts.Layout.Skills {
		w.skills(root)
	}
	for _, name := range s.opts.Layout.CommandFiles {
		w.oneCommand(name)
	}
	for _, root := range s.opts.Layout.Commands {
		w.commands(root)
	}
	w.watchPlaces()
	s.tree.end()
	return w
}

// lastGood keeps the last readable version of a file that many capabilities share: while a new version is broken, the
// old one stays in force and only the problems of the new one are shown.
func (s *Scanner) lastGood(name string, p *product) (used, problems *product) {
	good := s.good[name]
	switch {
	case p == nil:
		delete(s.good, name)
	case !p.broken:
		s.good[name] = p
	case good != nil:
		return good, p
	}
	return p, nil
}

// digests follows the values behind the placeholders of every server.
func (s *Scanner) digests(products []*product) []string {
	all := make([]string, 0, len(s.secrets))
	for _, p := range products {
		for i := range p.declarations {
			if server, ok := p.declarations[i].Config.(*capability.Server); ok {
				all = append(all, s.opts.secretDigest(server))
			}
		}
	}
	return all
}

// result settles what the last walk found.
func (s *Scanner) result() Result {
	r := Result{
		Revision: s.last.Revision + 1, Problems: slices.Clone(s.notes), Shadowed: slices.Clone(s.aliases),
		Watch: s.watch(), Config: config.Default(),
	}
	if _, present := s.tree.files[configFile]; present && s.opts.Layout.holds(configFile) {
		r.Config = config.Closed() // until a version of it was read
	}
	taken, off := make(map[capability.ID]int, len(s.products)), map[capability.ID]string{}
	servers := 0
	for _, p := range s.products {
		r.Problems = append(r.Problems, p.problems...)
		if p.config != nil {
			r.Config = *p.config
		}
		if p.layer != nil {
			r.Config = mergeConfig(r.Config, *p.layer)
		}
		for _, d := range p.declarations {
			if server, ok := d.Config.(*capability.Server); ok {
				if digest := s.secrets[servers]; digest != "" {
					keyed := *server
					keyed.SecretDigest = digest
					d.Config = &keyed
				}
				servers++
			}
			if file, switched := off[d.ID]; switched {
				r.switchedOff(d, file)
				continue
			}
			i, twice := taken[d.ID]
			if !twice || apart(&d, r.Declarations[i], taken, sameHandler) {
				taken[d.ID] = len(r.Declarations)
				r.Declarations = append(r.Declarations, d)
				continue
			}
			r.shadow(d, r.Declarations[i])
		}
		for _, o := range p.off {
			if _, declared := taken[o.ID]; !declared {
				off[o.ID] = o.By
			}
		}
	}
	r.Permissions = s.permissions(r.Config.Permissions)
	r.sort()
	return r
}

// permissions collects the layers of the root's files.
func (s *Scanner) permissions(own policy.PermissionRules) []policy.PermissionRules {
	layers := []policy.PermissionRules{own}
	for _, p := range s.products {
		layers = append(layers, p.permissions...)
	}
	for i := range layers {
		if layers[i].Source != "" {
			layers[i].Source = s.opts.Prefix + layers[i].Source
		}
	}
	return layers
}

// shadow notes a declaration that another one hides, and says so where it would have done something else.
func (r *Result) shadow(hidden, by capability.Declaration) {
	r.Shadowed = append(r.Shadowed, capability.Shadow{ID: hidden.ID, Source: hidden.Source, By: by.Source})
	if !sameContent(hidden, by) {
		r.Problems = append(r.Problems, capability.Problem{
			Severity: capability.SeverityWarning, Code: "name_shadowed", Path: hidden.Source,
			Message: hidden.ID.String() + " is not used: " + by.Source + " declares the same name and comes first",
			Hint:    "rename or remove one of the two",
		})
	}
}

// sameContent reports whether two declarations of one name would do the same.
func sameContent(a, b capability.Declaration) bool {
	if a.Digest != b.Digest || a.Summary != b.Summary || !slices.Equal(a.Serves, b.Serves) {
		return false
	}
	if x, ok := a.Config.(*capability.Skill); ok {
		there := *b.Config.(*capability.Skill)
		there.BaseDir = x.BaseDir // copies stand in different places
		return reflect.DeepEqual(*x, there)
	}
	return reflect.DeepEqual(a.Config, b.Config)
}

// watch lists the folders that exist and matter.
func (s *Scanner) watch() []string {
	all := append(make([]string, 0, len(s.roots)+len(s.tree.folders)), s.roots...)
	for name, f := range s.tree.folders {
		all = append(all, name)
		for _, n := range f.entries {
			if n.name[0] != '.' && (n.kind.IsDir() || n.isLink() && s.tree.isFolder(n.path)) {
				all = append(all, n.path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
