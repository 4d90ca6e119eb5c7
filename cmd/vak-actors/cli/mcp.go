package cli

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/vak-actors/vak-actors/host"
	"github.com/vak-actors/vak-actors/internal/gateway"
	"github.com/vak-actors/vak-actors/internal/protocol"
)

// sessionVariable is what Claude Code tells the servers it starts about its conversation.
const sessionVariable = "CLAUDE_CODE_SESSION_ID"

// mcpFlags are the flags of mcp alone.
type mcpFlags struct {
	surface    string
	server     string
	writePaths []string
}

func (a *app) mcp() *cobra.Command {
	var f mcpFlags
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Be an MCP server on standard input and output",
		Long: `For clients that start their servers themselves. It attaches to the daemon that serves the workspace, or to --addr;
where there is no daemon it carries the runtime inside, and ends it with its client. The surface "full" lists every known
tool of every server, "search" lists a few tools through which the others are found and called.`,
		Example: `  claude mcp add vak -- vak-actors mcp --workspace .
  vak-actors mcp --addr http://127.0.0.1:7717 --surface search`,
		Args: arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.surface != gateway.SurfaceFull && f.surface != gateway.SurfaceSearch {
				return misused("write full or search", "there is no surface %.40q", f.surface)
			}
			return a.speakMCP(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.surface, "surface", gateway.SurfaceFull, "full or search")
	flags.StringVar(&f.server, "server", "", "the tools of this server only, under their own names")
	writePaths(flags, &f.writePaths)
	return a.reaches(c)
}

func (a *app) speakMCP(ctx context.Context, f mcpFlags) error {
	token, err := a.token()
	if err != nil {
		return err
	}
	client, base, err := a.endpoint(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		return a.carryRuntime(ctx, f)
	}
	defer client.CloseIdleConnections()
	address := base + "/mcp/" + url.PathEscape(cmp.Or(a.reach.tenant, protocol.DefaultTenant))
	if f.server != "" {
		address += "/server/" + url.PathEscape(f.server)
	}
	query := url.Values{"surface": {f.surface}, "write-path": f.writePaths}
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return gateway.Bridge(ctx, a.in, a.out, gateway.BridgeOptions{
		Client: client, URL: address + "?" + query.Encode(), Header: header, Log: a.logger(slog.LevelWarn),
		ClaudeSession: os.Getenv(sessionVariable),
	})
}

// carryRuntime serves the client from a runtime of its own.
func (a *app) carryRuntime(ctx context.Context, f mcpFlags) error {
	h, err := host.Start(ctx, a.hostOptions(true))
	if err != nil {
		return err
	}
	defer a.stop(ctx, h)
	if err := h.Ready(ctx); err != nil {
		return err
	}
	return gateway.ServeStdio(ctx, a.in, a.out, gateway.StdioOptions{
		Door: h.Door(), Version: versionText(), Log: a.logger(slog.LevelWarn), Tenant: a.reach.tenant,
		Surface: f.surface, Server: f.server, WritePaths: f.writePaths, ClaudeSession: os.Getenv(sessionVariable),
	})
}
