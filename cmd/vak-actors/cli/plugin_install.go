package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/internal/pluginstore"
)

func (a *app) pluginInstall() *cobra.Command {
	q := pluginstore.Request{Scope: "user"}
	c := &cobra.Command{
		Use:   "install SOURCE",
		Short: "Copy a plugin from a folder, a git checkout, an archive or a marketplace on disk; it stays disabled",
		Long: `Copies and checks the files; nothing of them runs. Absolute paths, .., links, special files, names that differ by case
alone and archives that unpack to too much are refused with the name of the entry. Installed means disabled.`,
		Example: "  vak-actors plugin install ./my-plugin\n  vak-actors plugin install ./marketplace --plugin commit-commands",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if q.Source, err = sourcePath(args[0]); err != nil {
				return err
			}
			store, err := a.plugins()
			if err != nil {
				return err
			}
			r, content, err := store.Install(c.Context(), q)
			if err != nil {
				return err
			}
			if !a.json {
				fmt.Fprintf(a.out, "%s brings:\n", clean(r.ID))
				printBrings(a.out, content.Brings)
			}
			for _, p := range content.Problems {
				printProblem(a.errs, p)
			}
			return a.done("installed", store, r)
		},
	}
	c.Flags().StringVar(&q.Plugin, "plugin", "", "name of the offer, where SOURCE is a marketplace")
	c.Flags().StringVar(&q.Digest, "digest", "", "take this content and no other")
	return a.ofPlugins(c, &q.Scope, "user, project or local")
}
