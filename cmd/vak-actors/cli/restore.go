package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

func (a *app) restore() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "restore ID", Short: "Take a revocation back", Example: "  vak-actors restore mcp:github",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Registry.Restore, &registryv1.Restore{Tenant: a.reach.tenant, Id: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"id": args[0], "epoch": r.GetEpoch(), "was_revoked": r.GetWasRevoked()})
			}
			if !r.GetWasRevoked() {
				fmt.Fprintf(a.out, "%s was not revoked\n", args[0])
				return nil
			}
			fmt.Fprintf(a.out, "restored %s, epoch %d\n", args[0], r.GetEpoch())
			return nil
		},
	})
}
