// Command faultserver is an MCP server for tests. Without flags it behaves; each flag adds one misbehaviour of servers seen
// in the field. It speaks raw newline-delimited JSON-RPC over stdio, or Streamable HTTP with -http, and uses no MCP library,
// so that it can break every rule a library keeps.
//
// Nothing here is shared with the code under test. Package faulttest builds and starts it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the flags; see define for what each does.
type options struct {
	// Before the protocol.
	banner     int
	junk       bool
	exitNow    int
	slowStart  time.Duration
	deaf       bool
	grandchild bool
	startLog   string

	// The handshake.
	protocol       string
	modern         bool
	ask, askOnCall string
	features       bool

	// Any message.
	muteOn, dieOn, errorOn, deafOn string
	stderrFlood                    int
	garbage                        bool
	stringIDs                      bool
	idLast                         bool

	// The catalog.
	tools, page  int
	repeatCursor bool
	schema       string
	duplicate    bool
	catalogFile  string
	leakEnv      string

	// Calls.
	exitAfter         int
	callLog           string
	listChangedAfter  time.Duration
	listChangedOnCall bool
	listChangedStorm  int

	// HTTP.
	http             string
	status           int
	redirect         string
	sse              bool
	noStream         bool
	answerElsewhere  bool
	loseSessionAfter int
	lostStatus       int
	oldSSE           bool
	elsewhere        string
}

func define(o *options) {
	flag.IntVar(&o.banner, "banner", 0, "print this many lines that are no frames first")
	flag.BoolVar(&o.junk, "junk", false, "print lines that are no frames without end, once initialized")
	flag.IntVar(&o.exitNow, "exit-now", -1, "say why on stderr and exit with this status at once")
	flag.DurationVar(&o.slowStart, "slow-start", 0, "do nothing for this long first")
	flag.BoolVar(&o.deaf, "deaf", false, "ignore SIGTERM and the end of stdin")
	flag.BoolVar(&o.grandchild, "grandchild", false, "start a `sleep` in the same group; tool grandchild tells its pid")
	flag.StringVar(&o.startLog, "start-log", "", "append one line with the pid to this file at start")

	flag.StringVar(&o.protocol, "protocol", "", "answer initialize with this protocol version; empty echoes the client's")
	flag.BoolVar(&o.modern, "modern", false, "speak 2026-07-28 only: no initialize, server/discover instead")
	flag.StringVar(&o.ask, "ask", "", "send the client a request of this method once initialized; tool asked tells its answer")

	flag.BoolVar(&o.features, "features", false, "have resources, prompts, completions and log messages, too")
	flag.StringVar(&o.askOnCall, "ask-on-call", "", "the same, at each call")
	flag.StringVar(&o.muteOn, "mute-on", "", "never answer this method")
	flag.StringVar(&o.dieOn, "die-on", "", "exit with status 3 when this method arrives")
	flag.StringVar(&o.errorOn, "error-on", "", "answer this method with error -32603")
	flag.StringVar(&o.deafOn, "stop-reading-on", "", "stop reading stdin when this method arrives")
	flag.IntVar(&o.stderrFlood, "stderr-flood", 0, "write this many bytes to stderr before each answer")
	flag.BoolVar(&o.garbage, "garbage", false, "print broken frames before each answer")
	flag.BoolVar(&o.stringIDs, "string-ids", false, "answer id 7 as \"7\"")
	flag.BoolVar(&o.idLast, "id-last", false, "write the id behind the result, as the TypeScript SDK does")

	flag.IntVar(&o.tools, "tools", 0, "add this many plain tools")
	flag.IntVar(&o.page, "page", 0, "list this many tools per page; 0 lists all")
	flag.BoolVar(&o.repeatCursor, "repeat-cursor", false, "answer every tools/list with the same next cursor")
	flag.StringVar(&o.schema, "schema", "", "add a tool bad whose inputSchema is null|missing|untyped|array|string")
	flag.BoolVar(&o.duplicate, "duplicate", false, "list tool echo twice")
	flag.StringVar(&o.catalogFile, "catalog-file", "", "list the JSON array of tools in this file instead, read anew each time")
	flag.StringVar(&o.leakEnv, "leak-env", "", "put the value of this variable in a description, a schema, an error and stderr")

	flag.IntVar(&o.exitAfter, "exit-after", 0, "exit with status 0 after this many calls were answered")
	flag.StringVar(&o.callLog, "call-log", "", "append one line with the tool's name to this file per call received")
	flag.DurationVar(&o.listChangedAfter, "list-changed-after", 0, "announce a changed list this long after initialize")
	flag.BoolVar(&o.listChangedOnCall, "list-changed-on-call", false, "announce a changed list before each result")
	flag.IntVar(&o.listChangedStorm, "list-changed-storm", 0, "announce a changed list this many times before each result")

	flag.StringVar(&o.http, "http", "", "serve Streamable HTTP on this address; the URL is printed on stdout")
	flag.IntVar(&o.status, "status", 0, "HTTP: answer everything with this status")
	flag.StringVar(&o.redirect, "redirect", "", "HTTP: redirect everything to this URL")
	flag.BoolVar(&o.sse, "sse", false, "HTTP: answer requests with an event stream")
	flag.BoolVar(&o.answerElsewhere, "answer-elsewhere", false, "HTTP: end the stream of a call at once and answer on the GET stream")
	flag.BoolVar(&o.noStream, "no-stream", false, "HTTP: answer GET with 405")
	flag.BoolVar(&o.oldSSE, "old-sse", false, "HTTP: speak HTTP+SSE, of 2024-11-05")
	flag.StringVar(&o.elsewhere, "elsewhere", "", "HTTP+SSE: name an address for messages that begins with this")
	flag.IntVar(&o.lostStatus, "lost-status", 404, "HTTP: say that a session is not known with this status; 200 with a JSON-RPC error")
	flag.IntVar(&o.loseSessionAfter, "lose-session-after", 0, "HTTP: forget all sessions after this many calls, once")
}

func main() {
	var o options
	define(&o)
	flag.Parse()
	if o.startLog != "" {
		appendLine(o.startLog, fmt.Sprint(os.Getpid()))
	}
	if o.exitNow >= 0 {
		fmt.Fprintln(os.Stderr, "fatal: API_KEY is required")
		os.Exit(o.exitNow)
	}
	if o.deaf {
		signal.Ignore(syscall.SIGTERM)
	}
	s := &server{o: o, waiting: map[string]chan string{}, subscribed: map[string]bool{}}
	if o.grandchild {
		s.grandchild = startSleep()
	}
	time.Sleep(o.slowStart)
	for i := range o.banner {
		fmt.Printf("banner line %d\n", i+1)
	}
	if o.http != "" {
		serveHTTP(s)
		return
	}
	serveStdio(s)
	if o.deaf {
		select {}
	}
}

// startSleep starts a grandchild of whoever started us and returns its pid.
func startSleep() int {
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	if err != nil {
		fatal(err)
	}
	return p.Pid
}

// appendLine adds a line with one write, so that lines of several processes never mix.
func appendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.TrimSpace(line) + "\n"); err != nil {
		fatal(err)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "faultserver:", err)
	os.Exit(1)
}
