package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Provenance says whose a workspace is: what of it may run and grant without anybody having looked at it.
type Provenance uint8

// The provenances.
const (
	Own     Provenance = iota // the operator's own folder: followed as it changes
	Cloned                    // a checkout of somebody's repository that nobody has trusted: it runs and grants nothing
	Trusted                   // such a checkout that a person has trusted as it was then: what runs is held when it changes
)

// TrustFile is where a person's trust in cloned workspaces is kept: outside of every workspace, so that none can trust
// itself. It is empty where the environment names no folder.
func TrustFile() string {
	state, err := stateFolder()
	if err != nil {
		return ""
	}
	return filepath.Join(state, "trust.json")
}

// trustBook is the file of trust. Its form is this program's own.
type trustBook struct {
	Workspaces map[string]trusting `json:"workspaces"` // by real path
}

type trusting struct {
	Since  time.Time `json:"since"`
	Follow bool      `json:"follow,omitempty"` // changes are the person's own work
}

// maxTrustFile bounds the file, in bytes.
const maxTrustFile = 4 << 20

func readTrust(file string) (trustBook, error) {
	book := trustBook{Workspaces: map[string]trusting{}}
	text, err := rootfs.ReadFile(file, maxTrustFile)
	if errors.Is(err, fs.ErrNotExist) {
		return book, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &book)
	}
	if err != nil {
		return trustBook{}, vakerr.New(vakerr.ConfigInvalid, "the file of trusted workspaces %s cannot be read", file).
			WithRemedy("repair or remove it; until then no cloned workspace is trusted").WithCause(err)
	}
	return book, nil
}

// Trust records that a person trusts a workspace; with follow, changes of it are theirs as well. file is TrustFile.
func Trust(file, workspace string, follow bool) error {
	return editTrust(file, workspace, func(book trustBook, path string) {
		book.Workspaces[path] = trusting{Since: time.Now().UTC().Truncate(time.Second), Follow: follow}
	})
}

// Distrust takes trust back.
func Distrust(file, workspace string) error {
	return editTrust(file, workspace, func(book trustBook, path string) { delete(book.Workspaces, path) })
}

func editTrust(file, workspace string, edit func(trustBook, string)) error {
	path, err := workspaceFolder(workspace)
	if err != nil {
		return err
	}
	book, err := readTrust(file)
	if err != nil {
		return err
	}
	if book.Workspaces == nil {
		book.Workspaces = map[string]trusting{}
	}
	edit(book, path)
	text, err := json.MarshalIndent(book, "", "  ")
	if err == nil {
		err = rootfs.ReplaceFile(file, append(text, '\n'))
	}
	if err != nil {
		return vakerr.New(vakerr.Internal, "the file of trusted workspaces %s cannot be written", file).
			WithRemedy("see that its folder is yours to write").WithCause(err)
	}
	return nil
}

// ProvenanceOf says whose a workspace is now, by the file of trust. Without one (an embedding program decides by itself)
// every workspace is its operator's own. What cannot be read counts against the workspace; the error says what it was.
func ProvenanceOf(file, workspace string) (Provenance, error) {
	if file == "" || !cloned(workspace) {
		return Own, nil
	}
	book, err := readTrust(file)
	if err != nil {
		return Cloned, err
	}
	path, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return Cloned, nil
	}
	trust, known := book.Workspaces[path]
	switch {
	case !known:
		return Cloned, nil
	case trust.Follow:
		return Own, nil
	}
	return Trusted, nil
}

// cloned reports whether a folder lies in a checkout that has a remote: what is in it came, or may come, from elsewhere.
func cloned(workspace string) bool {
	dir, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return true
	}
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			if remote, repository := hasRemote(git, info); repository {
				return remote
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

const maxGitConfig = 1 << 20 // bytes

// hasRemote reads the configuration of a repository; one that cannot be read may have any remote. repository is false for
// something else of that name.
func hasRemote(git string, info os.FileInfo) (remote, repository bool) {
	pointer := info.Mode().IsRegular() // a worktree or submodule names its folder
	if pointer {
		text, err := rootfs.ReadFile(git, maxGitConfig)
		folder, is := bytes.CutPrefix(bytes.TrimSpace(text), []byte("gitdir:"))
		if err != nil || !is {
			return true, true
		}
		dir := strings.TrimSpace(string(folder))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(git), dir)
		}
		git = dir
		if common, err := rootfs.ReadFile(filepath.Join(git, "commondir"), maxGitConfig); err == nil {
			if git = strings.TrimSpace(string(common)); !filepath.IsAbs(git) {
				git = filepath.Join(dir, git)
			}
		}
	}
	text, err := rootfs.ReadFile(filepath.Join(git, "config"), maxGitConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return pointer, pointer // one that leads nowhere hides whose checkout this is
	}
	if err != nil {
		return true, true
	}
	for line := range strings.Lines(strings.ToLower(string(text))) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[remote") || strings.HasPrefix(line, "[include") {
			return true, true
		}
	}
	return false, true
}

// trustRemedy is what a person does about an untrusted workspace.
func trustRemedy(workspace string) string {
	return "look at what it declares; if that is right: vak-actors trust --workspace " + workspace
}

// hold holds back what a cloned workspace would run.
func hold(declared []capability.Declaration, remedy string) []capability.Declaration {
	held := make([]capability.Declaration, len(declared))
	why := &capability.Hold{Reason: "it comes from a cloned repository that nobody has trusted", Remedy: remedy}
	for i, d := range declared {
		if d.Origin.Kind == capability.OriginWorkspace && runs(d.ID.Kind) {
			d.Hold = why
		}
		held[i] = d
	}
	return held
}

// runs reports whether a capability of that kind runs a program or reaches an address by itself.
func runs(kind capability.Kind) bool {
	return kind == capability.KindMCP || kind == capability.KindHook
}
