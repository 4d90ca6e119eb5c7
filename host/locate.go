package host

import (
	"path/filepath"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// DataFolder is the folder in which a Host of these options keeps its state, and where its socket is. Nothing is made or
// locked. While vak.toml is no TOML, it is the folder that an unwritten one means.
func (o Options) DataFolder() (string, error) {
	h := &Host{options: o}
	err := h.prepare()
	if vakerr.CodeOf(err) != vakerr.ConfigInvalid {
		return h.data, err
	}
	data := o.Data
	if data == "" {
		if data, err = DataFolder(o.Workspace); err != nil {
			return "", err
		}
	}
	return filepath.Abs(data)
}

// tokenFiles are the files of the tenants' own tokens.
func (h *Host) tokenFiles() map[string]string {
	files := map[string]string{}
	for id, t := range h.config.Tenants {
		if t.TokenFile != "" {
			files[id] = h.besideConfig(t.TokenFile)
		}
	}
	return files
}
