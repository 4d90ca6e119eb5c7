package pluginstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Names within the folder of a store.
const (
	installedFolder = "installed"
	stateFolder     = "state"
	stagingFolder   = "staging"
	lockFile        = "lock"
)

// maxRecord bounds a record, in bytes; maxRecords their number in one scope.
const (
	maxRecord  = 1 << 20
	maxRecords = 1000
)

// Store is the plugins of one tenant. Set Limits and Now before the first use.
type Store struct {
	dir    string
	Limits Limits
	Now    func() time.Time // nil: time.Now

	mu       sync.Mutex // guards what follows
	contents map[string]known
	last     []*Enabled
}

// Open returns the store in a folder, which need not exist yet. Nothing is read or made.
func Open(dir string) *Store {
	return &Store{dir: dir, contents: map[string]known{}}
}

func (s *Store) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Watch lists the folders in which a change of the store shows, made where they are missing.
func (s *Store) Watch() ([]string, error) {
	all := make([]string, 0, len(plugin.Scopes))
	for _, scope := range plugin.Scopes {
		dir := filepath.Join(s.dir, installedFolder, scope)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, storeError("its folder cannot be made", err)
		}
		all = append(all, dir)
	}
	return all, nil
}

// List returns every record, the narrowest scope first, then by id. A record that cannot be read is a problem, and the
// plugin is not in force. The error is a plugin_store_failed.
func (s *Store) List() ([]plugin.Record, []capability.Problem, error) {
	var all []plugin.Record
	var problems []capability.Problem
	for _, scope := range plugin.Scopes {
		entries, err := os.ReadDir(filepath.Join(s.dir, installedFolder, scope))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, storeError("the list of plugins cannot be read", err)
		}
		for _, e := range entries[:min(len(entries), maxRecords)] {
			id, is := strings.CutSuffix(e.Name(), ".json")
			if !is || strings.HasPrefix(id, ".") {
				continue
			}
			r, err := s.record(scope, id)
			if err != nil {
				e := vakerr.From(err)
				problems = append(problems, capability.Problem{
					Severity: capability.SeverityError, Code: string(e.Code), Path: "plugin:" + id, Message: e.Reason, Hint: e.Remedy,
				})
				continue
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, byScope)
	return all, problems, nil
}

// record reads one record. The error is unknown_plugin where there is none, plugin_blocked where it cannot be read.
func (s *Store) record(scope, id string) (plugin.Record, error) {
	text, err := rootfs.ReadFile(s.recordPath(scope, id), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return plugin.Record{}, vakerr.New(vakerr.UnknownPlugin, "the plugin %.64q is not installed in scope %s", id, scope).
			WithRemedy("see `vak-actors plugin list`")
	}
	var r plugin.Record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.ID != id || r.Scope != scope || r.Schema != plugin.RecordSchema || slices.ContainsFunc(r.Digests(), badDigest)) {
		err = fmt.Errorf("the record does not belong to its file")
	}
	if err != nil {
		return plugin.Record{}, vakerr.New(vakerr.PluginBlocked, "the record of the plugin %.64q in scope %s cannot be read, so the plugin is not in force", id, scope).
			WithRemedy("remove the plugin and install it again").WithCause(err)
	}
	return r, nil
}

func badDigest(digest string) bool {
	return len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != ""
}

func (s *Store) recordPath(scope, id string) string {
	return filepath.Join(s.dir, installedFolder, scope, id+".json")
}

// put switches a record: whoever reads sees the one before or this one.
func (s *Store) put(r plugin.Record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return storeError("a record cannot be written", err)
	}
	if err := rootfs.ReplaceFile(s.recordPath(r.Scope, r.ID), append(text, '\n')); err != nil {
		return storeError("a record cannot be written", err)
	}
	return nil
}

// locked runs do while nobody else changes the store. It waits for others, who are quick.
func (s *Store) locked(do func() error) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return storeError("its folder cannot be made", err)
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return storeError("its lock cannot be opened", err)
	}
	defer f.Close() // and with it the lock
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return storeError("its lock cannot be had", err)
	}
	return do()
}

// scopesOf are the scopes in which a plugin is installed, the narrowest first.
func (s *Store) scopesOf(id string) []string {
	return slices.DeleteFunc(slices.Clone(plugin.Scopes), func(scope string) bool {
		_, err := os.Stat(s.recordPath(scope, id))
		return err != nil
	})
}

// Find returns the record of a plugin. An empty scope means the only one in which it is installed. Errors are
// unknown_plugin, invalid_request where the scope has to be told, and plugin_blocked.
func (s *Store) Find(id, scope string) (plugin.Record, error) {
	if why := plugin.CheckName(id); why != "" {
		return plugin.Record{}, vakerr.New(vakerr.UnknownPlugin, "%.64q is no name of a plugin: %s", id, why).WithRemedy("see `vak-actors plugin list`")
	}
	if scope == "" {
		scopes := s.scopesOf(id)
		switch len(scopes) {
		case 0:
			return plugin.Record{}, vakerr.New(vakerr.UnknownPlugin, "the plugin %.64q is not installed", id).
				WithRemedy("see `vak-actors plugin list`, or install it with `vak-actors plugin install`")
		case 1:
			scope = scopes[0]
		default:
			return plugin.Record{}, vakerr.New(vakerr.InvalidRequest, "the plugin %s is installed in the scopes %s", id, strings.Join(scopes, " and ")).
				WithRemedy("say which with --scope")
		}
	}
	return s.record(scope, id)
}
