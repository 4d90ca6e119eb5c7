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
	raw    []byte // of detail, for kinds that read more of it
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
	serverDetail
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
			r.raw = []byte(cells[5])
			if err := json.Unmarshal(r.raw, &r.detail); err != nil && kind != "hooks" && kind != "plugins" {
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
