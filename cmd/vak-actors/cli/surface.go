package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// lockName is the lock file in a workspace, lockHead its first line.
const (
	lockName = "vak.lock"
	lockHead = "# The governed surface, written by vak-actors surface lock. Compare: vak-actors surface check"
	maxLock  = 64 << 20 // bytes
)

func (a *app) surface() *cobra.Command {
	c := &cobra.Command{
		Use:   "surface",
		Short: "Write down what may be used, and compare later",
		Long: `The surface is what may be used now, a line each with a digest of what it is to its user: descriptions, schemas, bodies,
what runs, and the tools that were seen of servers. Two machines that govern the same write the same file.`,
	}
	return group(c, a.surfaceLock(), a.surfaceCheck())
}

func (a *app) surfaceLock() *cobra.Command {
	var channel string
	c := &cobra.Command{
		Use: "lock [FILE]", Short: "Write the surface to a file; default: " + lockName + " in the workspace", Args: arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			now, err := a.surfaceNow(c.Context(), channel)
			if err != nil {
				return cannotRun(err)
			}
			file := a.lockFile(args)
			if err := os.WriteFile(file, []byte(lockHead+"\n"+now), 0o644); err != nil {
				return cannotRun(vakerr.New(vakerr.FileNotFound, "the file %s cannot be written", file).WithRemedy("name another file").WithCause(err))
			}
			if a.json {
				return printJSON(a.out, map[string]any{"file": file, "lines": strings.Count(now, "\n")})
			}
			fmt.Fprintf(a.out, "wrote %s: %d lines\n", file, strings.Count(now, "\n"))
			return nil
		},
	}
	c.Flags().StringVar(&channel, "channel", "", "channel whose policy applies; default: api")
	return a.reaches(c)
}

func (a *app) surfaceCheck() *cobra.Command {
	var channel string
	c := &cobra.Command{
		Use: "check [FILE]", Short: "Compare the surface with a file", Args: arguments(0, 1),
		Long: "Compares the surface with a file that surface lock wrote. Exit code 0: the same; 1: it differs; 2: could not run.",
		RunE: func(c *cobra.Command, args []string) error {
			locked, err := readLock(a.lockFile(args))
			if err != nil {
				return cannotRun(err)
			}
			now, err := a.surfaceNow(c.Context(), channel)
			if err != nil {
				return cannotRun(err)
			}
			d := drift(locked, now)
			if a.json {
				err = printJSON(a.out, d)
			} else {
				d.print(a.out)
			}
			if err == nil && !d.Clean {
				return exit{status: exitFindings}
			}
			return err
		},
	}
	c.Flags().StringVar(&channel, "channel", "", "channel whose policy applies; default: api")
	return a.reaches(c)
}

func (a *app) lockFile(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return filepath.Join(a.workspace, lockName)
}

func (a *app) surfaceNow(ctx context.Context, channel string) (string, error) {
	l, err := a.open(ctx)
	if err != nil {
		return "", err
	}
	defer l.close()
	r, err := api.Call(ctx, l.Registry.GetSurface, &registryv1.GetSurface{Tenant: a.reach.tenant, Channel: channel})
	if err != nil {
		return "", err
	}
	return r.GetSurface(), nil
}

func readLock(file string) (string, error) {
	missing := func(err error) error {
		return vakerr.New(vakerr.FileNotFound, "the lock file %s cannot be read", file).WithRemedy("write it first: vak-actors surface lock").WithCause(err)
	}
	text, err := rootfs.ReadFile(file, maxLock)
	if err != nil {
		return "", missing(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	if head != lockHead {
		return "", vakerr.New(vakerr.InvalidRequest, "%s is no file of surface lock", file).WithRemedy("write it anew: vak-actors surface lock")
	}
	return rest, nil
}

// drifted is how two surfaces differ, by the names on their lines.
type drifted struct {
	Clean   bool     `json:"clean"`
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
}

func drift(locked, now string) drifted {
	before, after := lines(locked), lines(now)
	d := drifted{Added: []string{}, Removed: []string{}, Changed: []string{}}
	for name, digest := range after {
		switch was, known := before[name]; {
		case !known:
			d.Added = append(d.Added, name)
		case was != digest:
			d.Changed = append(d.Changed, name)
		}
	}
	for name := range before {
		if _, still := after[name]; !still {
			d.Removed = append(d.Removed, name)
		}
	}
	for _, list := range [][]string{d.Added, d.Removed, d.Changed} {
		slices.Sort(list)
	}
	d.Clean = len(d.Added)+len(d.Removed)+len(d.Changed) == 0
	return d
}

// lines maps names to digests; the digest is the last word of a line.
func lines(surface string) map[string]string {
	all := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(surface)); s.Scan(); {
		if i := strings.LastIndexByte(s.Text(), ' '); i > 0 {
			all[s.Text()[:i]] = s.Text()[i+1:]
		}
	}
	return all
}

func (d drifted) print(w io.Writer) {
	if d.Clean {
		fmt.Fprintln(w, "the surface is as it was")
	}
	printDrift(w, "added", d.Added)
	printDrift(w, "removed", d.Removed)
	printDrift(w, "changed", d.Changed)
}

func printDrift(w io.Writer, mark string, names []string) {
	for _, name := range names {
		fmt.Fprintf(w, "%s %s\n", mark, clean(name))
	}
}
