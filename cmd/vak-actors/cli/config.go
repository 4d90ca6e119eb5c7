package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func (a *app) config() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration and where each value comes from",
		Long: `Reads vak.toml offline and prints every setting as it is in force, with its source: default, or the file and line.
Values that are secrets are masked. Exit code 0: the file is clean or not there; 1: it has errors, which are printed.`,
		Example: "  vak-actors config\n  vak-actors config --json | jq '.settings[] | select(.source != \"default\")'",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			path, text, err := a.configText()
			if err != nil {
				return cannotRun(err)
			}
			c, problems := config.Parse(path, text)
			if err := a.printSettings(c.Effective(), problems); err != nil {
				return err
			}
			for _, p := range problems {
				if p.Severity == capability.SeverityError {
					return exit{status: exitFindings}
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&a.reach.config, "config", "", "configuration file; default: vak.toml of the workspace")
	return c
}

// configText is the text of the configuration; a workspace may have none.
func (a *app) configText() (shown string, text []byte, err error) {
	path, shown := a.reach.config, a.reach.config
	if path == "" {
		path, shown = filepath.Join(a.workspace, "vak.toml"), "vak.toml"
	}
	text, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && a.reach.config == "" {
		if info, err := os.Stat(a.workspace); err != nil || !info.IsDir() {
			return "", nil, vakerr.New(vakerr.WorkspaceUnreadable, "the workspace folder %s cannot be opened", a.workspace).
				WithRemedy("name an existing folder with --workspace").WithCause(err)
		}
		return shown, nil, nil
	}
	if err != nil {
		return "", nil, vakerr.New(vakerr.ConfigInvalid, "the configuration %s cannot be read", path).
			WithRemedy("check --config, and that the file is readable").WithCause(err)
	}
	return shown, text, nil
}

func (a *app) printSettings(settings []config.Setting, problems []capability.Problem) error {
	if a.json {
		return printJSON(a.out, map[string]any{"settings": orEmpty(settings), "problems": orEmpty(problems)})
	}
	rows := [][]string{{"KEY", "VALUE", "SOURCE"}}
	for _, s := range settings {
		rows = append(rows, []string{s.Key, s.Value, s.Source})
	}
	table(a.out, rows)
	for _, p := range problems {
		printProblem(a.out, p)
	}
	return nil
}
