package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/actors/reconciler"
	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// scanner reads one workspace, for one pass at a time.
type scanner struct {
	workspace string
	declare   *declare.Scanner
	misplaced func(config.Config) []capability.Problem
	revision  uint64
	policy    *policy.Current      // of revision
	problems  []capability.Problem // of settings that are read elsewhere
}

// Scan implements reconciler.Scanner. The root is opened anew each time: a workspace that was replaced is another folder.
func (s *scanner) Scan(context.Context) (reconciler.World, error) {
	root, err := os.OpenRoot(s.workspace)
	if err != nil {
		return reconciler.World{}, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace %s cannot be opened", s.workspace).
			WithRemedy("put it back, or see that it is readable for the user of the daemon").WithCause(err)
	}
	defer func() { _ = root.Close() }()
	r, err := s.declare.Scan(root.FS(), time.Now())
	if err != nil {
		return reconciler.World{}, err
	}
	if r.Revision != s.revision || s.policy == nil {
		s.policy, s.problems = compile(r.Config), s.misplaced(r.Config)
		s.revision = r.Revision
	}
	world := reconciler.World{
		Declarations: r.Declarations, Problems: slices.Concat(r.Problems, s.problems), Policy: s.policy,
		Watch: make([]string, 0, len(r.Watch)),
	}
	for _, folder := range r.Watch {
		world.Watch = append(world.Watch, filepath.Join(s.workspace, filepath.FromSlash(folder)))
	}
	return world, nil
}

// compile makes the policy of a configuration. Rules that cannot be read fail closed; whoever read the file reported them.
func compile(c config.Config) *policy.Current {
	engine, _ := policy.CompileEngine(c.Permissions)
	current := &policy.Current{Engine: engine.Guarding(programs(c)), Channels: make(map[string]*policy.Channel, len(c.Channels))}
	for name, rules := range c.Channels {
		current.Channels[name], _ = policy.CompileChannel(name, rules)
	}
	return current
}

// programs are the files of the workspace that hooks and servers run: whoever can write them runs code of their own.
func programs(c config.Config) []string {
	var files []string
	add := func(word string) {
		if strings.Contains(word, "/") && filepath.IsLocal(word) {
			files = append(files, filepath.ToSlash(word))
		}
	}
	for _, h := range c.Hooks {
		for word := range strings.FieldsSeq(h.Command) {
			add(word)
		}
	}
	for _, s := range c.MCP {
		add(s.Command)
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
			if value, found := lookupLine(text, name); found {
				return value, true
			}
		}
		return os.LookupEnv(name)
	}
}

func lookupLine(text []byte, name string) (value string, found bool) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, v, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if ok && strings.TrimSpace(key) == name {
			value, found = strings.TrimSpace(v), true
		}
	}
	return value, found
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
