package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/internal/api"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// pinView is a version that waits, as the program prints it.
type pinView struct {
	ID       string       `json:"id"`
	Tool     string       `json:"tool,omitempty"`
	Digest   string       `json:"digest"`
	Approved string       `json:"approved"`
	Rejected bool         `json:"rejected"`
	Changes  []changeView `json:"changes"`
}

type changeView struct {
	Part   string `json:"part"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func (a *app) pins() *cobra.Command {
	c := &cobra.Command{
		Use:   "pins",
		Short: "What differs from what was approved: texts of servers' tools, and what a trusted clone runs",
		Long: `The first text of a tool is its baseline. When its server changes the text, the approved one stays in use and the new
one waits here. Of a cloned workspace that was trusted, servers and hooks that change are held the same way.`,
	}
	return group(c, a.pinsList(), a.pinsShow(), a.pinsDecide("approve", "Let the version that waits be used", true),
		a.pinsDecide("reject", "Turn the version that waits down; it stays held", false))
}

func (a *app) pinsList() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "list", Short: "List what waits", Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := a.waiting(c.Context(), "", "")
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"pins": all})
			}
			rows := make([][]string, 0, len(all))
			for _, p := range all {
				state := "waits"
				if p.Rejected {
					state = "rejected"
				}
				rows = append(rows, []string{p.ID, p.Tool, state, p.Digest[:12], p.parts()})
			}
			table(a.out, rows)
			return nil
		},
	})
}

func (p pinView) parts() string {
	names := make([]string, len(p.Changes))
	for i, c := range p.Changes {
		names[i] = c.Part
	}
	return strings.Join(names, ", ")
}

func (a *app) pinsShow() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "show ID [TOOL]", Short: "Show what would change", Args: arguments(1, 2),
		Example: `  vak-actors pins show mcp:github create_issue`,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := a.oneWaiting(c.Context(), args)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, p)
			}
			fmt.Fprintf(a.out, "%s %s\napproved %s\nwaits    %s\n", p.ID, p.Tool, p.Approved, p.Digest)
			for _, change := range p.Changes {
				fmt.Fprintf(a.out, "\n%s\n", clean(change.Part))
				printSide(a, "- ", change.Before)
				printSide(a, "+ ", change.After)
			}
			return nil
		},
	})
}

// printSide prints one side of a change; what a server wrote cannot steer a terminal.
func printSide(a *app, mark, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(a.out, mark+clean(line))
	}
}

func (a *app) pinsDecide(verb, short string, approve bool) *cobra.Command {
	var digest string
	c := &cobra.Command{
		Use: verb + " ID [TOOL]", Short: short, Args: arguments(1, 2),
		Long:    short + ".\n\nWith --digest only that version is meant: what was read is what is decided. Without, the one that waits now.",
		Example: "  vak-actors pins " + verb + " mcp:github create_issue --digest 3f2a...",
		RunE: func(c *cobra.Command, args []string) error {
			p, err := a.oneWaiting(c.Context(), args)
			if err != nil {
				return err
			}
			if digest != "" && (len(digest) < 8 || !strings.HasPrefix(p.Digest, digest)) {
				return vakerr.New(vakerr.PinMoved, "the version that waits is %s", p.Digest).
					WithRemedy("look at it: vak-actors pins show %s", strings.Join(args, " "))
			}
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Registry.DecidePin, &registryv1.DecidePin{
				Tenant: a.reach.tenant, Id: p.ID, Tool: p.Tool, Digest: p.Digest, Approve: approve,
			})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"id": p.ID, "tool": p.Tool, "digest": p.Digest, "epoch": r.GetEpoch()})
			}
			fmt.Fprintf(a.out, "%s: %s, epoch %d\n", verb, strings.TrimSpace(p.ID+" "+p.Tool), r.GetEpoch())
			return nil
		},
	}
	c.Flags().StringVar(&digest, "digest", "", "the version that was looked at, or at least its first 8 digits")
	return a.reaches(c)
}

// waiting asks for what waits.
func (a *app) waiting(ctx context.Context, id, tool string) ([]pinView, error) {
	l, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	r, err := api.Call(ctx, l.Registry.ListPins, &registryv1.ListPins{Tenant: a.reach.tenant, Id: id, Tool: tool})
	if err != nil {
		return nil, err
	}
	all := make([]pinView, 0, len(r.GetPins()))
	for _, p := range r.GetPins() {
		view := pinView{ID: p.GetId(), Tool: p.GetTool(), Digest: p.GetDigest(), Approved: p.GetApprovedDigest(), Rejected: p.GetRejected()}
		for _, change := range p.GetChanges() {
			view.Changes = append(view.Changes, changeView{change.GetPart(), change.GetBefore(), change.GetAfter()})
		}
		all = append(all, view)
	}
	return all, nil
}

// oneWaiting finds the one that is meant.
func (a *app) oneWaiting(ctx context.Context, args []string) (pinView, error) {
	id, tool := args[0], ""
	if len(args) > 1 {
		tool = args[1]
	} else if strings.HasPrefix(id, "mcp:") {
		id, tool, _ = strings.Cut(id, "/") // as surface prints a tool
	}
	all, err := a.waiting(ctx, id, tool)
	switch {
	case err != nil:
		return pinView{}, err
	case len(all) == 0:
		return pinView{}, vakerr.New(vakerr.PinUnknown, "nothing of %s waits to be approved", strings.Join(args, " ")).
			WithRemedy("see what waits: vak-actors pins list")
	case len(all) > 1:
		return pinView{}, misused("name one of its tools; see vak-actors pins list", "%d versions of %s wait", len(all), args[0])
	}
	return all[0], nil
}
