// Package host is the composition root and the Go embedding API: it builds the ledger, the actors of every tenant and the
// door to them, in order, and stops them in reverse.
//
// A Host owns its data folder, which no other process may use at the same time. Serve puts the network fronts before it;
// an embedding program may use the Door alone.
package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/childproc"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/protocol"
	"github.com/vak-actors/vak-actors/internal/store"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Options says what a Host serves. Workspace is needed.
type Options struct {
	Workspace string // folder of tenant "default"
	Config    string // path of the daemon's vak.toml; empty: that of the workspace, if there is one
	Data      string // folder of ledger and state; empty: data of vak.toml, else DataFolder of the workspace

	// UserConfig and Home hold what a user shares between workspaces, with less precedence than they: a folder laid out as
	// a workspace, and the home folder with skills and commands of other programs. Empty: none is read. See UserFolders.
	UserConfig string
	Home       string

	// TrustFile says which cloned workspaces a person trusts, see ProvenanceOf; empty: every workspace is the operator's own.
	TrustFile string

	Logger  *slog.Logger // nil: logs nothing
	Version string       // told to servers and clients
	Watch   bool         // notice edits through the file system; false: ticks and questions only

	// RetryServers is how long a server that failed to start is left alone, doubled with each failure in a row up to 60
	// times as long; 0: 5 s, so at most 5 min.
	RetryServers time.Duration
}

// Host is a running runtime.
type Host struct {
	options  Options
	log      *slog.Logger
	config   config.Config        // read at the start; what a workspace declares changes while it runs, this does not
	problems []capability.Problem // of config
	data     string
	store    *store.SQLite
	commit   *store.Committer
	system   *actorkit.System
	tenants  map[string]*tenant
	clients  protocol.Clients // of the calls that run
	stopOnce sync.Once
	stopped  error
}

// Start builds a host and returns when its actors run; Ready tells when they know their workspaces. ctx bounds the start
// only. Errors: workspace_unreadable, config_invalid for a vak.toml that is no TOML, data_folder_locked, and those of the
// ledger.
func Start(ctx context.Context, o Options) (*Host, error) {
	h := &Host{options: o, log: o.Logger, tenants: make(map[string]*tenant)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if err := h.prepare(); err != nil {
		return nil, err
	}
	if err := h.build(ctx); err != nil {
		return nil, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
	}
	return h, nil
}

// prepare settles folders and configuration.
func (h *Host) prepare() error {
	workspace, err := workspaceFolder(h.options.Workspace)
	if err != nil {
		return err
	}
	h.options.Workspace = workspace
	if h.config, h.problems, err = readConfig(&h.options); err != nil {
		return err
	}
	if h.data = cmp.Or(h.options.Data, h.besideConfig(h.config.Data)); h.data == "" {
		if h.data, err = DataFolder(workspace); err != nil {
			return err
		}
	}
	h.data, err = filepath.Abs(h.data)
	return err
}

func (h *Host) build(ctx context.Context) error {
	var err error
	if h.store, err = store.OpenSQLite(ctx, h.data); err != nil {
		return err
	}
	groups := filepath.Join(h.data, "groups")
	reaped, err := childproc.ReapLeftovers(groups)
	if err != nil {
		return err
	}
	if len(reaped) > 0 {
		h.log.Warn("servers of an earlier daemon were still running; they are ended now", slog.Int("groups", len(reaped)))
	}
	h.commit = store.NewCommitter(context.WithoutCancel(ctx), store.CommitterConfig{Store: h.store})
	h.system = actorkit.NewSystem(actorkit.Options{Logger: h.log})
	owner := fmt.Sprintf("%s/%d/%s", hostname(), os.Getpid(), rand.Text()[:8])
	for id, workspace := range h.workspaces() {
		t, err := h.newTenant(ctx, id, workspace, owner, groups)
		if err != nil {
			return err
		}
		h.tenants[id] = t
	}
	return nil
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// workspaces are the folders of the tenants: the default one and those of vak.toml.
func (h *Host) workspaces() map[string]string {
	all := map[string]string{protocol.DefaultTenant: h.options.Workspace}
	for id, t := range h.config.Tenants {
		if t.Workspace != "" {
			all[id] = h.besideConfig(t.Workspace)
		}
	}
	return all
}

// besideConfig makes a path of vak.toml absolute: it counts from the file's folder. An empty path stays empty.
func (h *Host) besideConfig(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(h.configPath()), p)
}

func (h *Host) configPath() string {
	return cmp.Or(h.options.Config, filepath.Join(h.options.Workspace, configName))
}

// Ready returns when every tenant has published what its workspace holds now.
func (h *Host) Ready(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(h.tenants)) {
		if err := h.tenants[id].ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stopTime bounds the stop of the actors: servers get their end of input, SIGTERM and SIGKILL within it.
const stopTime = 30 * time.Second

// Stop ends everything in reverse order of its start: sessions first, then servers, the loop, the registry, the ledger
// last, so that what was acknowledged is on the disk. It is done once; further calls return the first one's error.
func (h *Host) Stop(ctx context.Context) error {
	h.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		for _, t := range h.tenants {
			t.changes.close()
		}
		if h.system != nil {
			h.stopped = h.system.Shutdown(ctx)
		}
		if h.commit != nil {
			h.commit.Close()
		}
		if h.store != nil {
			h.stopped = errors.Join(h.stopped, h.store.Close())
		}
	})
	return h.stopped
}

// DataDir is the folder of ledger and state.
func (h *Host) DataDir() string { return h.data }

// Tenants lists the tenants in order of ids.
func (h *Host) Tenants() []string { return slices.Sorted(maps.Keys(h.tenants)) }

func (h *Host) tenant(id string) (*tenant, error) {
	t, ok := h.tenants[cmp.Or(id, protocol.DefaultTenant)]
	if !ok {
		return nil, vakerr.New(vakerr.UnknownTenant, "there is no tenant %.64q", id).
			WithRemedy("declare it in vak.toml: [tenants.<id>] workspace = \"...\"")
	}
	return t, nil
}
