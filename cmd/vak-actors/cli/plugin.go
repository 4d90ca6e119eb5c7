package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// plugin is the group of verbs about plugins. They change the data folder; a daemon that runs on it is told and awaited.
func (a *app) plugin() *cobra.Command {
	return group(&cobra.Command{
		Use:   "plugin",
		Short: "Install, enable and remove plugins: skills, commands, hooks and servers in one piece",
		Long: `A plugin brings skills, commands, hooks and MCP servers in one folder or archive, in the format of this program, Agent
Plugins 1.0, Claude Code, Codex, Cursor, Gemini, the MCP registry or an MCP bundle. What is installed is disabled; enabling
needs consent to exactly what it brings. The verbs work with and without a daemon.`,
	}, a.pluginList(), a.pluginShow(), a.pluginInstall(), a.pluginEnable(), a.pluginDisable(), a.pluginUpdate(), a.pluginRollback(), a.pluginRemove())
}

// ofPlugins adds the flags that say which tenant and scope a verb is about.
func (a *app) ofPlugins(c *cobra.Command, scope *string, usage string) *cobra.Command {
	c.Flags().StringVar(&a.reach.tenant, "tenant", "", "tenant to speak for; default: default")
	if scope != nil {
		c.Flags().StringVar(scope, "scope", *scope, usage)
	}
	a.places(c)
	return c
}

// oneScope is the usage of --scope where the plugin is installed already.
const oneScope = "user, project or local; default: the one in which it is installed"

func (a *app) plugins() (*pluginstore.Store, error) {
	data, err := a.hostOptions(false).DataFolder()
	if err != nil {
		return nil, err
	}
	return pluginstore.Open(host.PluginFolder(data, a.reach.tenant)), nil
}

// settle makes a daemon that runs on the data folder see the change, and returns when the gate knows it.
func (a *app) settle(ctx context.Context) error {
	l, err := a.daemon(ctx)
	if err != nil {
		return err
	}
	if l == nil {
		return nil
	}
	defer l.close()
	if _, err := api.Call(ctx, l.Registry.Reload, &registryv1.Reload{Tenant: a.reach.tenant}); err != nil {
		e := vakerr.From(err)
		return vakerr.New(e.Code, "the change is stored, and the daemon has not confirmed it: %s", e.Reason).
			WithRemedy("run `vak-actors reload`, or end the daemon").WithCause(err)
	}
	return nil
}

// settleAndSweep also removes contents that nobody refers to any more.
func (a *app) settleAndSweep(ctx context.Context, store *pluginstore.Store) error {
	if err := a.settle(ctx); err != nil {
		return err
	}
	return store.Sweep()
}

// connected are the plugins of which a server has a connection; none where no daemon runs.
func (a *app) connected(ctx context.Context) (func(id string) bool, error) {
	l, err := a.daemon(ctx)
	if err != nil || l == nil {
		return func(string) bool { return false }, err
	}
	defer l.close()
	r, err := api.Call(ctx, l.Server.ListServers, &poolv1.ListServers{Tenant: a.reach.tenant})
	if err != nil {
		return nil, err
	}
	return func(id string) bool {
		return slices.ContainsFunc(r.GetServers(), func(s *poolv1.Server) bool {
			return strings.HasPrefix(s.GetName(), "plugin."+id+".") && (s.GetState() == "ready" || s.GetState() == "idle" || s.GetState() == "draining")
		})
	}, nil
}

// pluginRow is a plugin as lists print it.
type pluginRow struct {
	ID       string       `json:"id"`
	Scope    string       `json:"scope,omitempty"`
	State    plugin.State `json:"state"`
	Version  string       `json:"version,omitempty"`
	Digest   string       `json:"digest,omitempty"`
	Staged   string       `json:"staged,omitempty"`
	Previous []string     `json:"previous,omitempty"`
	Source   string       `json:"source,omitempty"`
	Commit   string       `json:"commit,omitempty"`
}

func rowOf(r plugin.Record, f plugin.Facts) pluginRow {
	row := pluginRow{ID: r.ID, Scope: r.Scope, State: r.State(f), Version: r.Current.Version, Digest: r.Current.Digest, Source: r.Source.Path, Commit: r.Source.Commit}
	if r.Staged != nil {
		row.Staged = r.Staged.Digest
	}
	for _, v := range r.Previous {
		row.Previous = append(row.Previous, v.Digest)
	}
	return row
}

// done prints what a verb has made of a plugin.
func (a *app) done(what string, store *pluginstore.Store, r plugin.Record) error {
	_, facts := store.Facts(r)
	if a.json {
		return printJSON(a.out, rowOf(r, facts))
	}
	_, err := fmt.Fprintf(a.out, "%s %s in scope %s: %s, content %.12s\n", what, clean(r.ID), r.Scope, r.State(facts), r.Current.Digest)
	return err
}

// printBrings lists all that a plugin brings, on the given stream.
func printBrings(w io.Writer, brings plugin.Brings) {
	for _, i := range brings {
		fmt.Fprintf(w, "  %s\n      %s\n", clean(i.ID), clean(strings.ReplaceAll(i.Text, "\n", "\n      ")))
	}
	if len(brings) == 0 {
		fmt.Fprintln(w, "  nothing")
	}
}

// printChanges lists what differs between two versions.
func printChanges(w io.Writer, changes []plugin.Change) {
	for _, c := range changes {
		switch {
		case c.Old == "":
			fmt.Fprintf(w, "+ %s\n      %s\n", clean(c.ID), clean(c.New))
		case c.New == "":
			fmt.Fprintf(w, "- %s\n      %s\n", clean(c.ID), clean(c.Old))
		default:
			fmt.Fprintf(w, "~ %s\n    - %s\n    + %s\n", clean(c.ID), clean(c.Old), clean(c.New))
		}
	}
	if len(changes) == 0 {
		fmt.Fprintln(w, "  it brings the same; other files differ")
	}
}

// pluginConsent asks for the operator's word on the pending version of a plugin, or takes it from --yes. What was shown is what
// the answer is bound to.
func (a *app) pluginConsent(r plugin.Record, c *pluginstore.Content, yes string) (plugin.Consent, error) {
	given := plugin.Consent{Digest: c.Digest, Scope: r.Scope, Brings: c.Brings.Digest()}
	if yes != "" {
		if len(yes) < 12 || !strings.HasPrefix(c.Digest, yes) {
			return plugin.Consent{}, vakerr.New(vakerr.ConsentRequired, "--yes names another content than %.12s", c.Digest).
				WithRemedy("look at it with `vak-actors plugin show %s`, and name the digest that you consent to", r.ID)
		}
		return given, nil
	}
	if a.ask(fmt.Sprintf("Enable %s in scope %s, with all of this? Type yes: ", clean(r.ID), r.Scope)) != "yes" {
		return plugin.Consent{}, vakerr.New(vakerr.ConsentRequired, "nobody consented to what the plugin %s brings", r.ID).
			WithRemedy("consent with: vak-actors plugin enable %s --scope %s --yes %.12s", r.ID, r.Scope, c.Digest)
	}
	return given, nil
}

func sourcePath(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", vakerr.New(vakerr.FileNotFound, "there is no plugin at %s", p).WithCause(err)
	}
	return abs, nil
}
