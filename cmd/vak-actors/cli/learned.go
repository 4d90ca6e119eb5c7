package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/policy"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// learnedView is a learned rule as the program prints it.
type learnedView struct {
	Rule string `json:"rule"`
	By   string `json:"by,omitempty"`
	At   string `json:"at,omitempty"`
}

func (a *app) approvalsLearned() *cobra.Command {
	c := &cobra.Command{
		Use: "learned", Short: "Print the rules that answers for the workspace left behind, and the file that holds them",
		Long: `Reads the file offline. Each rule allows what it says, letter by letter; rules of deny and ask in [permissions] win. To be
asked again, remove its entry from the file. Exit code 0: the file is clean or not there; 1: it has errors, which are printed.`,
		Example: "  vak-actors approvals learned",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			data, err := a.hostOptions(false).DataFolder()
			if err != nil {
				return cannotRun(err)
			}
			return a.printLearned(host.LearnedPath(data, a.reach.tenant))
		},
	}
	c.Flags().StringVar(&a.reach.tenant, "tenant", "", "tenant whose rules are printed; default: default")
	a.places(c)
	return c
}

func (a *app) printLearned(path string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotRun(vakerr.New(vakerr.FileNotFound, "the learned rules in %s cannot be read", path).
			WithRemedy("make the file readable").WithCause(err))
	}
	rules, problems := policy.ParseLearned(path, text)
	views := make([]learnedView, len(rules))
	rows := [][]string{{"RULE", "BY", "AT"}}
	for i, r := range rules {
		views[i] = learnedView{Rule: r.Rule, By: r.By}
		if !r.At.IsZero() {
			views[i].At = r.At.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{r.Rule, r.By, views[i].At})
	}
	if a.json {
		if err := printJSON(a.out, map[string]any{"file": path, "rules": views, "problems": orEmpty(problems)}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "file: %s\n", clean(path))
		table(a.out, rows)
		for _, p := range problems {
			printProblem(a.out, p)
		}
	}
	for _, p := range problems {
		if p.Severity == capability.SeverityError {
			return exit{status: exitFindings}
		}
	}
	return nil
}
