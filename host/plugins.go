package host

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// PluginFolder is where the plugins of a tenant are kept below a data folder.
func PluginFolder(data, tenant string) string {
	if tenant == "" || tenant == protocol.DefaultTenant {
		return filepath.Join(data, "plugins")
	}
	return filepath.Join(data, "tenants", tenant, "plugins")
}

// plugins are the installed plugins of a tenant, as roots of its scanner.
type plugins struct {
	store     *pluginstore.Store
	workspace string
	home      string
}

// sources lists the plugins in force, with what is wrong with those that are not.
func (p *plugins) sources(context.Context) ([]source, []capability.Problem, error) {
	enabled, problems, err := p.store.Enabled()
	if err != nil {
		return nil, nil, err
	}
	all := make([]source, 0, len(enabled))
	for _, e := range enabled {
		all = append(all, source{
			dir: e.Content.Dir, origin: e.Content.Manifest.Origin(e.Record.Scope), prefix: "plugin:" + e.Record.ID + "/",
			data: e.Folder.Data, layout: &e.Content.Layout, plugin: e, of: p,
		})
	}
	return all, problems, nil
}

// place turns what the files of a plugin declare into what the plugin does. No file of a plugin governs anything.
func (p *plugins) place(e *pluginstore.Enabled, read declare.Result) declare.Result {
	m := e.Content.Manifest
	placed, problems := m.Place(read.Declarations, plugin.Placement{
		Scope: e.Record.Scope, Folder: e.Folder, Workspace: p.workspace, Home: p.home, Values: e.Record.Values,
	})
	out := declare.Result{Revision: read.Revision, Declarations: placed, Watch: read.Watch}
	out.Problems = slices.Concat(read.Problems, problems)
	for _, s := range read.Shadowed {
		s.ID = plugin.Qualified(m.Name, s.ID)
		out.Shadowed = append(out.Shadowed, s)
	}
	return out
}

// lookup resolves the placeholders of a plugin's options among the operator's secrets.
func (p *plugins) lookup(id string, secrets func(string) (string, bool)) func(string) (string, bool) {
	if secrets == nil {
		return nil
	}
	return func(name string) (string, bool) {
		if key, is := strings.CutPrefix(name, "user_config."); is {
			name = plugin.SecretName(id, key)
		}
		return secrets(name)
	}
}
