// Package realparts hands tests the real programs they run against: a node, the MCP Inspector, published MCP servers.
//
// A test that needs one asks for it with Require. Where the part is not installed, a person sees a line that says what
// was not run and how to run it; .ci/run sets VAK_REQUIRE_REAL=1, and there a missing part fails the test. No test of this
// project is skipped, because a skip looks like a success.
package realparts

import (
	"os"
	"testing"
)

// The parts, by the environment variable that holds the absolute path of each.
const (
	Node             = "VAK_NODE"              // the node program, version 22 or later
	Inspector        = "VAK_INSPECTOR"         // the Inspector's command-line script, run with Node
	ServerEverything = "VAK_SERVER_EVERYTHING" // the script of @modelcontextprotocol/server-everything, run with Node
	ServerFilesystem = "VAK_SERVER_FILESYSTEM" // the script of @modelcontextprotocol/server-filesystem, run with Node
	TypeScriptSDK    = "VAK_TYPESCRIPT_SDK"    // the folder of @modelcontextprotocol/sdk
	TypeScriptClient = "VAK_TYPESCRIPT_CLIENT" // the folder of @modelcontextprotocol/client
	Shared           = "VAK_SHARED"            // a folder of real workspaces and catalogs
)

// requireAll makes a missing part a failure.
const requireAll = "VAK_REQUIRE_REAL"

// Require returns the path of the part named by one of the constants above. Where it is missing Require fails the test
// under VAK_REQUIRE_REAL=1, and otherwise logs that the test was not run and returns "": the caller returns at once.
func Require(t testing.TB, name string) string {
	t.Helper()
	path := os.Getenv(name)
	why := name + " is not set"
	if path != "" {
		_, err := os.Stat(path)
		if err == nil {
			return path
		}
		why = name + " names a path that does not exist: " + path
	}
	if os.Getenv(requireAll) == "1" {
		t.Fatalf("%s: a real part is missing", why)
	}
	t.Logf("not run: %s; .ci/run installs the real parts and runs this", why)
	return ""
}
