package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// journalFile keeps, in the data folder and readable for its user alone, what imports replaced: the last one first.
const journalFile = "imports.json"

// maxJournal bounds how many imports can be taken back.
const maxJournal = 32

type record struct {
	Client string   `json:"client"`
	Target string   `json:"target"`
	Files  []change `json:"files"`
}

type change struct {
	Folder  string      `json:"folder"`
	Name    string      `json:"name"`
	Existed bool        `json:"existed"`
	Mode    fs.FileMode `json:"mode"`
	Before  []byte      `json:"before,omitempty"` // nil where all of it still stands at the begin of the file
	Kept    int         `json:"kept,omitempty"`   // bytes that stand there
	Was     string      `json:"was"`              // digest of what stood before
	After   string      `json:"after"`            // digest
}

// was notes what an edit replaces. What it only adds to is not copied: secrets.env would stay in the journal for ever.
func (c *change) was(before, after []byte) {
	c.Was, c.After = digest(before), digest(after)
	if bytes.HasPrefix(after, before) {
		c.Kept = len(before)
		return
	}
	c.Before = before
}

// recall finds what stood before in a file that is as the import left it.
func (c *change) recall(now []byte) {
	if c.Before == nil && c.Kept <= len(now) {
		c.Before = now[:c.Kept]
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Apply writes the plan. What it replaces is on disk before the first file is touched.
func (p *Plan) Apply() error {
	if len(p.edits) == 0 {
		return nil
	}
	rec := record{Client: p.Client, Target: p.request.Target}
	for _, e := range p.edits {
		now, err := open(e.folder, e.name, e.mode)
		if err != nil {
			return err
		}
		if now.existed != e.existed || digest(now.before) != digest(e.before) {
			return changed(e.folder, e.name)
		}
		c := change{Folder: e.folder, Name: e.name, Existed: e.existed, Mode: e.mode}
		c.was(e.before, e.after())
		if info, err := os.Stat(filepath.Join(e.folder, e.name)); err == nil {
			c.Mode = info.Mode().Perm()
		}
		rec.Files = append(rec.Files, c)
	}
	all, err := journal(p.request.Data)
	if err != nil {
		return err
	}
	all = append([]record{rec}, all...)
	if err := keep(p.request.Data, all[:min(len(all), maxJournal)]); err != nil {
		return err
	}
	for _, e := range slices.Backward(p.edits) { // secrets before what refers to them
		if err := put(e.folder, e.name, e.after(), e.mode); err != nil {
			return err
		}
		if e.name == secretsFile {
			if err := os.Chmod(filepath.Join(e.folder, e.name), 0o600); err != nil {
				return vakerr.New(vakerr.ConfigInvalid, "the permissions of %s cannot be set", secretsFile).WithRemedy("see who owns it").WithCause(err)
			}
		}
	}
	return nil
}

func changed(folder, name string) error {
	return vakerr.New(vakerr.ConfigInvalid, "%s was changed since; nothing was written", filepath.Join(folder, name)).
		WithRemedy("look at the file: what it holds now was written by somebody else")
}

// Undo takes back the last import of a client into the target, and names the files it restored. It writes nothing where
// one of them was changed since.
func Undo(r Request) ([]string, error) {
	all, err := journal(r.Data)
	if err != nil {
		return nil, err
	}
	at := -1
	for i, rec := range all {
		if rec.Client == r.Client && rec.Target == r.Target {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, vakerr.New(vakerr.InvalidRequest, "there is no import of %.40s to take back", r.Client).
			WithRemedy("name the client, --workspace, --user and --data as they were")
	}
	var restore []change
	for _, c := range all[at].Files {
		now, err := open(c.Folder, c.Name, c.Mode)
		if err != nil {
			return nil, err
		}
		switch {
		case now.existed && digest(now.before) == c.After:
			if c.recall(now.before); digest(c.Before) != c.Was {
				return nil, changed(c.Folder, c.Name)
			}
			restore = append(restore, c)
		case now.existed != c.Existed || digest(now.before) != c.Was:
			return nil, changed(c.Folder, c.Name)
		}
	}
	var names []string
	for _, c := range restore {
		if err := c.restore(); err != nil {
			return names, err
		}
		names = append(names, filepath.Join(c.Folder, c.Name))
	}
	return names, keep(r.Data, append(all[:at:at], all[at+1:]...))
}

func (c change) restore() error {
	if c.Existed {
		if err := put(c.Folder, c.Name, c.Before, c.Mode); err != nil {
			return err
		}
		return os.Chmod(filepath.Join(c.Folder, c.Name), c.Mode)
	}
	root, err := rootfs.Open(c.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Remove(c.Name)
}

func journal(data string) ([]record, error) {
	text, err := rootfs.ReadFile(filepath.Join(data, journalFile), maxSource)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []record
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, vakerr.New(vakerr.ConfigInvalid, "%s of the data folder cannot be read", journalFile).
			WithRemedy("remove it; earlier imports cannot be taken back then").WithCause(err)
	}
	return all, nil
}

func keep(data string, all []record) error {
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return vakerr.From(err)
	}
	return put(data, journalFile, text, 0o600)
}
