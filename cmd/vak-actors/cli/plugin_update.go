package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
)

func (a *app) pluginUpdate() *cobra.Command {
	scope, yes := "", ""
	var from pluginstore.Request
	c := &cobra.Command{
		Use:   "update ID",
		Short: "Take what the source of a plugin holds now, and show what it changes",
		Long: `The new content is told by its digest, whatever version it claims. An enabled plugin stays at its old version until
there is consent to the new one; the old version is kept for rollback.`,
		Example: "  vak-actors plugin update context7\n  vak-actors plugin update context7 --from ./context7-2.zip",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if from.Source != "" {
				if from.Source, err = sourcePath(from.Source); err != nil {
					return err
				}
			}
			store, err := a.plugins()
			if err != nil {
				return err
			}
			before, err := store.Find(args[0], scope)
			if err != nil {
				return err
			}
			old, _ := store.Facts(before)
			r, err := store.Update(c.Context(), before.ID, before.Scope, from)
			if err != nil {
				return err
			}
			if r.Pending().Digest == before.Current.Digest {
				return a.done("unchanged", store, r)
			}
			return a.review(c, store, r, old, yes)
		},
	}
	c.Flags().StringVar(&from.Source, "from", "", "take it from this folder or archive from now on")
	c.Flags().StringVar(&from.Plugin, "plugin", "", "name of the offer, where --from is a marketplace")
	c.Flags().StringVar(&from.Digest, "digest", "", "take this content and no other, where --from is given")
	c.Flags().StringVar(&yes, "yes", "", "consent to the content of this digest (12 characters or more), and ask nobody")
	return a.ofPlugins(c, &scope, oneScope)
}

// review shows what a new version changes and, where the plugin is enabled, asks for consent to it.
func (a *app) review(c *cobra.Command, store *pluginstore.Store, r plugin.Record, old *pluginstore.Content, yes string) error {
	content, err := store.Load(r.Pending().Digest)
	if err != nil {
		return err
	}
	var before plugin.Brings
	if old != nil {
		before = old.Brings
	}
	if !a.json {
		fmt.Fprintf(a.out, "the content %s changes:\n", content.Digest)
		printChanges(a.out, plugin.Diff(before, content.Brings))
	}
	if r.Staged != nil {
		saw, err := a.pluginConsent(r, content, yes)
		if err != nil {
			return err
		}
		if r, err = store.Enable(r.ID, r.Scope, saw, nil); err != nil {
			return err
		}
	}
	if err := a.settleAndSweep(c.Context(), store); err != nil {
		return err
	}
	return a.done("updated", store, r)
}
