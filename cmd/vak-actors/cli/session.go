package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

// sessionView is a session as the program prints it.
type sessionView struct {
	Tenant     string            `json:"tenant"`
	Session    string            `json:"session"`
	Channel    string            `json:"channel"`
	State      string            `json:"state"`
	Epoch      uint64            `json:"epoch"`
	Head       uint64            `json:"head"` // sequence of its last ledger entry
	Misreads   uint64            `json:"misreads"`
	WritePaths []string          `json:"write_paths,omitempty"`
	Parent     string            `json:"parent,omitempty"`      // the session it works for
	ParentTurn string            `json:"parent_turn,omitempty"` // the turn of that
	Created    string            `json:"created"`
	Last       string            `json:"last"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

func viewOf(s *sessionv1.Session) sessionView {
	return sessionView{
		s.GetTenant(), s.GetSessionId(), s.GetChannel(), s.GetState(), s.GetEpoch(), s.GetHead(),
		s.GetMisreads(), s.GetWritePaths(), s.GetWorker().GetParentSessionId(), s.GetWorker().GetParentTurnId(),
		moment(s.GetCreatedMs()), moment(s.GetLastMs()), s.GetAttributes(),
	}
}

func (a *app) session() *cobra.Command {
	return group(&cobra.Command{
		Use:     "session",
		Short:   "Open, list, show and close sessions",
		Example: "  vak-actors session list\n  vak-actors session show my-session",
	}, a.sessionOpen(), a.sessionList(), a.sessionShow(), a.sessionClose())
}

func (a *app) sessionList() *cobra.Command {
	var limit uint32
	var after string
	c := &cobra.Command{
		Use: "list", Short: "List the sessions in order of their ids",
		Example: "  vak-actors session list --limit 1000 --json",
		Args:    arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Session.ListSessions, &sessionv1.ListSessions{Tenant: a.reach.tenant, Limit: limit, After: after})
			if err != nil {
				return err
			}
			return a.printSessions(r)
		},
	}
	c.Flags().Uint32Var(&limit, "limit", 0, "sessions to print, 1 to 1000; default: 100")
	c.Flags().StringVar(&after, "after", "", "print ids after this one")
	return a.reaches(c)
}

func (a *app) printSessions(r *sessionv1.ListSessionsResult) error {
	views := make([]sessionView, len(r.GetSessions()))
	for i, s := range r.GetSessions() {
		views[i] = viewOf(s)
	}
	if a.json {
		return printJSON(a.out, map[string]any{"sessions": views, "next": r.GetNext()})
	}
	rows := [][]string{{"SESSION", "STATE", "CHANNEL", "ENTRIES", "LAST"}}
	for _, v := range views {
		rows = append(rows, []string{v.Session, v.State, v.Channel, strconv.FormatUint(v.Head, 10), v.Last})
	}
	table(a.out, rows)
	if r.GetNext() != "" {
		fmt.Fprintf(a.out, "more: --after %s\n", r.GetNext())
	}
	return nil
}

func (a *app) sessionShow() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "show SESSION", Short: "Describe one session", Example: "  vak-actors session show my-session --json",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Session.GetSession, &sessionv1.GetSession{Tenant: a.reach.tenant, SessionId: args[0]})
			if err != nil {
				return err
			}
			v := viewOf(r.GetSession())
			if a.json {
				return printJSON(a.out, v)
			}
			rows := [][]string{
				{"session", v.Session},
				{"tenant", v.Tenant},
				{"state", v.State},
				{"channel", v.Channel},
				{"epoch", strconv.FormatUint(v.Epoch, 10)},
				{"entries", strconv.FormatUint(v.Head, 10)},
				{"misreads", strconv.FormatUint(v.Misreads, 10)},
				{"created", v.Created},
				{"last", v.Last},
			}
			if len(v.WritePaths) > 0 {
				rows = append(rows, []string{"writes", strings.Join(v.WritePaths, ", ")})
			}
			if v.Parent != "" {
				rows = append(rows, []string{"works for", "turn " + v.ParentTurn + " of " + v.Parent})
			}
			table(a.out, rows)
			return nil
		},
	})
}

func (a *app) sessionOpen() *cobra.Command {
	m := &sessionv1.OpenSession{}
	c := &cobra.Command{
		Use: "open [SESSION]", Short: "Open a session, or find it, and print its id",
		Example: "  vak-actors session open --write-path docs --write-path CHANGELOG.md",
		Args:    arguments(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			m.Tenant = a.reach.tenant
			if len(args) > 0 {
				m.SessionId = args[0]
			}
			r, err := api.Call(c.Context(), l.Session.OpenSession, m)
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, viewOf(r.GetSession()))
			}
			fmt.Fprintln(a.out, clean(r.GetSession().GetSessionId()))
			return nil
		},
	}
	c.Flags().StringVar(&m.Channel, "channel", "", "channel whose policy applies; default: api")
	writePaths(c.Flags(), &m.WritePaths)
	return a.reaches(c)
}

func (a *app) sessionClose() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "close SESSION", Short: "End a session for good; its ledger stays", Example: "  vak-actors session close my-session",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			if _, err = api.Call(c.Context(), l.Session.CloseSession, &sessionv1.CloseSession{Tenant: a.reach.tenant, SessionId: args[0]}); err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]string{"closed": args[0]})
			}
			fmt.Fprintf(a.out, "closed %s\n", clean(args[0]))
			return nil
		},
	})
}
