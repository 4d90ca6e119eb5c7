package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) pluginRemove() *cobra.Command {
	scope, keep := "", false
	c := &cobra.Command{
		Use:     "remove ID",
		Short:   "Forget a plugin and delete what nobody else refers to",
		Example: "  vak-actors plugin remove context7",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.plugins()
			if err != nil {
				return err
			}
			r, err := store.Remove(args[0], scope, keep)
			if err != nil {
				return err
			}
			if err := a.settleAndSweep(c.Context(), store); err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"id": r.ID, "scope": r.Scope})
			}
			_, err = fmt.Fprintf(a.out, "removed %s from scope %s\n", clean(r.ID), r.Scope)
			return err
		},
	}
	c.Flags().BoolVar(&keep, "keep-data", false, "keep what the plugin's programs have stored")
	return a.ofPlugins(c, &scope, oneScope)
}
