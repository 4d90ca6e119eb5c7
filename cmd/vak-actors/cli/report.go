package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func (a *app) report() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use:   "report",
		Short: "List every capability and whether it can be used now",
		Long: `Prints the one report value that the model's standing section and doctor show, too: every capability with origin,
standing, reason and remedy. --json prints it whole.`,
		Example: `  vak-actors report
  vak-actors report --json | jq '.capabilities[] | select(.usable | not)'`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			raw, _, err := a.getReport(c)
			if err != nil {
				return err
			}
			return a.printReport(raw)
		},
	})
}

// getReport asks for the report of the tenant.
func (a *app) getReport(c *cobra.Command) (raw json.RawMessage, healthy bool, err error) {
	l, err := a.open(c.Context())
	if err != nil {
		return nil, false, err
	}
	defer l.close()
	result, err := api.Call(c.Context(), l.Registry.GetReport, &registryv1.GetReport{Tenant: a.reach.tenant})
	if err != nil {
		return nil, false, err
	}
	return result.GetReportJson(), result.GetHealthy(), nil
}

func parseReport(raw []byte) (capability.Report, error) {
	var r capability.Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, vakerr.New(vakerr.InvalidRequest, "the daemon's report cannot be read").
			WithRemedy("see that this program and the daemon are of one version").WithCause(err)
	}
	return r, nil
}

func (a *app) printReport(raw json.RawMessage) error {
	if a.json {
		return a.printRaw(raw)
	}
	r, err := parseReport(raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "tenant %s, %s\n", r.Tenant, r.Summary)
	rows := [][]string{{"ID", "ORIGIN", "SERVES", "STATUS"}}
	for _, row := range r.Capabilities {
		rows = append(rows, []string{row.ID, row.Origin, domains(row.Serves), row.Status + deliveries(row.Deliveries)})
	}
	table(a.out, rows)
	if r.Asking > 0 {
		fmt.Fprintf(a.out, "%s for an approval: see `vak-actors approvals list`\n", waiting(r.Asking))
	}
	if n := len(r.Findings()); n > 0 {
		fmt.Fprintf(a.out, "%s: see `vak-actors doctor`\n", count(n, "finding"))
	}
	return nil
}

// deliveries tells how often a hook was asked, and how often it blocked or failed.
func deliveries(d *capability.Deliveries) string {
	if d == nil {
		return ""
	}
	text := "; asked " + count(int(d.Asked), "time")
	if d.Blocked > 0 {
		text += fmt.Sprintf(", blocked %d", d.Blocked)
	}
	if d.Failed > 0 {
		text += fmt.Sprintf(", failed %d", d.Failed)
	}
	return text
}

func waiting(calls int) string {
	if calls == 1 {
		return "1 call waits"
	}
	return fmt.Sprintf("%d calls wait", calls)
}

// printRaw prints a JSON text of the daemon, indented.
func (a *app) printRaw(raw json.RawMessage) error {
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", "  "); err != nil {
		return vakerr.New(vakerr.InvalidRequest, "the daemon's answer is no JSON").WithCause(err)
	}
	text.WriteByte('\n')
	_, err := text.WriteTo(a.out)
	return err
}

func domains(all []capability.Domain) string {
	if len(all) == 0 {
		return "-"
	}
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = string(d)
	}
	return strings.Join(words, ",")
}
