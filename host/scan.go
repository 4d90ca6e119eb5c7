package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/actors/reconciler"
	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/builtin"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/pins"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// scanner reads what a tenant's capabilities are declared in, for one pass at a time: its workspace, the user's folders and
// the plugins that are installed.
type scanner struct {
	reading   declare.Options // what all roots have in common
	workspace *root
	shared    []*root
	home      string // of the user whose ~ rules name; empty: not known
	trustFile string
	whose     Provenance // the workspace's, in the last pass
	distrust  string     // why the file of trust cannot be read; empty: it can
	misplaced func(config.Config) []capability.Problem
	learned   *learnedFile // nil: nothing is learned

	// plugins are the folders of the plugins in force, in order of precedence, with what is wrong with others, asked anew in
	// each pass; nil: none. It blocks on the file system only.
	plugins  func(context.Context) ([]source, []capability.Problem, error)
	plugged  map[source]*root // of the last pass
	pointers []string         // absolute folders in which it shows that plugins changed

	seen     []seenRoot // of the last pass that found something new
	merged   declare.Result
	known    *policy.Learned      // as read in the last pass
	policy   *policy.Current      // of merged and known
	problems []capability.Problem // of settings that are read elsewhere
}

// seenRoot tells whether a root is what it was.
type seenRoot struct {
	*root
	revision uint64
	failure  string
}

// Scan implements reconciler.Scanner. Only a workspace that cannot be read fails the pass: of other roots what was read
// before stays, with a problem.
func (s *scanner) Scan(ctx context.Context) (reconciler.World, error) {
	if err := s.workspace.scan(); err != nil {
		return reconciler.World{}, err
	}
	whose, distrust := s.provenance()
	installed, broken := s.installed(ctx)
	roots := slices.Concat([]*root{s.workspace}, s.shared, installed)
	seen := make([]seenRoot, len(roots))
	for i, r := range roots {
		if i > 0 {
			r.keepOnFailure()
		}
		seen[i] = seenRoot{r, r.result.Revision, r.failure}
	}
	known, unlearned := s.learned.read()
	if s.policy == nil || !slices.Equal(seen, s.seen) || !slices.Equal(known.Rules(), s.known.Rules()) || whose != s.whose || distrust != s.distrust {
		s.whose, s.distrust = whose, distrust
		s.known = known
		s.merge(roots)
		s.seen = seen
	}
	world := reconciler.World{
		Declarations: s.merged.Declarations, Pins: s.pins(), Shadowed: s.merged.Shadowed, Policy: s.policy,
		Problems: slices.Concat(s.merged.Problems, s.problems, broken, unlearned),
	}
	world.Watch = slices.Clone(s.pointers)
	for _, r := range roots {
		world.Watch = append(world.Watch, r.watch()...)
	}
	return world, nil
}

// provenance says whose the workspace is now, and why that is not known for sure.
func (s *scanner) provenance() (Provenance, string) {
	whose, err := ProvenanceOf(s.trustFile, s.workspace.dir)
	if err != nil {
		return whose, vakerr.From(err).Reason
	}
	return whose, ""
}

// untrusted is what counts of a workspace that nobody trusts: its texts, and what restricts. The rest is named.
func (s *scanner) untrusted(r declare.Result) declare.Result {
	remedy := trustRemedy(s.workspace.dir)
	all := hold(r.Declarations, remedy)
	held := 0
	for _, d := range all {
		if d.Hold != nil {
			held++
		}
	}
	r.Declarations, r.Permissions = all, slices.Clone(r.Permissions)
	for i := range r.Permissions {
		r.Permissions[i].Untrusted = true
	}
	message := fmt.Sprintf("this is a cloned repository that nobody has trusted: %d servers and hooks are held, and its rules grant nothing", held)
	if s.distrust != "" {
		message += "; " + s.distrust
	}
	r.Problems = append(slices.Clone(r.Problems), capability.Problem{
		Severity: capability.SeverityWarning, Code: "workspace_untrusted", Path: ".", Message: message, Hint: remedy,
	})
	return r
}

// pins says what is pinned. A clone does not loosen what is pinned of it.
func (s *scanner) pins() pins.Settings {
	settings := pins.Settings{Tools: pins.OnChange(s.merged.Config.Pins.Tools), Workspace: s.whose == Trusted}
	if s.whose != Own && settings.Tools == pins.Follow {
		settings.Tools = pins.Keep
	}
	return settings
}

// installed are the roots of the enabled plugins. While the list of them cannot be read, those of the last pass stay.
func (s *scanner) installed(ctx context.Context) ([]*root, []capability.Problem) {
	if s.plugins == nil {
		return nil, nil
	}
	sources, problems, err := s.plugins(ctx)
	if err != nil {
		e := vakerr.From(err)
		kept := slices.SortedFunc(maps.Values(s.plugged), func(a, b *root) int { return cmp.Compare(a.opts.Prefix, b.opts.Prefix) })
		return kept, []capability.Problem{{
			Severity: capability.SeverityError, Code: "plugins_unreadable", Path: "plugins", Message: e.Reason, Hint: e.Remedy,
		}}
	}
	plugged := make(map[source]*root, len(sources))
	roots := make([]*root, 0, len(sources))
	for _, source := range sources {
		r := s.plugged[source]
		if r == nil {
			r = newRoot(source, s.reading)
		}
		plugged[source] = r
		roots = append(roots, r)
	}
	s.plugged = plugged
	return roots, problems
}

// merge settles what the roots declare together.
func (s *scanner) merge(roots []*root) {
	results := make([]declare.Result, 0, len(roots))
	for _, r := range roots {
		results = append(results, r.result)
	}
	if s.whose == Cloned {
		results[0] = s.untrusted(results[0])
	}
	s.merged = declare.Merge(results...)
	for _, r := range roots {
		if r.failure != "" {
			s.merged.Problems = append(s.merged.Problems, r.problem())
		}
	}
	current, problems := compile(s.merged, policy.Host{
		Workspace: s.workspace.dir, Home: s.home, ReadTool: builtin.Reader, WriteTool: builtin.Writer,
	})
	current.Engine = current.Engine.Learning(s.known)
	if s.whose == Cloned {
		current.HoldCommands = "nobody has trusted this workspace"
	}
	current.Revision = revisionOf(s.merged, s.known)
	s.policy, s.problems = current, s.misplaced(s.workspace.result.Config)
	for _, p := range problems {
		if !slices.Contains(s.merged.Problems, p) { // the reader of vak.toml names its own rules
			s.problems = append(s.problems, p)
		}
	}
	for _, r := range s.shared {
		s.problems = append(s.problems, without(r.result.Config, daemonSections, r.opts.Prefix+configName,
			"write it into the daemon's configuration; this file is read for what it declares")...)
	}
}

// compile makes the policy of what was read. Rules that cannot be read fail closed.
func compile(r declare.Result, host policy.Host) (*policy.Current, []capability.Problem) {
	engine, problems := policy.CompileEngine(host, r.Permissions...)
	current := &policy.Current{
		Engine: engine.Guarding(programs(r.Declarations)), ApprovalTimeout: r.Config.Approvals.Timeout,
		KeepInput: !r.Config.HookPolicy.Rewrite,
		Channels:  make(map[string]*policy.Channel, len(r.Config.Channels)),
	}
	for name, rules := range r.Config.Channels {
		current.Channels[name], _ = policy.CompileChannel(name, rules) // whoever read the file reported its problems
	}
	return current, problems
}

// revisionOf names what a policy is made of.
func revisionOf(r declare.Result, known *policy.Learned) string {
	text, err := json.Marshal([]any{r.Permissions, r.Config.Channels, programs(r.Declarations), r.Config.Approvals, r.Config.HookPolicy, known.Rules()})
	if err != nil {
		panic(err) // strings, lists and maps of strings only
	}
	return capability.ContentDigest(text)
}

// programs are the files of the workspace that hooks and servers run: whoever can write them runs code of their own.
func programs(declared []capability.Declaration) []string {
	var files []string
	add := func(words ...string) {
		for _, word := range words {
			if strings.Contains(word, "/") && filepath.IsLocal(word) {
				files = append(files, filepath.ToSlash(word))
			}
		}
	}
	for _, d := range declared {
		switch c := d.Config.(type) {
		case *capability.Hook:
			add(strings.Fields(c.Command)...)
			add(c.Args...)
		case *capability.Server:
			add(c.Command)
		}
	}
	return files
}

// secretsName is a file of KEY=VALUE lines in the data folder, for secrets that should not be in an environment.
const secretsName = "secrets.env"

// secretScopes resolves a placeholder: the data folder's secrets first, then the environment of this process. The file
// is read anew each time, so that a secret takes effect without a restart.
func secretScopes(data string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if text, err := os.ReadFile(filepath.Join(data, secretsName)); err == nil {
			if value, found := config.SecretLines(text)[name]; found {
				return value, true
			}
		}
		return os.LookupEnv(name)
	}
}

// placeholderScopes answers the placeholders that follow from the workspace and the user, and leaves the others to next.
func placeholderScopes(workspace string, next func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		switch name {
		case config.WorkspaceFolder, "CLAUDE_PROJECT_DIR":
			return workspace, true
		case config.WorkspaceFolder + "Basename":
			return filepath.Base(workspace), true
		case config.UserHome:
			return homeFolder(), true
		}
		return next(name)
	}
}

const secretKeyState = "host.secret-key"

// secretKey keys the digests of secrets, so that a digest in a declaration tells nothing of the secret. It is made once
// and kept.
func (h *Host) secretKey(ctx context.Context, tenant string) ([]byte, error) {
	key, found, err := h.store.State(ctx, tenant, secretKeyState)
	if err != nil || found {
		return key, err
	}
	key = []byte(rand.Text())
	return key, values{h.store, h.commit}.Put(ctx, tenant, secretKeyState, key)
}

func homeFolder() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "/"
	}
	return home
}
