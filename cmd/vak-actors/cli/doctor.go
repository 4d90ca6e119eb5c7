package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/api"
)

func (a *app) doctor() *cobra.Command {
	var fix bool
	c := a.reaches(&cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong, why, and what to do",
		Long: `Diagnoses, and without --fix changes nothing: what models are told they must do without, problems of files, servers whose last
attempt failed, parts that are being restarted. --json prints the same value as report. --fix mends
first what needs no judgement: a skill.md is renamed to SKILL.md, the program of a hook made executable. Exit code 0: healthy; 1: findings;
2: could not run.`,
		Example: `  vak-actors doctor
  vak-actors doctor --wait 10s   # once the daemon is ready`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if fix {
				if err := a.mend(c); err != nil {
					return cannotRun(err)
				}
			}
			raw, healthy, err := a.getReport(c)
			if err != nil {
				return cannotRun(err)
			}
			if err := a.printFindings(raw); err != nil {
				return cannotRun(err)
			}
			if !healthy {
				return exit{status: exitFindings}
			}
			return nil
		},
	})
	c.Flags().BoolVar(&fix, "fix", false, "mend what needs no judgement, then diagnose")
	return c
}

// mend repairs the workspace and has a running daemon look at it.
func (a *app) mend(c *cobra.Command) error {
	done, err := host.Repair(host.TrustFile(), a.workspace)
	for _, what := range done {
		fmt.Fprintln(a.errs, "fixed: "+clean(what))
	}
	if err != nil || len(done) == 0 {
		return err
	}
	l, err := a.open(c.Context())
	if err != nil {
		return err
	}
	defer l.close()
	_, err = api.Call(c.Context(), l.Registry.Reload, &registryv1.Reload{Tenant: a.reach.tenant})
	return err
}

func (a *app) printFindings(raw json.RawMessage) error {
	if a.json {
		return a.printRaw(raw)
	}
	r, err := parseReport(raw)
	if err != nil {
		return err
	}
	findings := r.Findings()
	verdict := "ok"
	if len(findings) > 0 {
		verdict = count(len(findings), "finding")
	}
	fmt.Fprintf(a.out, "tenant %s, %s\ncapability health: %s\n", r.Tenant, r.Summary, verdict)
	for _, f := range findings {
		fmt.Fprintf(a.out, "- %s: %s\n", clean(f.Subject), clean(f.Problem))
		if f.Remedy != "" {
			fmt.Fprintf(a.out, "  hint: %s\n", clean(f.Remedy))
		}
	}
	return nil
}
