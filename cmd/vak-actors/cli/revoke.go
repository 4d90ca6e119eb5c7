package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

func (a *app) revoke() *cobra.Command {
	var reason string
	var cancel bool
	c := &cobra.Command{
		Use:   "revoke ID --reason TEXT",
		Short: "Forbid a capability at once, in every session",
		Long: `When it returns, no call of the capability starts any more, whatever was queued and whatever a running turn was
shown. It stays in force across restarts, until restore.`,
		Example: `  vak-actors revoke mcp:github --reason "token leaked"
  vak-actors revoke tool:write --reason "read-only week" --cancel-running`,
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if reason == "" {
				return misused("say why with --reason: models and people are told", "a revocation needs a reason")
			}
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Registry.Revoke, &registryv1.Revoke{
				Tenant: a.reach.tenant, Id: args[0], Reason: reason, CancelRunning: cancel,
			})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"id": args[0], "epoch": r.GetEpoch(), "declared": r.GetDeclared()})
			}
			fmt.Fprintf(a.out, "revoked %s, epoch %d\n", args[0], r.GetEpoch())
			if !r.GetDeclared() {
				fmt.Fprintln(a.out, "note: nothing of that id is declared now; the revocation waits for it")
			}
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for models and people; required")
	c.Flags().BoolVar(&cancel, "cancel-running", false, "cancel calls of it that run already")
	return a.reaches(c)
}
