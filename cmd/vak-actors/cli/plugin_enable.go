package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) pluginEnable() *cobra.Command {
	scope, yes := "", ""
	var values map[string]string
	c := &cobra.Command{
		Use:   "enable ID",
		Short: "Put a plugin in force, after consent to exactly what it brings",
		Long: `Shows what the plugin brings and asks. The consent is bound to the content, the scope and what is brought: when one of
them changes, it is asked for again. Where a newer version waits, the consent is for that one.`,
		Example: "  vak-actors plugin enable context7\n  vak-actors plugin enable context7 --yes 0123456789ab --set region=eu",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			store, err := a.plugins()
			if err != nil {
				return err
			}
			r, err := store.Find(args[0], scope)
			if err != nil {
				return err
			}
			content, err := store.Load(r.Pending().Digest)
			if err != nil {
				return err
			}
			if !a.json {
				fmt.Fprintf(a.out, "%s brings, with the content %s:\n", clean(r.ID), content.Digest)
				printBrings(a.out, content.Brings)
			}
			saw, err := a.pluginConsent(r, content, yes)
			if err != nil {
				return err
			}
			if r, err = store.Enable(r.ID, r.Scope, saw, values); err != nil {
				return err
			}
			if err := a.settleAndSweep(c.Context(), store); err != nil {
				return err
			}
			return a.done("enabled", store, r)
		},
	}
	c.Flags().StringVar(&yes, "yes", "", "consent to the content of this digest (12 characters or more), and ask nobody")
	c.Flags().StringToStringVar(&values, "set", nil, "value of an option of the plugin, as KEY=VALUE")
	return a.ofPlugins(c, &scope, oneScope)
}
