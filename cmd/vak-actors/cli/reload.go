package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	commonv1 "github.com/vak-actors/vak-actors/messages/vak/common/v1"
	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/api"
)

func (a *app) reload() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use:   "reload",
		Short: "Make a daemon read its workspace now",
		Long: `Runs one reconcile pass and waits for it. It is a hint: the daemon finds changes by itself, at the latest with its
next tick.`,
		Example: "  vak-actors reload",
		Args:    arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Registry.Reload, &registryv1.Reload{Tenant: a.reach.tenant})
			if err != nil {
				return err
			}
			problems := problemsOf(r.GetProblems())
			if a.json {
				return printJSON(a.out, map[string]any{"epoch": r.GetEpoch(), "changed": r.GetChanged(), "problems": problems})
			}
			what := "unchanged"
			if r.GetChanged() {
				what = "changed"
			}
			fmt.Fprintf(a.out, "epoch %d, %s\n", r.GetEpoch(), what)
			for _, p := range problems {
				printProblem(a.out, p)
			}
			return nil
		},
	})
}

func problemsOf(all []*commonv1.Problem) []capability.Problem {
	problems := make([]capability.Problem, len(all))
	for i, p := range all {
		problems[i] = capability.Problem{
			Severity: capability.Severity(p.GetSeverity()), Code: p.GetCode(), Path: p.GetPath(), Line: int(p.GetLine()),
			Message: p.GetMessage(), Hint: p.GetHint(),
		}
	}
	return problems
}
