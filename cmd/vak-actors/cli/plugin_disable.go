package cli

import "github.com/spf13/cobra"

func (a *app) pluginDisable() *cobra.Command {
	scope := ""
	c := &cobra.Command{
		Use:   "disable ID",
		Short: "Take a plugin out of force, whole and at once",
		Long: `When it returns, nothing of the plugin starts any more, in a running daemon and in open turns, too: no skill, command,
server or hook. Hooks that run already finish. It stays so across restarts, and enabling it again asks again.`,
		Example: "  vak-actors plugin disable context7",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.plugins()
			if err != nil {
				return err
			}
			records, err := store.Disable(args[0], scope)
			if err != nil {
				return err
			}
			if err := a.settle(c.Context()); err != nil {
				return err
			}
			for _, r := range records {
				if err := a.done("disabled", store, r); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return a.ofPlugins(c, &scope, "user, project or local; default: every scope in which it is installed")
}
