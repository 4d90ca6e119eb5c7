package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
)

var update = flag.Bool("update", false, "write what the machines do into testdata")

// Scenarios are files of prose (#), commands (>) and what follows from each: effects, then the state after '='. Run with
// -update to write the latter anew, and read the difference.
func TestServerScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/server-*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(text), got); diff != "" {
				t.Errorf("(-file +machine):\n%s", diff)
			}
		})
	}
}

// stage plays commands on one server.
type stage struct {
	t      testing.TB
	server Server
	now    time.Time
	config ServerConfig
}

var epoch0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// play repeats the prose and the commands of a scenario and writes what follows from them.
func play(t testing.TB, text string) string {
	config := ServerConfig{Name: "git", IdleTTL: 15 * time.Minute, MaxInFlight: 2, MaxWaiting: 3}
	s := &stage{t: t, now: epoch0, config: config, server: NewServer(config, nil)}
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			out.WriteString(line + "\n" + s.command(strings.Fields(command)))
		case line == "" || line[0] == '#':
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func (s *stage) command(words []string) string {
	var out strings.Builder
	var effects []ServerEffect
	s.server, effects = s.server.Step(s.event(words), s.now)
	for _, e := range effects {
		out.WriteString("  " + e.String() + "\n")
	}
	fmt.Fprintf(&out, "= %s, %d in flight, %d waiting", s.server.Phase(), s.server.InFlight(), s.server.Waiting())
	if at, ok := s.server.Wake(); ok {
		fmt.Fprintf(&out, ", wake in %s", at.Sub(s.now))
	}
	return out.String() + "\n"
}

// event reads one command. wait 5s moves the clock and ticks; gen=N makes an event a late one of that connection.
func (s *stage) event(words []string) ServerEvent {
	generation := s.server.Generation()
	verb, rest := words[0], []string{}
	for _, w := range words[1:] {
		if text, ok := strings.CutPrefix(w, "gen="); ok {
			generation = uint64(s.number(text))
			continue
		}
		rest = append(rest, w)
	}
	has := func(word string) bool { return strings.Contains(" "+strings.Join(rest, " ")+" ", " "+word+" ") }
	said := strings.Join(rest, " ")
	switch verb {
	case "demand":
		d := Demand{ID: DemandID(s.number(rest[0])), List: has("list"), Again: has("again")}
		if has("deadline") {
			d.Deadline = s.now.Add(s.duration(rest[len(rest)-1]))
		}
		return d
	case "withdraw":
		return Withdraw{DemandID(s.number(rest[0]))}
	case "released":
		return Released{Generation: generation, Answered: !has("unanswered")}
	case "started":
		return Started{Generation: generation, Catalog: observedTools(rest)}
	case "failed":
		return StartFailed{Generation: generation, Reason: said}
	case "died":
		return Died{Generation: generation, Reason: said}
	case "closed":
		return Closed{generation}
	case "list-changed":
		return ListChanged{generation}
	case "listed":
		return Listed{Generation: generation, Catalog: observedTools(rest)}
	case "list-failed":
		return Listed{Generation: generation, Failure: said}
	case "stop":
		return Stop{Reason: strings.TrimSpace(strings.TrimPrefix(said, "drain")), Drain: has("drain")}
	case "config-changed":
		return ConfigChanged{s.config}
	case "wait":
		s.now = s.now.Add(s.duration(rest[0]))
		return Tick{}
	}
	s.t.Fatalf("unknown command %q", verb)
	return nil
}

func (s *stage) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func observedTools(names []string) []capability.ObservedTool {
	var all []capability.ObservedTool
	for _, n := range names {
		all = append(all, capability.ObservedTool{Name: n})
	}
	return all
}
