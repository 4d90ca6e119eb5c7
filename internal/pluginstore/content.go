package pluginstore

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Content is what an installed folder holds. It is never changed.
type Content struct {
	Digest   string
	Dir      string // absolute
	Manifest plugin.Manifest
	Layout   declare.Layout
	Read     []capability.Declaration // as they stand in the files; not placed
	Problems []capability.Problem
	Brings   plugin.Brings
}

// known is a content with the state of its files when its digest was last computed.
type known struct {
	content *Content
	stamp   [sha256.Size]byte
	settled bool
}

// settleTime is how old the last change of a file must be for a later one to show in its times.
const settleTime = 2 * time.Second

// Load returns the content of a digest when the folder still holds exactly that. Files are read again only where their
// times, inodes, sizes or modes differ from those that were judged. The error is plugin_blocked for a folder that is gone
// or holds something else, and plugin_invalid for one that is no plugin.
func (s *Store) Load(digest string) (*Content, error) {
	dir := filepath.Join(s.dir, digest)
	stamp, newest, err := stampTree(dir, s.Limits)
	if err != nil {
		return nil, blocked(digest, "its files cannot be read, or are gone", err)
	}
	s.mu.Lock()
	k, have := s.contents[digest]
	s.mu.Unlock()
	if have && k.settled && k.stamp == stamp {
		return k.content, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, blocked(digest, "its files cannot be read, or are gone", err)
	}
	defer root.Close()
	got, err := digestTree(root.FS(), s.Limits)
	if err != nil || got != digest {
		s.forget(digest)
		return nil, blocked(digest, "its files are not those that were installed", err)
	}
	if !have {
		if k.content, err = read(root.FS(), digest, dir, "plugin"); err != nil {
			return nil, err
		}
	}
	k.stamp, k.settled = stamp, s.now().Sub(newest) >= settleTime
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contents[digest] = k
	return k.content, nil
}

func (s *Store) forget(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.contents, digest)
}

func blocked(digest, why string, cause error) *vakerr.Error {
	return vakerr.New(vakerr.PluginBlocked, "the content %.12s is blocked: %s", digest, why).
		WithRemedy("install the plugin again from its source, or remove it").WithCause(cause)
}

// read makes a Content of a folder. Nothing of it runs.
func read(fsys fs.FS, digest, dir, fallback string) (*Content, error) {
	m, problems, err := plugin.Read(fsys, fallback)
	if err != nil {
		return nil, err
	}
	c := &Content{Digest: digest, Dir: dir, Manifest: m, Layout: m.Layout(fsys), Problems: problems}
	found, err := declare.NewScanner(declare.Options{Origin: m.Origin(""), Layout: &c.Layout}).Scan(fsys, time.Unix(1<<40, 0))
	if err != nil {
		return nil, err
	}
	c.Read = found.Declarations
	c.Problems = append(slices.Clone(c.Problems), found.Problems...)
	c.Brings = m.Describe(c.Read)
	return c, nil
}

// stampTree is the state of a folder's files without their content, and the time of the newest change.
func stampTree(dir string, most Limits) (stamp [sha256.Size]byte, newest time.Time, err error) {
	most = most.orDefaults()
	sum := sha256.New()
	files := 0
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if files++; files > 2*most.Files {
			return errors.New("the folder holds too much")
		}
		at, inode := changed(info)
		if t := time.Unix(0, at); !info.IsDir() && t.After(newest) {
			newest = t
		}
		if info.IsDir() {
			_, err = fmt.Fprintf(sum, "%q\n", p)
		} else {
			_, err = fmt.Fprintf(sum, "%q %d %d %d %d %v\n", p, info.Size(), info.ModTime().UnixNano(), at, inode, info.Mode())
		}
		return err
	})
	sum.Sum(stamp[:0])
	return stamp, newest, err
}

// Enabled is a plugin in force.
type Enabled struct {
	Record  plugin.Record
	Content *Content
	Folder  capability.Folder
}

// Enabled lists the plugins in force, the narrowest scope first, then by id; of one that is enabled in several scopes the
// narrowest. While nothing about a plugin changes, its *Enabled stays the same. What is enabled and may not be in force is
// told as a problem. The error is a plugin_store_failed: nobody knows what is enabled.
func (s *Store) Enabled() ([]*Enabled, []capability.Problem, error) {
	records, problems, err := s.List()
	if err != nil {
		return nil, nil, err
	}
	before := s.lastEnabled()
	var all []*Enabled
	taken := map[string]string{}
	for _, r := range records {
		if !r.Enabled {
			continue
		}
		if scope, shadowed := taken[r.ID]; shadowed {
			problems = append(problems, about(r, capability.SeverityWarning, "plugin_shadowed",
				"it is enabled in scope "+r.Scope+" too, and the one of scope "+scope+" counts", "disable one of the two"))
			continue
		}
		e, problem := s.enabled(r)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		taken[r.ID] = r.Scope
		if i := slices.IndexFunc(before, func(b *Enabled) bool { return same(b, e) }); i >= 0 {
			e = before[i]
		}
		all = append(all, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = all
	return all, problems, nil
}

func (s *Store) lastEnabled() []*Enabled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func same(a, b *Enabled) bool {
	return a.Content == b.Content && a.Record.Scope == b.Record.Scope && a.Record.ID == b.Record.ID && mapsEqual(a.Record.Values, b.Record.Values)
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, has := b[k]; !has || v != w {
			return false
		}
	}
	return true
}

// enabled judges one record.
func (s *Store) enabled(r plugin.Record) (*Enabled, *capability.Problem) {
	content, facts, err := s.facts(r)
	if r.InForce(facts) && content.Manifest.Name == r.ID {
		return &Enabled{r, content, s.folder(r)}, nil
	}
	var p capability.Problem
	switch state := r.State(facts); {
	case err != nil:
		e := vakerr.From(err)
		p = about(r, capability.SeverityError, string(e.Code), e.Reason, e.Remedy)
	case state == plugin.StateIncompatible:
		p = about(r, capability.SeverityError, "plugin_incompatible", content.Manifest.Problem.Message, content.Manifest.Problem.Hint)
	default:
		p = about(r, capability.SeverityError, "plugin_needs_review", "what it brings is not what was consented to, so nothing of it is in force",
			"vak-actors plugin enable "+r.ID+" --scope "+r.Scope)
	}
	return nil, &p
}

// Facts are what the state of a record depends on, by what lies on the disk, with the content; nil where it is blocked.
func (s *Store) Facts(r plugin.Record) (*Content, plugin.Facts) {
	c, f, err := s.facts(r)
	if err != nil {
		return nil, f
	}
	return c, f
}

// facts are what the state of a record depends on, by what lies on the disk.
func (s *Store) facts(r plugin.Record) (*Content, plugin.Facts, error) {
	content, err := s.Load(r.Current.Digest)
	if err != nil {
		return nil, plugin.Facts{}, err
	}
	return content, plugin.Facts{Intact: true, Incompatible: content.Manifest.Problem != nil, Brings: content.Brings.Digest()}, nil
}

func (s *Store) folder(r plugin.Record) capability.Folder {
	return capability.Folder{
		Path: filepath.ToSlash(filepath.Join(s.dir, r.Current.Digest)),
		Data: filepath.ToSlash(filepath.Join(s.dir, stateFolder, r.Scope, r.ID)),
	}
}

func about(r plugin.Record, severity capability.Severity, code, message, hint string) capability.Problem {
	return capability.Problem{Severity: severity, Code: code, Path: "plugin:" + r.ID, Message: "plugin " + r.ID + ": " + message, Hint: hint}
}

func byScope(a, b plugin.Record) int {
	return cmp.Or(cmp.Compare(slices.Index(plugin.Scopes, a.Scope), slices.Index(plugin.Scopes, b.Scope)), cmp.Compare(a.ID, b.ID))
}
