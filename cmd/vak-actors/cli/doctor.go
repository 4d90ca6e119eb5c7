package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) doctor() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong, why, and what to do",
		Long: `Diagnoses, and changes nothing: what models are told they must do without, problems of files, servers whose last
attempt failed, parts that are being restarted. --json prints the same value as report. Exit code 0: healthy; 1: findings;
2: could not run.`,
		Example: `  vak-actors doctor
  vak-actors doctor --wait 10s   # once the daemon is ready`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
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
