package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// The exit codes. A refused request exits with the code of its error's kind, which is 3.
const (
	exitFindings   = 1
	exitCannotRun  = 2
	exitToolFailed = 4
)

// exit is an error that says how the program ends. Where err is nil everything was printed already.
type exit struct {
	status int
	err    error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.status)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// cannotRun is err with the exit code of "could not run"; nil for nil.
func cannotRun(err error) error {
	if err == nil {
		return nil
	}
	return exit{exitCannotRun, err}
}

// misused is a wrong use of the command line.
func misused(remedy, reason string, args ...any) error {
	return cannotRun(vakerr.New(vakerr.InvalidRequest, reason, args...).WithRemedy("%s", remedy))
}

// status prints err and returns the exit code it stands for.
func (a *app) status(err error) int {
	if err == nil {
		return 0
	}
	var end exit
	if errors.As(err, &end) && end.err == nil {
		return end.status
	}
	public := vakerr.From(err)
	if cause := errors.Unwrap(public); cause != nil {
		a.logger(slog.LevelError).Debug("the cause of the error", "cause", cause)
	}
	a.complain(public)
	if end.status != 0 {
		return end.status
	}
	return public.Kind().ExitCode()
}

// complain prints an error as scripts and people expect it.
func (a *app) complain(e *vakerr.Error) {
	fmt.Fprintf(a.errs, "vak-actors: error: %s: %s\n", e.Code, clean(e.Reason))
	if e.Remedy != "" {
		fmt.Fprintf(a.errs, "hint: %s\n", clean(e.Remedy))
	}
}

// flagError names the nearest flag where a flag is not known.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return misused(helpHint(c), "%s", err)
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	name := unknown.GetSpecifiedName()
	if near := config.Nearest(name, known); near != "" && len(name) > 1 {
		return misused("did you mean --"+near+"?", "unknown flag --%s of `%s`", name, c.CommandPath())
	}
	return misused(helpHint(c), "%s of `%s`", err, c.CommandPath())
}

// unknownVerb names the nearest verb of a group.
func unknownVerb(c *cobra.Command, name string) error {
	var known []string
	for _, verb := range c.Commands() {
		if verb.IsAvailableCommand() {
			known = append(known, verb.Name())
		}
	}
	if near := config.Nearest(name, known); near != "" {
		return misused("did you mean `"+c.CommandPath()+" "+near+"`?", "unknown verb %q of `%s`", name, c.CommandPath())
	}
	return misused(helpHint(c), "unknown verb %q of `%s`", name, c.CommandPath())
}

func helpHint(c *cobra.Command) string { return "see `" + c.CommandPath() + " --help`" }

// arguments accepts between least and most arguments; most -1 is any number.
func arguments(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return misused(helpHint(c), "wrong number of arguments: write it as `%s`", c.UseLine())
		}
		return nil
	}
}
