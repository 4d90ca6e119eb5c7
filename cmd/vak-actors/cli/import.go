package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/importer"
)

type importFlags struct {
	home               string
	dryRun, undo, user bool
}

func (a *app) imports() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import " + strings.Join(importer.Clients(), "|"),
		Short: "Bring the MCP servers of another program's user files into vak.toml",
		Long: `Reads the user-level files of the client in the home folder and adds its servers to the end of the workspace's
vak.toml, or with --user to that of the user's own folder. The client's files are never written. A secret that is written
out there goes into secrets.env of the data folder, with a placeholder in its place. Approvals are shown as proposals and
not taken over; skills and commands are read where they are, and need no import. --undo restores the files byte for byte,
and refuses where one was changed since.`,
		Example: `  vak-actors import claude --dry-run
  vak-actors import codex --user
  vak-actors import codex --user --undo`,
		Args: arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := a.importRequest(f, args[0])
			if err != nil {
				return err
			}
			if f.undo {
				return a.undoImport(r)
			}
			return a.doImport(r, f.dryRun)
		},
	}
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be written, and write nothing")
	c.Flags().BoolVar(&f.undo, "undo", false, "take back the last import of this client")
	c.Flags().BoolVar(&f.user, "user", false, "write the user's own vak.toml, which all workspaces share")
	c.Flags().StringVar(&f.home, "home", "", "home folder that holds the client's files; default: $HOME")
	c.Flags().StringVar(&a.reach.data, "data", "", "folder of the daemon's state; default: one for each workspace below $XDG_STATE_HOME")
	return c
}

func (a *app) importRequest(f importFlags, client string) (r importer.Request, err error) {
	userConfig, home := host.UserFolders()
	if f.home != "" {
		home = f.home
	}
	data := a.reach.data
	if data == "" {
		if data, err = host.DataFolder(a.workspace); err != nil {
			return r, err
		}
	}
	r = importer.Request{Client: client, Home: home, Workspace: a.workspace, Target: a.workspace, Data: data}
	if f.user {
		r.Target = userConfig
	}
	for _, folder := range []*string{&r.Home, &r.Workspace, &r.Target, &r.Data} {
		if *folder == "" {
			return r, misused("set HOME, or name a folder with --home", "there is no home folder")
		}
		if *folder, err = filepath.Abs(*folder); err != nil {
			return r, cannotRun(err)
		}
		if resolved, err := filepath.EvalSymlinks(*folder); err == nil {
			*folder = resolved
		}
	}
	if info, err := os.Stat(r.Workspace); err != nil || !info.IsDir() {
		return r, misused("name an existing folder with --workspace", "the workspace %s is no folder", a.workspace)
	}
	return r, nil
}

func (a *app) doImport(r importer.Request, dryRun bool) error {
	plan, err := importer.Prepare(r, time.Now())
	if err != nil {
		return err
	}
	if !dryRun {
		if err := plan.Apply(); err != nil {
			return err
		}
	}
	if a.json {
		return printJSON(a.out, plan)
	}
	if len(plan.Sources) == 0 {
		fmt.Fprintf(a.out, "no files of %s in %s\n", r.Client, r.Home)
		return nil
	}
	for _, p := range plan.Problems {
		printProblem(a.out, p)
	}
	rows := [][]string{{"SERVER", "ACTION", "FROM", "WHY"}}
	for _, i := range plan.Items {
		why := i.Reason
		if len(i.Secrets) > 0 {
			why = "secrets moved to secrets.env: " + strings.Join(i.Secrets, ", ")
		}
		rows = append(rows, []string{i.Name, string(i.Action), i.From, why})
	}
	table(a.out, rows)
	if plan.Diff != "" {
		fmt.Fprint(a.out, "\n", clean(plan.Diff))
	}
	if len(plan.Proposals) > 0 {
		fmt.Fprintln(a.out, "\nNot taken over, for you to decide (allow in [permissions] of vak.toml):")
		for _, rule := range plan.Proposals {
			fmt.Fprintln(a.out, "  "+clean(rule))
		}
	}
	switch {
	case plan.Diff == "":
		fmt.Fprintln(a.out, "nothing to write")
	case dryRun:
		fmt.Fprintln(a.out, "\nnothing was written")
	default:
		fmt.Fprintf(a.out, "\nwritten; take it back with the same command and --undo\n")
	}
	return nil
}

func (a *app) undoImport(r importer.Request) error {
	names, err := importer.Undo(r)
	if err != nil {
		return err
	}
	if a.json {
		return printJSON(a.out, map[string]any{"restored": orEmpty(names)})
	}
	for _, name := range names {
		fmt.Fprintln(a.out, "restored "+name)
	}
	return nil
}
