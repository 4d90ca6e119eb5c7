package pluginstore

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Request is a wish to install.
type Request struct {
	Source string // a folder, an archive, or the folder of a marketplace
	Plugin string // name of the offer, where Source is a marketplace
	Scope  string // user, project or local
	Digest string // the only content to be taken; empty: any
}

// Install copies a plugin into the store, disabled. Where the same content is installed already nothing changes. Errors are
// those of Stage, and conflict of another content of that name: what is installed is only replaced by Update.
func (s *Store) Install(ctx context.Context, q Request) (r plugin.Record, c *Content, err error) {
	err = s.locked(func() error {
		if c, err = s.stageSource(ctx, q); err != nil {
			return err
		}
		id := c.Manifest.Name
		if other := s.otherCase(q.Scope, id); other != "" {
			return vakerr.New(vakerr.PluginInvalid, "the plugin's name %s differs from that of the installed plugin %s by case alone", id, other).
				WithRemedy("remove one of the two")
		}
		known, err := s.record(q.Scope, id)
		switch {
		case err == nil && known.Current.Digest == c.Digest:
			r = known
			return nil
		case err == nil:
			return vakerr.New(vakerr.InvalidRequest, "the plugin %s is installed in scope %s with another content", id, q.Scope).
				WithRemedy("replace it with `vak-actors plugin update %s --scope %s --from %s`", id, q.Scope, q.Source)
		case vakerr.CodeOf(err) != vakerr.UnknownPlugin:
			return err
		}
		r = plugin.Record{Schema: plugin.RecordSchema, ID: id, Scope: q.Scope, Current: s.version(c), Source: sourceOf(q)}
		return s.put(r)
	})
	return r, c, errors.Join(err)
}

func (s *Store) version(c *Content) plugin.Version {
	return plugin.Version{Digest: c.Digest, Version: c.Manifest.Version, At: s.now().UTC().Truncate(1e9)}
}

func sourceOf(q Request) plugin.Source {
	source := plugin.Source{Path: q.Source, Plugin: q.Plugin, Pin: q.Digest}
	if info, err := os.Stat(q.Source); err == nil && info.IsDir() {
		source.Commit = commitOf(q.Source)
	}
	return source
}

func (s *Store) otherCase(scope, id string) string {
	entries, err := os.ReadDir(filepath.Join(s.dir, installedFolder, scope))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if other := strings.TrimSuffix(e.Name(), ".json"); other != id && strings.EqualFold(other, id) {
			return other
		}
	}
	return ""
}

// stageSource copies the source of a request, checks it and moves it to its place. The caller holds the lock.
func (s *Store) stageSource(ctx context.Context, q Request) (*Content, error) {
	if !slices.Contains(plugin.Scopes, q.Scope) {
		return nil, vakerr.New(vakerr.InvalidRequest, "there is no scope %.32q", q.Scope).WithRemedy("name one of user, project and local")
	}
	var c *Content
	err := s.staged(ctx, q, func(stage *stage, staging, source string, entry *plugin.Entry) (err error) {
		c, err = s.settle(stage, staging, source, entry, q.Digest)
		return err
	})
	return c, err
}

// Available is the digest of what the source of a plugin holds now. Nothing is installed.
func (s *Store) Available(ctx context.Context, r plugin.Record) (digest string, err error) {
	q := Request{Source: r.Source.Path, Plugin: r.Source.Plugin}
	err = s.locked(func() error {
		return s.staged(ctx, q, func(stage *stage, staging, source string, entry *plugin.Entry) error {
			root, err := os.OpenRoot(filepath.Join(staging, filepath.FromSlash(stage.inner())))
			if err != nil {
				return storeError("the staged files cannot be opened", err)
			}
			defer root.Close()
			if err := addOffer(root, entry, fallbackName(source)); err != nil {
				return err
			}
			if digest, err = digestTree(root.FS(), s.Limits); err != nil {
				return storeError("the staged files cannot be read", err)
			}
			return nil
		})
	})
	return digest, err
}

// staged copies the source of a request and lets do look at the copy, which is gone afterwards where it was not moved.
func (s *Store) staged(ctx context.Context, q Request, do func(stage *stage, staging, source string, entry *plugin.Entry) error) error {
	staging := filepath.Join(s.dir, stagingFolder)
	if err := os.RemoveAll(staging); err != nil { // what somebody who was killed left
		return storeError("the folder for staging cannot be emptied", err)
	}
	if err := os.MkdirAll(staging, 0o700); err != nil {
		return storeError("the folder for staging cannot be made", err)
	}
	defer os.RemoveAll(staging)
	source, entry, err := resolve(q)
	if err != nil {
		return err
	}
	stage, err := newStage(staging, s.Limits)
	if err != nil {
		return err
	}
	defer stage.root.Close()
	if err := stage.take(ctx, source); err != nil {
		return err
	}
	return do(stage, staging, source, entry)
}

// settle gives a staged folder its place by its digest.
func (s *Store) settle(stage *stage, staging, source string, entry *plugin.Entry, pin string) (*Content, error) {
	from := filepath.Join(staging, filepath.FromSlash(stage.inner()))
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, storeError("the staged files cannot be opened", err)
	}
	defer root.Close()
	if err := addOffer(root, entry, fallbackName(source)); err != nil {
		return nil, err
	}
	digest, err := digestTree(root.FS(), s.Limits)
	if err != nil {
		return nil, storeError("the staged files cannot be read", err)
	}
	if pin != "" && digest != pin {
		return nil, vakerr.New(vakerr.PluginUnsafe, "the source holds the content %.12s, not %.12s", digest, pin).
			WithRemedy("get the content that was asked for, or name no digest")
	}
	dir := filepath.Join(s.dir, digest)
	c, err := read(root.FS(), digest, dir, fallbackName(source))
	if err != nil {
		return nil, err
	}
	if err := s.place(from, dir, digest); err != nil {
		return nil, err
	}
	return c, nil
}

// addOffer keeps with a plugin what only the marketplace's offer says of it, and with one without a manifest its name, which
// is that of its folder: it has to be part of the content to be the same from now on. No plugin brings such a file itself.
func addOffer(root *os.Root, entry *plugin.Entry, fallback string) error {
	if _, err := root.Lstat(plugin.EntryName); err == nil {
		return unsafe(plugin.EntryName, "a plugin does not bring the offer of a marketplace")
	}
	if entry == nil {
		m, _, err := plugin.Read(root.FS(), fallback)
		if err != nil || m.Format != plugin.FormatNone {
			return err
		}
		entry = plugin.NameOnly(m.Name)
	}
	text, err := entry.EntryFile(root.FS())
	if err != nil || text == nil {
		return err
	}
	f, err := root.OpenFile(plugin.EntryName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return storeError("a file cannot be written", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return storeError("a file cannot be written", err)
	}
	return nil
}

// place moves a checked folder to its name. One that is there and damaged is replaced.
func (s *Store) place(from, dir, digest string) error {
	if _, err := s.Load(digest); err == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return storeError("a damaged content cannot be replaced", err)
	}
	if err := os.Rename(from, dir); err != nil {
		return storeError("a content cannot be moved to its place", err)
	}
	if err := rootfs.SyncFolder(s.dir); err != nil {
		return storeError("a folder cannot be synced", err)
	}
	return nil
}

// resolve finds what is to be copied: the source itself, or what a marketplace offers under a name.
func resolve(q Request) (source string, entry *plugin.Entry, err error) {
	info, err := os.Stat(q.Source)
	if err != nil || !info.IsDir() {
		if q.Plugin != "" {
			return "", nil, vakerr.New(vakerr.InvalidRequest, "%s is no folder of a marketplace", q.Source).WithRemedy("name the folder that holds .claude-plugin/marketplace.json")
		}
		return q.Source, nil, nil
	}
	root, err := os.OpenRoot(q.Source)
	if err != nil {
		return "", nil, vakerr.New(vakerr.FileNotFound, "the folder %s cannot be read", q.Source).WithRemedy("make it readable").WithCause(err)
	}
	defer root.Close()
	market, _, found, err := plugin.FindMarketplace(root.FS())
	if q.Plugin == "" {
		if _, _, own := plugin.Read(root.FS(), fallbackName(q.Source)); own != nil && found && err == nil {
			return "", nil, vakerr.New(vakerr.InvalidRequest, "%s is a marketplace that offers %d plugins", q.Source, len(market.Entries)).
				WithRemedy("say which with --plugin NAME; `vak-actors plugin list --market %s` lists them", q.Source)
		}
		return q.Source, nil, nil
	}
	if err != nil || !found {
		return "", nil, vakerr.New(vakerr.PluginInvalid, "%s holds no marketplace that can be read", q.Source).WithRemedy("name the folder that holds .claude-plugin/marketplace.json").WithCause(err)
	}
	i := slices.IndexFunc(market.Entries, func(e plugin.Entry) bool { return e.Name == q.Plugin })
	switch {
	case i < 0:
		return "", nil, vakerr.New(vakerr.UnknownPlugin, "the marketplace does not offer %.64q", q.Plugin).WithRemedy("see `vak-actors plugin list --market %s`", q.Source)
	case market.Entries[i].Remote != "":
		return "", nil, vakerr.New(vakerr.InvalidRequest, "the offer %s lies elsewhere (%.64q) and cannot be read offline", q.Plugin, market.Entries[i].Remote).
			WithRemedy("fetch it yourself, for instance with git clone, and install the folder")
	case market.Entries[i].Unavailable != "":
		return "", nil, vakerr.New(vakerr.InvalidRequest, "the offer %s cannot be installed: %s", q.Plugin, market.Entries[i].Unavailable).WithRemedy("ask whoever keeps the marketplace")
	}
	within := path.Clean(market.Entries[i].Folder)
	if info, err := root.Lstat(within); err != nil || !info.IsDir() {
		return "", nil, vakerr.New(vakerr.FileNotFound, "the offer %s names the folder %.64q, which is not there", q.Plugin, within).WithRemedy("repair the marketplace")
	}
	return filepath.Join(q.Source, filepath.FromSlash(within)), &market.Entries[i], nil
}

// change loads a record, lets do say what it becomes, and stores that.
func (s *Store) change(id, scope string, do func(r plugin.Record) (plugin.Record, error)) (r plugin.Record, err error) {
	err = s.locked(func() error {
		if r, err = s.Find(id, scope); err != nil {
			return err
		}
		if r, err = do(r); err != nil {
			return err
		}
		return s.put(r)
	})
	return r, err
}

// Enable records the operator's consent to a content that brings exactly this, and puts it in force: the current content,
// or the staged one, which then takes its place. values are set beside those that were given before. The error is
// consent_required when the content or what it brings is not what the operator saw, plugin_incompatible, plugin_blocked, and
// invalid_arguments for a value that does not fit.
func (s *Store) Enable(id, scope string, saw plugin.Consent, values map[string]string) (plugin.Record, error) {
	return s.change(id, scope, func(r plugin.Record) (plugin.Record, error) {
		next := r.Pending()
		c, err := s.Load(next.Digest)
		switch {
		case err != nil:
			return r, err
		case c.Manifest.Problem != nil:
			return r, vakerr.New(vakerr.PluginIncompatible, "the plugin %s cannot be used: %s", id, c.Manifest.Problem.Message).WithRemedy("%s", c.Manifest.Problem.Hint)
		case c.Manifest.Name != r.ID:
			return r, blocked(next.Digest, "it is not the plugin "+r.ID, nil)
		case !saw.Covers(next.Digest, r.Scope, c.Brings.Digest()):
			return r, vakerr.New(vakerr.ConsentRequired, "the consent is not for what the plugin %s brings now", id).
				WithRemedy("look at it with `vak-actors plugin show %s` and consent to that", id)
		}
		if r, err = withValues(r, c, values); err != nil {
			return r, err
		}
		if err := os.MkdirAll(filepath.Join(s.dir, stateFolder, r.Scope, r.ID), 0o700); err != nil {
			return r, storeError("the folder for the plugin's state cannot be made", err)
		}
		if r.Staged != nil {
			return r.Accepted(saw.Brings), nil
		}
		return r.Consented(saw.Brings), nil
	})
}

func withValues(r plugin.Record, c *Content, values map[string]string) (plugin.Record, error) {
	r.Values = maps.Clone(r.Values)
	for key, value := range values {
		i := slices.IndexFunc(c.Manifest.Options, func(o plugin.Option) bool { return o.Key == key })
		if i < 0 {
			return r, vakerr.New(vakerr.InvalidArguments, "the plugin %s has no option %.64q", r.ID, key).WithRemedy("see `vak-actors plugin show %s`", r.ID)
		}
		if o := c.Manifest.Options[i]; o.Sensitive {
			return r, vakerr.New(vakerr.InvalidArguments, "the option %s of %s is a secret and is not kept with the settings", key, r.ID).
				WithRemedy("set %s in secrets.env of the data folder, or in the environment", plugin.SecretName(r.ID, key))
		} else if why := o.CheckValue(value); why != "" {
			return r, vakerr.New(vakerr.InvalidArguments, "the value of the option %s does not fit: %s", key, why)
		}
		if r.Values == nil {
			r.Values = map[string]string{}
		}
		r.Values[key] = value
	}
	return r, nil
}

// Disable takes the operator's word back, in one scope or, where it is empty, in all. When it returns no reader of the
// store finds the plugin in force there.
func (s *Store) Disable(id, scope string) ([]plugin.Record, error) {
	scopes := []string{scope}
	if scope == "" {
		if scopes = s.scopesOf(id); len(scopes) == 0 {
			_, err := s.Find(id, "")
			return nil, err
		}
	}
	var all []plugin.Record
	for _, scope := range scopes {
		r, err := s.change(id, scope, func(r plugin.Record) (plugin.Record, error) { return r.Revoked(), nil })
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// Update stages what the source of a plugin holds now; from, when not empty, is its new source. A plugin that is enabled
// stays at its version until Enable is given a consent for the new one. Nothing changes where the content is the same.
func (s *Store) Update(ctx context.Context, id, scope string, from Request) (plugin.Record, error) {
	r, err := s.Find(id, scope)
	if err != nil {
		return r, err
	}
	q := Request{Source: r.Source.Path, Plugin: r.Source.Plugin, Scope: r.Scope, Digest: r.Source.Pin}
	if from.Source != "" {
		q = Request{Source: from.Source, Plugin: from.Plugin, Scope: r.Scope, Digest: from.Digest}
	}
	return s.change(id, r.Scope, func(r plugin.Record) (plugin.Record, error) {
		c, err := s.stageSource(ctx, q)
		if err != nil {
			return r, err
		}
		if c.Manifest.Name != r.ID {
			return r, vakerr.New(vakerr.PluginInvalid, "the source holds the plugin %s, not %s", c.Manifest.Name, r.ID).WithRemedy("install it as a plugin of its own")
		}
		r.Source = sourceOf(q)
		return r.Stage(s.version(c)), nil
	})
}

// Rollback puts the version before in force.
func (s *Store) Rollback(id, scope string) (plugin.Record, error) {
	return s.change(id, scope, func(r plugin.Record) (plugin.Record, error) {
		back, err := r.RolledBack()
		if err != nil {
			return r, err
		}
		_, err = s.Load(back.Current.Digest)
		return back, err
	})
}

// Remove forgets a plugin, and, unless keepState is set, what its programs have kept. Its content goes with Sweep.
func (s *Store) Remove(id, scope string, keepState bool) (plugin.Record, error) {
	var r plugin.Record
	err := s.locked(func() (err error) {
		if r, err = s.Find(id, scope); vakerr.CodeOf(err) == vakerr.PluginBlocked && scope != "" {
			r, err = plugin.Record{ID: id, Scope: scope}, nil // the record is beyond repair
		}
		if err != nil {
			return err
		}
		if err := os.Remove(s.recordPath(r.Scope, r.ID)); err != nil {
			return storeError("the record cannot be removed", err)
		}
		if keepState {
			return nil
		}
		if err := os.RemoveAll(filepath.Join(s.dir, stateFolder, r.Scope, r.ID)); err != nil {
			return storeError("the plugin's state cannot be removed", err)
		}
		return nil
	})
	return r, err
}

// Sweep removes contents that no record refers to. Call it when whoever may run something of them has stopped: after a
// running daemon has seen the change.
func (s *Store) Sweep() error {
	return s.locked(func() error {
		records, problems, err := s.List()
		if err != nil || len(problems) > 0 {
			return err // a record that cannot be read may refer to anything
		}
		var used []string
		for _, r := range records {
			used = append(used, r.Digests()...)
		}
		entries, err := os.ReadDir(s.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return storeError("its folder cannot be read", err)
		}
		for _, e := range entries {
			if !badDigest(e.Name()) && !slices.Contains(used, e.Name()) {
				if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
					return storeError("an old content cannot be removed", err)
				}
				s.forget(e.Name())
			}
		}
		return nil
	})
}
