// Package faulttest builds the fault server once per test process and hands out its command line. A package that uses it
// calls Cleanup from its TestMain.
package faulttest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vak-actors/vak-actors/internal/childproc"
)

const source = "github.com/vak-actors/vak-actors/tests/faultserver"

var (
	once     sync.Once
	folder   string
	binary   string
	errBuild error
)

// Command is the command line of a fault server with the given flags. See the flags of tests/faultserver.
func Command(t testing.TB, flags ...string) (command string, args []string) {
	t.Helper()
	once.Do(build)
	if errBuild != nil {
		t.Fatal(errBuild)
	}
	return binary, flags
}

// Cleanup removes what Command built. It is called once, when all tests have run.
func Cleanup() {
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
}

func build() {
	if folder, errBuild = os.MkdirTemp("", "faultserver"); errBuild != nil {
		return
	}
	binary = filepath.Join(folder, "faultserver")
	r, err := childproc.Run(context.Background(), childproc.Spec{
		Owner: "faulttest", Command: "go", Args: []string{"build", "-o", binary, source}, Env: os.Environ(),
	}, nil)
	if err != nil || r.ExitCode != 0 {
		errBuild = fmt.Errorf("cannot build the fault server: %v, exit %d\n%s", err, r.ExitCode, r.Stderr)
	}
}

// HTTP starts a fault server that speaks Streamable HTTP and returns its URL. It is killed when the test ends.
func HTTP(t testing.TB, flags ...string) (url string) {
	t.Helper()
	command, args := Command(t, append([]string{"-http", "127.0.0.1:0"}, flags...)...)
	p, err := childproc.Start(childproc.Spec{Owner: t.Name(), Command: command, Args: args, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		_ = p.Stdin().Close()
		_ = p.Stdout().Close()
	})
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil {
		t.Fatalf("the fault server did not start: %v\n%s", err, p.StderrTail())
	}
	return strings.TrimSpace(line)
}

// Lines returns the lines of a log the fault server wrote; none if it wrote nothing.
func Lines(t testing.TB, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}
