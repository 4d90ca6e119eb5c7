package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// reading is what check prints.
type reading struct {
	Capabilities []declared           `json:"capabilities"`
	Problems     []capability.Problem `json:"problems"`
	Shadowed     []capability.Shadow  `json:"shadowed"`
}

// declared is one capability as its file describes it.
type declared struct {
	ID      string              `json:"id"`
	Kind    capability.Kind     `json:"kind"`
	Name    string              `json:"name"`
	Origin  string              `json:"origin"`
	Source  string              `json:"source"`
	Digest  string              `json:"digest"`
	Serves  []capability.Domain `json:"serves"`
	Summary string              `json:"summary"`
}

func (a *app) check() *cobra.Command {
	var strict bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Read a workspace offline: what it declares and what is wrong with it",
		Long: `Reads the files of a workspace and lists the capabilities they declare and every problem with path, line, code and
hint. Nothing is started and no daemon is asked; the user's own folder and plugins are not read (report shows them). Exit code 0: clean; 1: errors (with --strict: also warnings); 2: the
workspace could not be read.`,
		Example: `  vak-actors check --workspace examples/workspace
  vak-actors check --strict --json`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			r, err := a.read()
			if err != nil {
				return cannotRun(err)
			}
			if err := a.printReading(r); err != nil {
				return err
			}
			for _, p := range r.Problems {
				if strict || p.Severity == capability.SeverityError {
					return exit{status: exitFindings}
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "warnings count as errors")
	return c
}

// scan reads the files of the workspace once.
func (a *app) scan() (declare.Result, error) {
	folder, err := filepath.Abs(a.workspace)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(folder)
	}
	if err != nil {
		return declare.Result{}, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace folder %s cannot be opened", a.workspace).
			WithRemedy("name an existing folder with --workspace").WithCause(err)
	}
	defer root.Close()
	return declare.NewScanner(declare.Options{}).Scan(rootfs.FS(folder, root), time.Now())
}

// read is what check says of the workspace.
func (a *app) read() (reading, error) {
	found, err := a.scan()
	if err != nil {
		return reading{}, err
	}
	r := reading{Capabilities: make([]declared, len(found.Declarations)), Problems: orEmpty(found.Problems), Shadowed: orEmpty(found.Shadowed)}
	for i, d := range found.Declarations {
		r.Capabilities[i] = declared{
			ID: d.ID.String(), Kind: d.ID.Kind, Name: d.ID.Name, Origin: d.Origin.Label(), Source: d.Source,
			Digest: d.Digest, Serves: orEmpty([]capability.Domain(d.Serves)), Summary: d.Summary,
		}
	}
	return r, nil
}

func (a *app) printReading(r reading) error {
	if a.json {
		return printJSON(a.out, r)
	}
	rows := make([][]string, 0, len(r.Capabilities))
	for _, c := range r.Capabilities {
		rows = append(rows, []string{c.ID, c.Source, short(c.Summary, 80)})
	}
	table(a.out, rows)
	if len(rows) > 0 {
		fmt.Fprintln(a.out)
	}
	for _, p := range r.Problems {
		printProblem(a.out, p)
	}
	fmt.Fprintf(a.out, "%s, %s\n", count(len(r.Capabilities), "capability"), count(len(r.Problems), "problem"))
	return nil
}
