// Package artifact keeps results that are too large for a conversation in files of the workspace and puts a preview in
// their place.
//
// A file is named by the digest of its content, so equal results share one and a name never means two things. The number
// of files and of their bytes is bounded: the oldest go first. A preview may therefore outlive its file; it says so.
package artifact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/phrase"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// previewBytes is how much of a result is shown in its place.
const previewBytes = 2 << 10

// Config says where artifacts are kept and how many. The zero value of a bound is its default.
type Config struct {
	Workspace string // absolute
	Folder    string // relative to it, with '/'; .vak/artifacts if empty
	MaxFiles  int    // 200
	MaxBytes  int64  // of all files together; 256 MiB
}

// Store is the artifacts of one workspace. It is safe for concurrent use and does file I/O in the caller's goroutine.
type Store struct {
	cfg Config
	mu  sync.Mutex // held while files are written and removed
}

// New returns a store. It touches no file until something is kept.
func New(cfg Config) *Store {
	cfg.Folder = cmp.Or(cfg.Folder, ".vak/artifacts")
	cfg.MaxFiles = cmp.Or(cfg.MaxFiles, 200)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, 256<<20)
	return &Store{cfg: cfg}
}

// Spill returns a result of at most limit bytes as it is. A larger one is kept in a file, and its content is replaced by
// the name of the file and a preview; whether it is an error, and what it promotes and retrieved, stay. now becomes the
// file's time, by which the oldest are found. The error is vakerr.TooLarge for a result that no file may hold, or what
// went wrong with the file.
func (s *Store) Spill(r op.Result, limit int, now time.Time) (op.Result, error) {
	if len(r.Content) <= limit {
		return r, nil
	}
	text, suffix := readable(r.Content)
	if int64(len(text)) > s.cfg.MaxBytes {
		return r, vakerr.New(vakerr.TooLarge, "the result has %d bytes, more than all artifacts may have", len(text)).
			WithRemedy("ask for less")
	}
	name := path.Join(s.cfg.Folder, capability.ContentDigest(text)+suffix)
	if err := s.keep(name, text, now); err != nil {
		return r, err
	}
	said := fmt.Sprintf("The result has %d bytes and was put into the file %s, where it stays for a while. It begins with:\n\n%s",
		len(text), name, strings.ToValidUTF8(phrase.Cut(string(text), previewBytes), ""))
	replaced := op.Text(said)
	if r.IsError {
		replaced = op.ErrorText(said)
	}
	r.Content = replaced.Content
	return r, nil
}

// readable is the form in which a result is kept: the text itself where it is nothing but text, or else its JSON with line
// breaks, so that it can be read page by page.
func readable(content json.RawMessage) (text []byte, suffix string) {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(content, &result); err == nil && len(result.Content) > 0 && result.Structured == nil {
		var parts []string
		for _, block := range result.Content {
			if block.Type == "text" {
				parts = append(parts, block.Text)
			}
		}
		if len(parts) == len(result.Content) {
			return []byte(strings.Join(parts, "\n")), ".txt"
		}
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, content, "", " "); err != nil {
		return content, ".json"
	}
	return indented.Bytes(), ".json"
}

func (s *Store) keep(name string, text []byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := rootfs.Open(s.cfg.Workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.WriteAtomic(name, text, 0o600); err != nil {
		return err
	}
	if err := root.SetTime(name, now); err != nil {
		return err
	}
	return s.evictLocked(root, path.Base(name))
}

// evictLocked removes the oldest artifacts until the bounds hold; the one just written stays.
func (s *Store) evictLocked(root *rootfs.Root, written string) error {
	files, err := root.Files(s.cfg.Folder)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f fs.FileInfo) bool { return !isArtifact(f.Name()) })
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	count, total := len(files), int64(0)
	for _, f := range files {
		total += f.Size()
	}
	for _, f := range files {
		if count <= s.cfg.MaxFiles && total <= s.cfg.MaxBytes {
			return nil
		}
		if f.Name() == written {
			continue
		}
		if err := root.Remove(path.Join(s.cfg.Folder, f.Name())); err != nil {
			return err
		}
		count--
		total -= f.Size()
	}
	return nil
}

// isArtifact keeps files of others that lie in the folder from being removed.
func isArtifact(name string) bool {
	digest, suffix, _ := strings.Cut(name, ".")
	return len(digest) == 64 && (suffix == "txt" || suffix == "json")
}
