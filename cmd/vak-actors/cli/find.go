package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

// hit is one result of find.
type hit struct {
	Name    string  `json:"name"`
	Server  string  `json:"server,omitempty"`
	Summary string  `json:"summary"`
	Score   float64 `json:"score"` // only the order has a meaning
}

func (a *app) find() *cobra.Command {
	var limit uint32
	var channel string
	c := &cobra.Command{
		Use:   "find QUERY...",
		Short: "Search the tools as find_tools does",
		Long: `Prints what the tool find_tools answers a model, best first: tools of the host, and tools of every server whose
catalog is known. It starts no server.`,
		Example: `  vak-actors find create issue
  vak-actors find --limit 20 --json "read a file"`,
		Args: arguments(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Registry.Find, &registryv1.Find{
				Tenant: a.reach.tenant, Query: strings.Join(args, " "), Limit: limit, Channel: channel,
			})
			if err != nil {
				return err
			}
			return a.printHits(r.GetHits())
		},
	}
	c.Flags().Uint32Var(&limit, "limit", 0, "hits to print, 1 to 50; default: 5")
	c.Flags().StringVar(&channel, "channel", "", "channel whose policy applies; default: api")
	return a.reaches(c)
}

func (a *app) printHits(hits []*registryv1.Hit) error {
	if a.json {
		all := make([]hit, len(hits))
		for i, h := range hits {
			all[i] = hit{h.GetName(), h.GetServer(), h.GetSummary(), h.GetScore()}
		}
		return printJSON(a.out, map[string]any{"hits": all})
	}
	if len(hits) == 0 {
		fmt.Fprintln(a.out, "no tool matches; a server's tools are known once it was used or probed")
		return nil
	}
	rows := [][]string{{"NAME", "SERVER", "SUMMARY"}}
	for _, h := range hits {
		rows = append(rows, []string{h.GetName(), orDash(h.GetServer()), short(h.GetSummary(), 100)})
	}
	table(a.out, rows)
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
