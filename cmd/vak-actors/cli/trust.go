package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/config"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func (a *app) trust() *cobra.Command {
	var yes, revoke, follow bool
	c := &cobra.Command{
		Use:   "trust",
		Short: "Trust a cloned workspace: let its servers and hooks run and its rules grant",
		Long: `A workspace in a checkout with a remote is somebody else's work. Until it is trusted its skills and commands can be
used and what it denies holds, but its servers and hooks do not run and its rules grant nothing. trust shows what would
run, and records the trust outside of the workspace. A server or hook that changes afterwards is held until it is approved
(pins); with --follow, changes count as yours and are followed at once.`,
		Example: `  vak-actors trust --workspace ./repo
  vak-actors trust --workspace ./repo --yes --follow
  vak-actors trust --workspace ./repo --revoke`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			file, err := trustFile()
			if err != nil {
				return err
			}
			if revoke {
				if err := host.Distrust(file, a.workspace); err != nil {
					return err
				}
				return a.saidTrust("trust taken back; a running daemon holds its servers and hooks from the next pass on")
			}
			if err := a.consent(yes); err != nil {
				return err
			}
			if err := host.Trust(file, a.workspace, follow); err != nil {
				return err
			}
			return a.saidTrust("trusted; a running daemon uses it from the next pass on")
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&revoke, "revoke", false, "take trust back")
	c.Flags().BoolVar(&follow, "follow", false, "follow changes at once: the workspace is your own work")
	return c
}

func trustFile() (string, error) {
	if file := host.TrustFile(); file != "" {
		return file, nil
	}
	return "", vakerr.New(vakerr.ConfigInvalid, "there is no folder to keep trust in").WithRemedy("set HOME or XDG_STATE_HOME")
}

func (a *app) saidTrust(text string) error {
	if a.json {
		whose, err := host.ProvenanceOf(host.TrustFile(), a.workspace)
		if err != nil {
			return err
		}
		return printJSON(a.out, map[string]any{"workspace": a.workspace, "trusted": whose != host.Cloned})
	}
	fmt.Fprintln(a.out, text)
	return nil
}

// consent shows what would run and asks, unless the person has said yes already.
func (a *app) consent(yes bool) error {
	found, err := a.scan()
	if err != nil {
		return err
	}
	if !a.json {
		for _, line := range wouldRun(found) {
			fmt.Fprintln(a.out, clean(line))
		}
	}
	if yes {
		return nil
	}
	if answer := strings.ToLower(a.ask("Trust this workspace? [y/N] ")); answer != "y" && answer != "yes" {
		return vakerr.New(vakerr.ApprovalRequired, "the workspace is not trusted").WithRemedy("answer y, or use --yes")
	}
	return nil
}

// wouldRun lists every command line, address and granting rule of a workspace, with secrets masked.
func wouldRun(r declare.Result) []string {
	var all []string
	for _, d := range r.Declarations {
		switch c := d.Config.(type) {
		case *capability.Server:
			how := strings.Join(config.MaskArgs(append([]string{c.Command}, c.Args...)), " ")
			if c.URL != "" {
				how = config.MaskURL(c.URL)
			}
			all = append(all, fmt.Sprintf("%s runs on demand: %s   (%s)", d.ID, how, d.Source))
		case *capability.Hook:
			if c.Idle != "" {
				continue
			}
			how := strings.Join(config.MaskArgs(append([]string{c.Command}, c.Args...)), " ")
			if c.URL != "" {
				how = config.MaskURL(c.URL)
			}
			all = append(all, fmt.Sprintf("hook at %s: %s   (%s)", c.Event, how, d.Source))
		}
	}
	for _, p := range r.Permissions {
		for _, rule := range p.Allow {
			all = append(all, fmt.Sprintf("allows without asking: %s   (%s)", rule, p.Source))
		}
	}
	if len(all) == 0 {
		all = append(all, "It declares no server, no hook and no rule that grants anything.")
	}
	return all
}
