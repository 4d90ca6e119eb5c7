// Package cli runs the program as its users do: testdata/*.txtar are scripts of verbs with their output and exit codes.
// The program is this test binary, started again under its name, so that a script needs no build.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/vak-actors/vak-actors/cmd/vak-actors/cli"
	"github.com/vak-actors/vak-actors/tests/faultserver/faulttest"
)

// exitLeak is what the program exits with in scripts when goroutines outlive Main.
const exitLeak = 99

func TestMain(m *testing.M) {
	testscript.Main(cleaning{m}, map[string]func(){"vak-actors": program})
}

type cleaning struct{ m *testing.M }

func (c cleaning) Run() int {
	defer faulttest.Cleanup()
	return c.m.Run()
}

// program is the program, and the check that nothing of it goes on running.
func program() {
	code := cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = exitLeak
	}
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	faultserver, _ := faulttest.Command(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("FAULTSERVER", faultserver)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else every verb under the race detector ends a second late
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "freeport": freePort, "replace": replace, "approval": approval,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits CODE PROGRAM ARGS...: runs a program that must end with this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	got := 0
	var failed interface{ ExitCode() int }
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// freeport NAME: sets a variable to a port that nobody listens on.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Check(l.Close())
}

// approval NAME: sets a variable to the id of the only approval that the last output, a list as JSON, holds.
func approval(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: approval NAME")
	}
	var list struct {
		Approvals []struct{ ID string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list.Approvals) != 1 {
		ts.Fatalf("%d approvals wait", len(list.Approvals))
	}
	ts.Setenv(args[0], list.Approvals[0].ID)
}

// replace FILE OLD NEW: replaces the first OLD, which must be there.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}
