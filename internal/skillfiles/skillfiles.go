// Package skillfiles shows skills as the skills extension of MCP has them (SEP-2640): entries with their frontmatter and the
// digest of every file, the files themselves, and the folders in between, under skill:// URIs.
//
// Which skills there are is the caller's to say; the package reads files of their folders only, through rootfs, and shows
// nothing of a skill whose SKILL.md is another than the one that is in force: a file that was edited is shown once the edit
// is published. A skill whose name the extension does not allow, or that is too large, is not shown.
package skillfiles

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const (
	scheme   = "skill://"
	manifest = "SKILL.md"

	// maxFiles and maxBytes bound the files of one skill, as the extension does.
	maxFiles = 512
	maxBytes = 16 << 20
)

// name is what the last part of a skill's path may be.
var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Entry is a skill in a list.
type Entry struct {
	URI         string         `json:"uri"` // of its SKILL.md
	Frontmatter map[string]any `json:"frontmatter"`
	Resources   []File         `json:"resources"` // every file of its folder, SKILL.md among them, sorted by URI

	text []byte // of SKILL.md
}

// File is a file of a skill.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // sha256:<hex> of its bytes
	Size   int64  `json:"size"`   // bytes
}

// Store reads the skills of one workspace. It is safe for concurrent use.
type Store struct {
	Workspace string // absolute

	known digests
}

// pathOf is the path of a skill in URIs: its name, behind its plugin's. Empty: the extension has none for it.
func pathOf(c *capability.Capability) string {
	parts := strings.Split(c.ID.Name, ":")
	for _, p := range parts {
		if len(p) > 64 || !name.MatchString(p) {
			return ""
		}
	}
	return strings.Join(parts, "/")
}

// List is the entries of those skills that can be shown, sorted by URI.
func (s *Store) List(ctx context.Context, skills []*capability.Capability) ([]Entry, error) {
	entries := []Entry{}
	for _, c := range skills {
		e, err := s.entry(ctx, c)
		if ctx.Err() != nil {
			return nil, vakerr.From(context.Cause(ctx))
		}
		if err == nil {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.URI, b.URI) })
	return entries, nil
}

// Entry is the one of the skill whose SKILL.md has that URI.
func (s *Store) Entry(ctx context.Context, skills []*capability.Capability, uri string) (Entry, error) {
	c, rel, err := find(skills, uri)
	if err != nil || rel != manifest {
		return Entry{}, unknown(uri)
	}
	return s.entry(ctx, c)
}

// Content is a file as resources/read has it.
type Content struct {
	URI  string `json:"uri"`
	MIME string `json:"mimeType"`
	Text string `json:"text,omitempty"`
	Blob []byte `json:"blob,omitempty"` // of what is no text
}

// Read is the file of that URI.
func (s *Store) Read(ctx context.Context, skills []*capability.Capability, uri string) (Content, error) {
	c, rel, err := find(skills, uri)
	if err != nil {
		return Content{}, err
	}
	e, err := s.entry(ctx, c)
	if err != nil {
		return Content{}, err
	}
	text := e.text
	if rel != manifest {
		if !slices.ContainsFunc(e.Resources, func(f File) bool { return f.URI == uri }) {
			return Content{}, unknown(uri)
		}
		if text, err = s.file(c, rel); err != nil {
			return Content{}, err
		}
	}
	return content(uri, rel, text), nil
}

// Child is a file or folder in a folder of a skill.
type Child struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
	MIME string `json:"mimeType"`
}

// Folder is what lies directly in the folder of that URI, sorted.
func (s *Store) Folder(ctx context.Context, skills []*capability.Capability, uri string) ([]Child, error) {
	dir := strings.TrimSuffix(uri, "/")
	c, rel, err := find(skills, dir)
	if err != nil {
		return nil, err
	}
	e, err := s.entry(ctx, c)
	if err != nil {
		return nil, err
	}
	children := map[string]Child{}
	for _, f := range e.Resources {
		below, is := strings.CutPrefix(f.URI, dir+"/")
		if !is {
			continue
		}
		first, _, deeper := strings.Cut(below, "/")
		child := Child{URI: dir + "/" + first, Name: first, MIME: mimeOf(first, nil)}
		if deeper {
			child.MIME = "inode/directory"
		}
		children[first] = child
	}
	if len(children) == 0 {
		return nil, vakerr.New(vakerr.InvalidArguments, "%s is no folder of a skill", phrase.Cut(rel, 80)).
			WithRemedy("name a folder that skills/list shows files of")
	}
	all := make([]Child, 0, len(children))
	for _, child := range children {
		all = append(all, child)
	}
	slices.SortFunc(all, func(a, b Child) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func unknown(uri string) error {
	return vakerr.New(vakerr.InvalidArguments, "there is no skill resource %s", phrase.Cut(uri, 120)).
		WithRemedy("list the skills and name one of their resources")
}

// find takes a URI apart: the skill, and the path in its folder, which is clean and leads nowhere else; empty for the folder
// itself.
func find(skills []*capability.Capability, uri string) (*capability.Capability, string, error) {
	rest, is := strings.CutPrefix(uri, scheme)
	if !is || rest != path.Clean(rest) || strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "../") {
		return nil, "", unknown(uri)
	}
	var found *capability.Capability
	rel, longest := "", -1
	for _, c := range skills {
		at := pathOf(c)
		if at == "" || len(at) <= longest {
			continue
		}
		if below, inside := strings.CutPrefix(rest+"/", at+"/"); inside {
			found, rel, longest = c, strings.TrimSuffix(below, "/"), len(at)
		}
	}
	if found == nil {
		return nil, "", unknown(uri)
	}
	return found, rel, nil
}

// entry reads a skill's folder.
func (s *Store) entry(ctx context.Context, c *capability.Capability) (Entry, error) {
	at := pathOf(c)
	if at == "" {
		return Entry{}, vakerr.New(vakerr.InvalidArguments, "the name of %s cannot stand in a URI", c.ID)
	}
	root, base, err := s.open(c)
	if err != nil {
		return Entry{}, err
	}
	defer root.Close()
	e := Entry{URI: scheme + at + "/" + manifest, Resources: []File{}}
	total := int64(0)
	complete, err := root.Walk(ctx, base, func(rel string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return nil // a link may lead to what is not the skill's
		}
		file := path.Join(base, rel)
		sum, size, text, err := s.known.of(root, c.Config.(*capability.Skill).BaseDir, file, d, maxBytes-total)
		if err == nil && rel == manifest && text == nil {
			text, err = read(root, file, maxBytes-total)
		}
		if err != nil {
			return err
		}
		if total += size; len(e.Resources) == maxFiles {
			return tooLarge(c)
		}
		e.Resources = append(e.Resources, File{scheme + at + "/" + rel, "sha256:" + sum, size})
		if rel == manifest {
			e.text = text
		}
		return nil
	})
	switch {
	case err != nil:
		return Entry{}, err
	case !complete:
		return Entry{}, tooLarge(c)
	}
	front, body, err := declare.SkillFile(e.text)
	if err != nil || capability.ContentDigest(body) != c.Digest || front["name"] != path.Base(at) || front["description"] == nil {
		return Entry{}, vakerr.New(vakerr.CapabilityUnavailable, "the file of %s is not the one in force, or names another skill", c.ID).
			WithRemedy("wait for the next pass, or give the skill the name of its folder")
	}
	e.Frontmatter = front
	slices.SortFunc(e.Resources, func(a, b File) int { return cmp.Compare(a.URI, b.URI) })
	return e, nil
}

// open opens the folder of a skill: one of the workspace through it, any other by itself.
func (s *Store) open(c *capability.Capability) (*rootfs.Root, string, error) {
	base := c.Config.(*capability.Skill).BaseDir
	switch {
	case base == "" || base == ".":
		return nil, "", vakerr.New(vakerr.CapabilityUnavailable, "%s has no folder of its own", c.ID)
	case path.IsAbs(base):
		root, err := rootfs.Open(base)
		return root, ".", err
	}
	root, err := rootfs.Open(s.Workspace)
	return root, base, err
}

// file reads one file of a skill.
func (s *Store) file(c *capability.Capability, rel string) ([]byte, error) {
	root, base, err := s.open(c)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return read(root, path.Join(base, rel), maxBytes)
}

func read(root *rootfs.Root, rel string, most int64) ([]byte, error) {
	f, _, err := root.OpenRegular(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, vakerr.New(vakerr.WorkspaceUnreadable, "a file of a skill cannot be read").WithCause(err)
	case int64(len(text)) > most:
		return nil, vakerr.New(vakerr.TooLarge, "the files of the skill have more than %d bytes", maxBytes).WithRemedy("make it smaller")
	}
	return text, nil
}

func tooLarge(c *capability.Capability) error {
	return vakerr.New(vakerr.TooLarge, "%s has more than %d files", c.ID, maxFiles).WithRemedy("make it smaller")
}
