package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/plugin"
	"github.com/vak-actors/vak-actors/internal/pluginstore"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// offer is a plugin that a marketplace offers.
type offer struct {
	ID          string       `json:"id"`
	State       plugin.State `json:"state"`
	Version     string       `json:"version,omitempty"`
	Description string       `json:"description,omitempty"`
	Remote      string       `json:"remote,omitempty"` // it lies elsewhere and cannot be read offline
	Unavailable string       `json:"unavailable,omitempty"`
}

func (a *app) pluginList() *cobra.Command {
	var market string
	var updates bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the installed plugins with their states, or what a marketplace offers",
		Long: `The states are installed, enabled, connected, needs-review, update-available, revoked, blocked and incompatible; of a
marketplace: available. Nothing is fetched: offers that lie elsewhere are named with where.`,
		Example: "  vak-actors plugin list\n  vak-actors plugin list --market ../my-marketplace",
		Args:    arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if market != "" {
				return a.printOffers(market)
			}
			store, err := a.plugins()
			if err != nil {
				return err
			}
			records, problems, err := store.List()
			if err != nil {
				return err
			}
			rows, err := a.pluginRows(c, store, records, updates)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"plugins": orEmpty(rows), "problems": orEmpty(problems)})
			}
			lines := [][]string{}
			for _, r := range rows {
				lines = append(lines, []string{r.ID, r.Scope, string(r.State), r.Version, fmt.Sprintf("%.12s", r.Digest)})
			}
			table(a.out, lines)
			for _, p := range problems {
				printProblem(a.out, p)
			}
			fmt.Fprintln(a.out, count(len(rows), "plugin"))
			return nil
		},
	}
	c.Flags().StringVar(&market, "market", "", "folder of a marketplace: list what it offers")
	c.Flags().BoolVar(&updates, "updates", false, "look whether the sources hold something else")
	return a.ofPlugins(c, nil, "")
}

func (a *app) pluginRows(c *cobra.Command, store *pluginstore.Store, records []plugin.Record, updates bool) ([]pluginRow, error) {
	connected, err := a.connected(c.Context())
	if err != nil {
		return nil, err
	}
	var rows []pluginRow
	for _, r := range records {
		_, facts := store.Facts(r)
		facts.Connected = connected(r.ID)
		if updates {
			facts.Source, _ = store.Available(c.Context(), r) // a source that is gone offers nothing
		}
		rows = append(rows, rowOf(r, facts))
	}
	return rows, nil
}

func (a *app) printOffers(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return vakerr.New(vakerr.FileNotFound, "the folder %s cannot be read", folder).WithRemedy("name the folder of a marketplace").WithCause(err)
	}
	defer root.Close()
	market, problems, found, err := plugin.FindMarketplace(root.FS())
	if err == nil && !found {
		err = vakerr.New(vakerr.PluginInvalid, "%s holds no marketplace", folder).WithRemedy("name the folder that holds .claude-plugin/marketplace.json")
	}
	if err != nil {
		return err
	}
	offers := []offer{}
	for _, e := range market.Entries {
		offers = append(offers, offer{e.Name, plugin.StateAvailable, e.Version, e.Description, e.Remote, e.Unavailable})
	}
	if a.json {
		return printJSON(a.out, map[string]any{"marketplace": market.Name, "plugins": offers, "problems": orEmpty[capability.Problem](problems)})
	}
	var lines [][]string
	for _, o := range offers {
		note := o.Unavailable
		if o.Remote != "" {
			note = "elsewhere (" + o.Remote + "), not readable offline"
		}
		lines = append(lines, []string{o.ID, string(o.State), o.Version, note, short(o.Description, 60)})
	}
	table(a.out, lines)
	for _, p := range problems {
		printProblem(a.out, p)
	}
	fmt.Fprintln(a.out, count(len(offers), "plugin"))
	return nil
}
