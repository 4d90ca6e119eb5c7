// Package corpus reads real files of other people's repositories with the readers of this program and compares what
// they declare with a table of what they should. The files are data: nothing of them is run or followed.
package corpus

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/declare"
	"github.com/vak-actors/vak-actors/tests/realparts"
)

// row is one line of expect.tsv.
type row struct {
	file, expect, verdict, reason, strict string

	detail detail
}

type detail struct {
	DescLen      int             `json:"desc_len"`
	DescSHA      string          `json:"desc_sha"`
	BodySHA      string          `json:"body_sha"`
	ArgumentHint string          `json:"argument_hint"`
	AllowedTools json.RawMessage `json:"allowed_tools"`
	Model        string          `json:"model"`
	Invocable    *bool           `json:"user_invocable"`
	NotByModel   bool            `json:"disable_model_invocation"`
	Placeholders map[string]int  `json:"ph"`
	NS           string          `json:"ns"`
	N            int             `json:"n"`
	Root         string          `json:"root"`
	Transport    string          `json:"transport"`
	Command      string          `json:"command"`
	Args         json.RawMessage `json:"args"` // of a server a list, of a command of another dialect a flag
	URL          string          `json:"url"`
	Env          []string        `json:"env"`
	Headers      []string        `json:"headers"`
}

func (d detail) args() []string {
	var args []string
	if len(d.Args) > 0 && json.Unmarshal(d.Args, &args) != nil {
		return nil
	}
	return args
}

// corpusDir returns the folder of the corpus: beside the repository, or where the environment says; empty, and said so,
// when this machine has none.
func corpusDir(t testing.TB) string {
	t.Helper()
	beside := filepath.Join("..", "..", "..", "shared", "corpus")
	if _, err := os.Stat(filepath.Join(beside, "expect.tsv")); err == nil && os.Getenv(realparts.Shared) == "" {
		return beside
	}
	if shared := realparts.Require(t, realparts.Shared); shared != "" {
		return filepath.Join(shared, "corpus")
	}
	return ""
}

// rows reads the table, grouped by file in order of the table.
func rows(t testing.TB, dir, kind string) [][]row {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expect.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][]row
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		if !strings.HasPrefix(cells[0], kind+"/") {
			continue
		}
		r := row{file: cells[0], expect: cells[1], verdict: cells[2], reason: cells[3]}
		if len(cells) > 4 {
			r.strict = cells[4]
		}
		if len(cells) > 5 && cells[5] != "" {
			if err := json.Unmarshal([]byte(cells[5]), &r.detail); err != nil {
				t.Fatalf("%s: %v", cells[0], err)
			}
		}
		if n := len(all); n > 0 && all[n-1][0].file == r.file {
			all[n-1] = append(all[n-1], r)
		} else {
			all = append(all, []row{r})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// scan reads one file of the corpus as the file at name of an otherwise empty workspace.
func scan(t *testing.T, dir, file, name string) declare.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1_000_000, 0)
	result, err := declare.NewScanner(declare.Options{}).Scan(fstest.MapFS{name: {Data: text, ModTime: old}}, old.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func errorsOf(r declare.Result) []capability.Problem {
	return slices.DeleteFunc(slices.Clone(r.Problems), func(p capability.Problem) bool { return p.Severity != capability.SeverityError })
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:16]
}

// tally counts rows by verdict, and says which differ.
type tally struct {
	matched, rows map[string]int
	foreign       int // rows of dialects that a workspace does not hold
	differ        []string
}

func newTally() *tally { return &tally{matched: map[string]int{}, rows: map[string]int{}} }

func (c *tally) count(r row, err error) {
	c.rows[r.verdict]++
	if err == nil {
		c.matched[r.verdict]++
		return
	}
	c.differ = append(c.differ, fmt.Sprintf("%s %s (%s, %s): %v", r.file, r.expect, r.verdict, r.reason, err))
}

// exact prints the counts; every row has to match.
func (c *tally) exact(t *testing.T, kind string) {
	t.Helper()
	c.report(t, kind, c.rows)
}

// report prints the counts and holds them to a floor of rows that match.
func (c *tally) report(t *testing.T, kind string, floor map[string]int) {
	t.Helper()
	for _, verdict := range slices.Sorted(maps.Keys(c.rows)) {
		t.Logf("%s %s: %d of %d rows match", kind, verdict, c.matched[verdict], c.rows[verdict])
	}
	if c.foreign > 0 {
		t.Logf("%s: %d rows of dialects that are read by import", kind, c.foreign)
	}
	for _, d := range c.differ {
		t.Log(d)
	}
	for verdict, least := range floor {
		if c.matched[verdict] < least {
			t.Errorf("%s %s: %d rows match, %d should", kind, verdict, c.matched[verdict], least)
		}
	}
}

// The workspace that the quick start serves says nothing that needs repair.
func TestExampleWorkspace(t *testing.T) {
	root, err := os.OpenRoot(filepath.Join("..", "..", "examples", "workspace"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	result, err := declare.NewScanner(declare.Options{}).Scan(root.FS(), time.Now())
	if err != nil || len(result.Problems) > 0 || len(result.Declarations) < 5 {
		t.Errorf("declared %d, problems %+v, %v", len(result.Declarations), result.Problems, err)
	}
}

// workspaceDialect reports whether the rows of a file are of the one dialect that a workspace's .mcp.json has.
func workspaceDialect(group []row) bool {
	file := path.Base(group[0].file)
	if file == ".mcp.json" {
		return true
	}
	if path.Ext(file) != ".json" || strings.Contains(group[0].file, ".vscode/") {
		return false
	}
	return slices.ContainsFunc(group, func(r row) bool {
		return r.expect == "file" && (r.detail.Root == "mcpServers" || r.detail.Root == "bare-map" || r.verdict == "error")
	})
}

func TestServers(t *testing.T) {
	dir := corpusDir(t)
	if dir == "" {
		return
	}
	own, others := newTally(), newTally()
	for _, group := range rows(t, dir, "mcp") {
		c := own
		switch {
		case !workspaceDialect(group):
			own.foreign += len(group)
			continue
		case path.Base(group[0].file) != ".mcp.json":
			c = others
		}
		got := scan(t, dir, group[0].file, ".mcp.json")
		for _, r := range group {
			c.count(r, server(r, got))
		}
	}
	own.report(t, "servers of .mcp.json", map[string]int{"ok": 423, "error": 32})
	others.report(t, "servers of other files with mcpServers", map[string]int{"ok": 816, "error": 28, "policy": 3})
}

// server compares one server, or the file as a whole, with its row.
func server(r row, got declare.Result) error {
	if r.expect == "file" {
		broken := slices.ContainsFunc(got.Problems, func(p capability.Problem) bool { return p.Code == "mcp_syntax" || p.Code == "file_empty" })
		if (r.verdict == "error") != broken && r.verdict != "policy" {
			return fmt.Errorf("problems %v", got.Problems)
		}
		return nil
	}
	name := strings.TrimPrefix(r.expect, "mcp:")
	i := slices.IndexFunc(got.Declarations, func(d capability.Declaration) bool { return d.ID.Name == name })
	failed := slices.ContainsFunc(errorsOf(got), func(p capability.Problem) bool { return strings.Contains(p.Message, name) })
	switch {
	case r.verdict == "error" && (i >= 0 || !failed):
		return fmt.Errorf("declared %t, reported %t", i >= 0, failed)
	case r.verdict == "error" || r.verdict == "policy" && (i >= 0 || failed):
		return nil
	case r.reason == "switched off":
		if i >= 0 || failed {
			return fmt.Errorf("declared %t, reported %t", i >= 0, failed)
		}
		return nil
	case i < 0:
		return fmt.Errorf("not declared: %v", got.Problems)
	}
	s := got.Declarations[i].Config.(*capability.Server)
	keys := func(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
	switch d := r.detail; {
	case d.Transport != string(s.Transport) && d.Transport != "http?":
		return fmt.Errorf("transport %s", s.Transport)
	case d.Command != s.Command || d.URL != s.URL || !slices.Equal(d.args(), s.Args):
		return fmt.Errorf("command %q, args %q, url %q", s.Command, s.Args, s.URL)
	case !slices.Equal(d.Env, keys(s.Env)) || !slices.Equal(d.Headers, keys(s.Headers)):
		return fmt.Errorf("env %v, headers %v", keys(s.Env), keys(s.Headers))
	}
	return nil
}
