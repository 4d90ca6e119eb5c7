package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/api"
)

// The exit codes of preflight, the worse the greater.
const (
	preflightGo      = 0
	preflightRetry   = 10
	preflightPerson  = 11
	preflightUnknown = 12
)

// preflightRow is what preflight says of one capability.
type preflightRow struct {
	ID     string `json:"id"`
	Answer string `json:"answer"` // go, retry, person or unknown
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	Digest string `json:"digest,omitempty"`
}

func (a *app) preflight() *cobra.Command {
	var pinned []string
	c := &cobra.Command{
		Use:   "preflight ID...",
		Short: "Are these usable now? For scripts that are about to rely on them",
		Long: `Answers from what is known: nothing is started, probed or changed. With --pin the capability must also be what it was.
Exit code 0: go; 10: retry later; 11: a person must act; 12: unknown. Of several the worst counts.`,
		Example: `  vak-actors preflight mcp:github skill:release
  vak-actors preflight mcp:github --pin mcp:github=5d41402abc4b2a76`,
		Args: arguments(1, -1),
		RunE: func(c *cobra.Command, args []string) error {
			pins, err := pinsOf(pinned)
			if err != nil {
				return err
			}
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			answer, err := api.Call(c.Context(), l.Registry.GetReport, &registryv1.GetReport{Tenant: a.reach.tenant})
			if err != nil {
				return err
			}
			report, err := parseReport(answer.GetReportJson())
			if err != nil {
				return err
			}
			rows, status := judge(report, args, pins)
			if a.json {
				err = printJSON(a.out, map[string]any{"capabilities": rows})
			} else {
				printPreflight(a, rows)
			}
			if err == nil && status != preflightGo {
				return exit{status: status}
			}
			return err
		},
	}
	c.Flags().StringArrayVar(&pinned, "pin", nil, "ID=DIGEST: the capability must have this digest, or one that begins so; repeatable")
	return a.reaches(c)
}

func printPreflight(a *app, rows []preflightRow) {
	for _, r := range rows {
		fmt.Fprintf(a.out, "%s %s\n", r.Answer, clean(r.ID))
		if r.Reason != "" {
			fmt.Fprintf(a.out, "  %s\n", clean(r.Reason))
		}
		if r.Remedy != "" {
			fmt.Fprintf(a.out, "  hint: %s\n", clean(r.Remedy))
		}
	}
}

// shortestPin is how many digits of a digest tell versions apart.
const shortestPin = 8

func pinsOf(texts []string) (map[string]string, error) {
	pins := map[string]string{}
	for _, text := range texts {
		id, digest, found := strings.Cut(text, "=")
		if !found || len(digest) < shortestPin {
			return nil, misused("write ID=DIGEST with at least 8 digits of a digest that preflight --json prints", "--pin %q is no ID=DIGEST", text)
		}
		pins[id] = digest
	}
	return pins, nil
}

// judge answers for each id; the status is the worst answer's.
func judge(report capability.Report, ids []string, pins map[string]string) ([]preflightRow, int) {
	rows := make([]preflightRow, 0, len(ids))
	worst := preflightGo
	add := func(r preflightRow, status int) {
		rows, worst = append(rows, r), max(worst, status)
	}
	for _, text := range ids {
		id, err := capability.ParseID(text)
		row, found := find(report, id)
		switch {
		case !found && id.Kind == capability.KindMCP && strings.Contains(id.Name, "/"):
			server, _, _ := strings.Cut(id.Name, "/")
			add(preflightRow{ID: text, Answer: "unknown", Reason: "it is a tool of a server, which has no standing of its own", Remedy: "ask for the server: mcp:" + server}, preflightUnknown)
		case err != nil || !found:
			add(preflightRow{ID: text, Answer: "unknown", Reason: "nothing of that id is declared", Remedy: "see what is: vak-actors report"}, preflightUnknown)
		case !row.Usable:
			add(preflightRow{text, "person", row.Status, row.Remedy, row.Digest}, preflightPerson)
		case pins[text] != "" && !strings.HasPrefix(row.Digest, pins[text]):
			add(preflightRow{text, "person", "it is not what it was: its digest is " + row.Digest, "look at what changed, then pin the new digest", row.Digest}, preflightPerson)
		case row.Reason != "":
			add(preflightRow{text, "retry", row.Status, row.Remedy, row.Digest}, preflightRetry)
		default:
			add(preflightRow{ID: text, Answer: "go", Digest: row.Digest}, preflightGo)
		}
	}
	return rows, worst
}

func find(report capability.Report, id capability.ID) (capability.Row, bool) {
	for _, row := range report.Capabilities {
		if row.ID == id.String() {
			return row, true
		}
	}
	return capability.Row{}, false
}
