package cli

import "github.com/spf13/cobra"

func (a *app) pluginRollback() *cobra.Command {
	scope := ""
	c := &cobra.Command{
		Use:   "rollback ID",
		Short: "Put the version of a plugin before this one in force again",
		Long: `A consent to the earlier version still holds, for it names that very content; one that was taken back by disable does
not, and the plugin is disabled then.`,
		Example: "  vak-actors plugin rollback context7",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.plugins()
			if err != nil {
				return err
			}
			r, err := store.Rollback(args[0], scope)
			if err != nil {
				return err
			}
			if err := a.settleAndSweep(c.Context(), store); err != nil {
				return err
			}
			return a.done("rolled back", store, r)
		},
	}
	return a.ofPlugins(c, &scope, oneScope)
}
