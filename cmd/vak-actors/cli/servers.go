package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	poolv1 "github.com/vak-actors/vak-actors/messages/vak/pool/v1"

	"github.com/vak-actors/vak-actors/internal/api"
)

// serverView is a server as the program prints it.
type serverView struct {
	Name         string `json:"name"`
	State        string `json:"state"`
	PID          int64  `json:"pid,omitempty"`
	Started      string `json:"started,omitempty"`
	InFlight     uint32 `json:"in_flight"`
	Tools        int32  `json:"tools"` // of its last catalog; -1 while it is not known
	Failure      string `json:"failure,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Starts       uint32 `json:"starts"`
	Target       string `json:"target"`
	Connections  uint32 `json:"connections"` // beyond the shared one
}

func serverOf(s *poolv1.Server) serverView {
	return serverView{
		s.GetName(), s.GetState(), s.GetPid(), moment(s.GetStartedMs()), s.GetInFlight(), s.GetTools(), s.GetFailure(),
		s.GetRetryAfterMs(), s.GetStarts(), s.GetTarget(), s.GetConnections(),
	}
}

func (a *app) servers() *cobra.Command {
	return group(&cobra.Command{
		Use:     "servers",
		Short:   "List, probe and stop MCP servers, and read their last words",
		Example: "  vak-actors servers list\n  vak-actors servers probe github",
	}, a.serversList(), a.serversProbe(), a.serversStop(), a.serversLogs())
}

func (a *app) serversList() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "list", Short: "List the declared servers and their connections; starts none", Example: "  vak-actors servers list --json",
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Server.ListServers, &poolv1.ListServers{Tenant: a.reach.tenant})
			if err != nil {
				return err
			}
			return a.printServers(r.GetServers())
		},
	})
}

func (a *app) printServers(servers []*poolv1.Server) error {
	views := make([]serverView, len(servers))
	for i, s := range servers {
		views[i] = serverOf(s)
	}
	if a.json {
		return printJSON(a.out, map[string]any{"servers": views})
	}
	rows := [][]string{{"NAME", "STATE", "PID", "TOOLS", "STARTS", "TARGET", "LAST FAILURE"}}
	for _, v := range views {
		rows = append(rows, []string{v.Name, v.State, number(v.PID), toolCount(v.Tools), strconv.Itoa(int(v.Starts)), short(v.Target, 60), failureText(v)})
	}
	table(a.out, rows)
	return nil
}

func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func toolCount(n int32) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(int(n))
}

func failureText(v serverView) string {
	if v.Failure == "" || v.RetryAfterMS == 0 {
		return v.Failure
	}
	return fmt.Sprintf("%s (again in %v)", v.Failure, (time.Duration(v.RetryAfterMS) * time.Millisecond).Round(time.Second))
}

func (a *app) serversProbe() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "probe NAME", Short: "Start a server and list its tools",
		Long: `An operator's demand: starts the server, lists its tools, publishes them, and leaves it running until it is idle.
Without a daemon it is started for the time of the probe, and what was learned stays.`,
		Example: "  vak-actors servers probe github",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Server.ProbeServer, &poolv1.ProbeServer{Tenant: a.reach.tenant, Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{
					"server": serverOf(r.GetServer()), "tools": orEmpty(r.GetTools()), "notes": orEmpty(r.GetNotes()),
				})
			}
			fmt.Fprintf(a.out, "%s: %s, %s\n", clean(args[0]), r.GetServer().GetState(), count(len(r.GetTools()), "tool"))
			for _, tool := range r.GetTools() {
				fmt.Fprintf(a.out, "- %s\n", clean(tool))
			}
			for _, note := range r.GetNotes() {
				fmt.Fprintf(a.out, "note: %s\n", clean(note))
			}
			return nil
		},
	})
}

func (a *app) serversStop() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "stop NAME", Short: "Close a server's connections; the next demand starts it again", Example: "  vak-actors servers stop github",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Server.StopServer, &poolv1.StopServer{Tenant: a.reach.tenant, Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"name": args[0], "was_running": r.GetWasRunning()})
			}
			what := "did not run"
			if r.GetWasRunning() {
				what = "stopped"
			}
			fmt.Fprintf(a.out, "%s %s\n", clean(args[0]), what)
			return nil
		},
	})
}

func (a *app) serversLogs() *cobra.Command {
	return a.reaches(&cobra.Command{
		Use: "logs NAME", Short: "Print the last lines a server wrote to stderr", Example: "  vak-actors servers logs github",
		Args: arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := a.openDaemon(c.Context())
			if err != nil {
				return err
			}
			defer l.close()
			r, err := api.Call(c.Context(), l.Server.GetServerLogs, &poolv1.GetServerLogs{Tenant: a.reach.tenant, Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return printJSON(a.out, map[string]any{"stderr": r.GetStderr(), "junk": orEmpty(r.GetJunk())})
			}
			fmt.Fprint(a.out, clean(r.GetStderr()))
			for _, line := range r.GetJunk() {
				fmt.Fprintf(a.out, "stdout, no message: %s\n", clean(line))
			}
			return nil
		},
	})
}
