package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

const configName = "vak.toml"

// workspaceFolder is the real, absolute path of a folder that is there.
func workspaceFolder(workspace string) (string, error) {
	abs, err := filepath.Abs(workspace)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			err = fs.ErrInvalid
		}
	}
	if err != nil {
		return "", vakerr.New(vakerr.WorkspaceUnreadable, "the workspace %s is not a folder that can be read", workspace).
			WithRemedy("name an existing folder with --workspace").WithCause(err)
	}
	return abs, nil
}

// DataFolder is where a workspace's ledger and state are kept when nobody says otherwise: outside of the workspace, in
// the user's state folder, under the workspace's name and a digest of its path.
func DataFolder(workspace string) (string, error) {
	abs, err := workspaceFolder(workspace)
	if err != nil {
		return "", err
	}
	state, err := stateFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(state, filepath.Base(abs)+"-"+hex.EncodeToString(sum[:4])), nil
}

// stateFolder is where this program keeps what a user's daemons have to remember.
func stateFolder() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", vakerr.New(vakerr.ConfigInvalid, "there is no home folder to keep the ledger in").
				WithRemedy("name a folder with --data, or set HOME or XDG_STATE_HOME").WithCause(err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "vak-actors"), nil
}

// readConfig reads the daemon's vak.toml with its problems, which are reported; only a file that was named and is not
// there, or that is no TOML at all, keeps the daemon from starting.
func readConfig(o *Options) (config.Config, []capability.Problem, error) {
	path := o.Config
	if path == "" {
		if whose, _ := ProvenanceOf(o.TrustFile, o.Workspace); whose == Cloned {
			return config.Default(), nil, nil // a workspace that nobody trusts does not configure the daemon
		}
		path = filepath.Join(o.Workspace, configName)
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.Config == "":
		return config.Default(), nil, nil
	case err != nil:
		return config.Config{}, nil, vakerr.New(vakerr.ConfigInvalid, "the configuration %s cannot be read", path).
			WithRemedy("check --config, and that the file is readable").WithCause(err)
	}
	c, problems := config.Parse(filepath.Base(path), text)
	if c.Unreadable {
		first := problems[0]
		return config.Config{}, nil, vakerr.New(vakerr.ConfigInvalid, "%s, line %d: %s", path, first.Line, first.Message).WithRemedy("%s", first.Hint)
	}
	return c, problems, nil
}
