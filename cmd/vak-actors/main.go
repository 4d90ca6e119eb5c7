// Command vak-actors owns what AI agents can do: it serves a workspace's tools, skills, MCP servers, hooks and commands to
// long sessions and keeps them current. `vak-actors --help` lists its verbs.
package main

import (
	"os"

	"github.com/vak-actors/vak-actors/cmd/vak-actors/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
