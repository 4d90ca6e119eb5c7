package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	registryv1 "github.com/vak-actors/vak-actors/messages/vak/registry/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/api"
)

// firstLook is how long the block that serve prints waits for the first epoch.
const firstLook = 10 * time.Second

// mostProblems is how many problems serve prints of a tenant; doctor prints all.
const mostProblems = 8

func (a *app) serve() *cobra.Command {
	var listen string
	var trusts bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a workspace: the daemon",
		Long: `Serves a workspace to MCP clients at /mcp, to agent loops by the Connect API, and to the other verbs of this program
by a unix socket in the data folder. Without a configuration it serves the folder as tenant "default". SIGINT and SIGTERM
stop it in order.

Beyond loopback a token is required: --token-file, or token_file of [auth] in vak.toml.`,
		Example: `  vak-actors serve --workspace examples/workspace
  vak-actors serve --workspace ./cloned-repo --trust
  vak-actors serve --listen 0.0.0.0:7717 --token-file token`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.trustFirst(trusts); err != nil {
				return err
			}
			return a.runDaemon(c.Context(), listen)
		},
	}
	c.Flags().StringVar(&listen, "listen", "", "address to listen on; default: listen of vak.toml, or 127.0.0.1:7717; port 0 takes any free one")
	c.Flags().StringVar(&a.reach.tokenFile, "token-file", "", "file that holds the bearer token; default: token_file of [auth]")
	c.Flags().BoolVar(&trusts, "trust", false, "trust the workspace, if it is a clone of somebody's repository; see the verb trust")
	a.places(c)
	return c
}

// trustFirst records the trust of the person who typed --trust. What is trusted already stays as it is.
func (a *app) trustFirst(trusts bool) error {
	if whose, _ := host.ProvenanceOf(host.TrustFile(), a.workspace); !trusts || whose != host.Cloned {
		return nil
	}
	file, err := trustFile()
	if err != nil {
		return err
	}
	return host.Trust(file, a.workspace, false)
}

func (a *app) runDaemon(ctx context.Context, listen string) error {
	h, err := host.Start(ctx, a.hostOptions(true))
	if err != nil {
		return err
	}
	defer a.stop(ctx, h)
	return h.Serve(ctx, host.ServeOptions{
		Listen: listen, TokenFile: a.reach.tokenFile,
		Listening: func(ctx context.Context, at host.Endpoints) { a.announce(ctx, h, at) },
	})
}

// announcement is what serve --json prints once requests are answered.
type announcement struct {
	Listen    string              `json:"listen"`
	MCP       string              `json:"mcp"`
	Socket    string              `json:"socket"`
	Token     bool                `json:"token"` // clients over HTTP need the token
	Workspace string              `json:"workspace"`
	Version   string              `json:"version"`
	Reports   []capability.Report `json:"reports"`
}

// announce prints where the daemon answers, what it serves, and how to attach.
func (a *app) announce(ctx context.Context, h *host.Host, at host.Endpoints) {
	look, done := context.WithTimeout(ctx, firstLook)
	defer done()
	_ = h.Ready(look) // without an epoch the report says why
	folder, err := filepath.Abs(a.workspace)
	if err != nil {
		folder = a.workspace
	}
	n := announcement{Listen: at.URL, MCP: at.URL + "/mcp", Socket: at.Socket, Token: at.Token, Workspace: folder, Version: versionText()}
	client := inside(h)
	for _, tenant := range h.Tenants() {
		result, err := api.Call(ctx, client.Registry.GetReport, &registryv1.GetReport{Tenant: tenant})
		if err != nil {
			continue // the daemon is stopping
		}
		if r, err := parseReport(result.GetReportJson()); err == nil {
			n.Reports = append(n.Reports, r)
		}
	}
	if a.json {
		_ = printJSON(a.out, n)
		return
	}
	n.print(a.out)
}

func (n announcement) print(w io.Writer) {
	fmt.Fprintf(w, "vak-actors %s\n", n.Version)
	rows := [][]string{
		{"  workspace", n.Workspace}, {"  listen", n.Listen}, {"  mcp", n.MCP}, {"  socket", n.Socket},
	}
	for _, r := range n.Reports {
		rows = append(rows, []string{"  tenant " + r.Tenant, r.Summary})
	}
	table(w, rows)
	for _, r := range n.Reports {
		findings := r.Findings()
		for _, f := range findings[:min(len(findings), mostProblems)] {
			fmt.Fprintf(w, "  problem: %s: %s\n", clean(f.Subject), clean(f.Problem))
		}
		if more := len(findings) - mostProblems; more > 0 {
			fmt.Fprintf(w, "  and %s more: see doctor\n", count(more, "problem"))
		}
	}
	folder := n.Workspace
	if strings.ContainsAny(folder, " '\"$&;()<>|*?`\\") {
		folder = "'" + strings.ReplaceAll(folder, "'", `'\''`) + "'"
	}
	var header string
	if n.Token {
		header = ` --header "Authorization: Bearer TOKEN"`
	}
	fmt.Fprintf(w, "attach a client:\n  claude mcp add --transport http vak %s%s\n  vak-actors mcp --workspace %s   (over stdio)\n", n.MCP, header, folder)
	fmt.Fprintln(w, "what is wrong and what to do:\n  vak-actors doctor --workspace "+folder)
}
