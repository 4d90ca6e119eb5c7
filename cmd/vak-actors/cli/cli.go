package cli

import (
	"context"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// app is one run of the program: its streams, and the flags that several verbs share.
type app struct {
	in   io.Reader
	out  io.Writer // answers
	errs io.Writer // errors, hints and the log

	workspace string
	json      bool
	verbose   bool
	reach     reach
}

// Main runs the program with the arguments behind its name and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the program at once
	a := &app{in: in, out: out, errs: errs}
	root := a.root()
	root.SetArgs(args)
	return a.status(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "vak-actors",
		Short: "Own what AI agents can do: tools, skills, MCP servers, hooks and commands of a workspace",
		Long: `vak-actors serves the capabilities that a workspace declares to agents with long sessions, and keeps them
current: a change on disk is there at the next turn, a revocation at the next call, and nothing needs a restart.`,
		Example: `  vak-actors serve --workspace .
  vak-actors check
  vak-actors call read '{"path":"README.md"}'`,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.workspace, "workspace", ".", "folder that declares the capabilities")
	flags.BoolVar(&a.json, "json", false, "print JSON, for scripts")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens to stderr")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	root.SetFlagErrorFunc(flagError)
	group(root, a.serve(), a.mcp(), a.check(), a.report(), a.doctor(), a.call(), a.find(), a.session(), a.ledger(),
		a.revoke(), a.restore(), a.reload(), a.servers(), a.approvals(), a.imports(), a.trust(), a.pins(), a.preflight(), a.surface(), a.plugin(), a.config(), a.version())
	return root
}

// group adds verbs below a command that does nothing by itself.
func group(parent *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	parent.AddCommand(verbs...)
	parent.Args = cobra.ArbitraryArgs
	parent.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownVerb(c, args[0])
		}
		return c.Help()
	}
	return parent
}

// logger writes to stderr: everything with -v, else from the given level on.
func (a *app) logger(from slog.Level) *slog.Logger {
	if a.verbose {
		from = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.errs, &slog.HandlerOptions{Level: from}))
}
