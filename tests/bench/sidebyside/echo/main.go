// Command echo is an MCP server with two equal tools, one of which declares that it changes nothing. It speaks over its pipes,
// or with -http over Streamable HTTP, by the same library in both cases.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	address := flag.String("http", "", "serve Streamable HTTP on this address")
	flag.Parse()
	s := server.NewMCPServer("echo", "1", server.WithToolCapabilities(false))
	answer := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	}
	s.AddTool(mcp.NewTool("read", mcp.WithString("text"), mcp.WithReadOnlyHintAnnotation(true)), answer)
	s.AddTool(mcp.NewTool("write", mcp.WithString("text"), mcp.WithReadOnlyHintAnnotation(false)), answer)
	if *address == "" {
		log.Fatal(server.ServeStdio(s))
	}
	log.Fatal(server.NewStreamableHTTPServer(s).Start(*address))
}
