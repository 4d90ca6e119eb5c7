package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of glob and grep.
const (
	globMost     = 1000    // paths in a result
	grepLines    = 100     // matching lines in a result, unless the call says otherwise
	grepFile     = 4 << 20 // bytes of a file that is searched
	grepLine     = 300     // bytes of a matching line that are shown
	searchBudget = 10 * time.Second
)

func (f *files) globOp() op.Op {
	return op.Op{Run: f.glob, Declaration: declaration("glob",
		"Lists files of the workspace whose paths match a pattern.",
		"The pattern knows * ? [class] {a,b} and ** for any folders. Paths are sorted; .git and node_modules are left out.",
		`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
			"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"For instance **/*.go"},
			"path":{"type":"string","minLength":1,"description":"The folder to look in; the workspace if absent."}}}`,
		capability.Domains{capability.Filesystem},
		capability.Tool{ReadOnly: true, Idempotent: true, AlwaysLoaded: true, HostOnly: true},
	)}
}

func (f *files) glob(ctx context.Context, c op.Call) (op.Result, error) {
	args := struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
	}{Path: "."}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	args.Pattern = strings.TrimPrefix(args.Pattern, f.workspace+"/")
	matches, err := pathMatcher(args.Pattern)
	if err != nil {
		return op.Result{}, err
	}
	// The part of the pattern before its first meta character is walked straight to, so a pattern may lead into a folder
	// that is passed over otherwise.
	fixed, _ := doublestar.SplitPattern(args.Pattern)
	root, rel, err := f.open(path.Join(args.Path, fixed))
	if err != nil {
		return op.Result{}, err
	}
	defer root.Close()
	if folder, err := root.IsFolder(rel); err != nil || !folder {
		return op.Text("[no file matches]"), ignoreMissing(err)
	}
	ctx, cancel := context.WithTimeout(ctx, searchBudget)
	defer cancel()
	var found []string
	complete, err := root.Walk(ctx, rel, func(p string, _ fs.DirEntry) error {
		if matches(path.Join(fixed, p)) {
			found = append(found, path.Join(rel, p))
		}
		return nil
	})
	if err != nil {
		return op.Result{}, err
	}
	return op.Text(listPaths(found, complete)), nil
}

func ignoreMissing(err error) error {
	if vakerr.CodeOf(err) == vakerr.FileNotFound {
		return nil
	}
	return err
}

func listPaths(found []string, complete bool) string {
	slices.Sort(found)
	var notes []string
	if more := len(found) - globMost; more > 0 {
		found = found[:globMost]
		notes = append(notes, fmt.Sprintf("%d more match; narrow the pattern", more))
	}
	if !complete {
		notes = append(notes, fmt.Sprintf("only the first %d entries were looked at; name a smaller folder", rootfs.MaxEntries))
	}
	if len(found) == 0 && len(notes) == 0 {
		return "[no file matches]"
	}
	return withNotes(strings.Join(found, "\n"), notes)
}

func withNotes(text string, notes []string) string {
	if len(notes) == 0 {
		return text
	}
	return strings.TrimLeft(text+"\n["+strings.Join(notes, "; ")+"]", "\n")
}

func pathMatcher(pattern string) (func(string) bool, error) {
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return nil, vakerr.New(vakerr.InvalidArguments, "the pattern for paths is not valid").
			WithRemedy("check its brackets and braces")
	}
	return func(p string) bool {
		ok, err := doublestar.Match(pattern, p)
		return ok && err == nil
	}, nil
}

func (f *files) grepOp() op.Op {
	return op.Op{Run: f.grep, Declaration: declaration("grep",
		"Searches the text files of the workspace for a regular expression.",
		"The syntax is RE2. Each match is a line path:number:text. .git, node_modules, binary and very large files are left out.",
		`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
			"pattern":{"type":"string","minLength":1,"maxLength":1000},
			"path":{"type":"string","minLength":1,"description":"The folder or file to search; the workspace if absent."},
			"glob":{"type":"string","minLength":1,"maxLength":1000,"description":"Search only files whose path or name matches, for instance *.go"},
			"ignore_case":{"type":"boolean"},
			"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many lines to return; 100 if absent."}}}`,
		capability.Domains{capability.Filesystem},
		capability.Tool{ReadOnly: true, Idempotent: true, AlwaysLoaded: true, HostOnly: true},
	)}
}

func (f *files) grep(ctx context.Context, c op.Call) (op.Result, error) {
	args := struct {
		Pattern    string `json:"pattern"`
		Path       string `json:"path"`
		Glob       string `json:"glob"`
		IgnoreCase bool   `json:"ignore_case"`
		Limit      int    `json:"limit"`
	}{Path: ".", Glob: "**", Limit: grepLines}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	expression, err := compile(args.Pattern, args.IgnoreCase)
	if err != nil {
		return op.Result{}, err
	}
	matches, err := pathMatcher(args.Glob)
	if err != nil {
		return op.Result{}, err
	}
	root, rel, err := f.open(args.Path)
	if err != nil {
		return op.Result{}, err
	}
	defer root.Close()
	ctx, cancel := context.WithTimeout(ctx, searchBudget)
	defer cancel()
	g := grepping{maySee: c.MaySee, root: root, expression: expression, limit: min(max(args.Limit, 1), 1000)}
	folder, err := root.IsFolder(rel)
	if err != nil {
		return op.Result{}, err
	}
	if !folder {
		if err := permitLinked(c, root, rel); err != nil {
			return op.Result{}, err
		}
		err = g.file(ctx, rel)
		if errors.Is(err, rootfs.ErrStop) {
			err = nil
		}
		return op.Text(g.result(true)), err
	}
	target, err := root.Resolve(rel)
	if err == nil && target != rel {
		err = permitLinked(c, root, rel)
	}
	if err != nil {
		return op.Result{}, err
	}
	complete, err := root.Walk(ctx, rel, func(p string, d fs.DirEntry) error {
		if !d.Type().IsRegular() || !matches(p) && !matches(path.Base(p)) || !g.mayReach(rel, target, p) {
			return nil
		}
		return g.file(ctx, path.Join(rel, p))
	})
	if err != nil {
		return op.Result{}, err
	}
	return op.Text(g.result(complete)), nil
}

func compile(pattern string, ignoreCase bool) (*regexp.Regexp, error) {
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		why := "it cannot be read"
		if wrong, ok := errors.AsType[*syntax.Error](err); ok {
			why = wrong.Code.String()
		}
		return nil, vakerr.New(vakerr.InvalidArguments, "the pattern is no RE2 expression: %s", why).
			WithRemedy("correct it; look-around and back references do not exist in RE2").WithCause(err)
	}
	return expression, nil
}

// grepping is one search under way.
type grepping struct {
	maySee     func(path string) bool // nil: all
	root       *rootfs.Root
	expression *regexp.Regexp
	limit      int

	lines   []string
	full    bool // limit was reached
	skipped int  // files that were too large
}

// permitLinked judges a file that a call names by what it leads to.
func permitLinked(c op.Call, root *rootfs.Root, rel string) error {
	if c.PermitPath == nil {
		return nil
	}
	target, err := root.Resolve(rel)
	if err != nil {
		return err
	}
	return c.PermitPath(target)
}

// mayReach judges a file below a folder by what the folder's name leads to. By the name itself file judges it.
func (g *grepping) mayReach(rel, target, p string) bool {
	return rel == target || g.maySee == nil || g.maySee(path.Join(target, p))
}

// file searches one file. What cannot be read, is no text or must not be seen is passed over.
func (g *grepping) file(ctx context.Context, rel string) error {
	if g.maySee != nil && !g.maySee(rel) {
		return nil
	}
	f, info, err := g.root.OpenRegular(rel)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	if info.Size() > grepFile {
		g.skipped++
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, grepFile))
	if err != nil || isBinary(text[:min(len(text), binaryProbe)]) {
		return nil
	}
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, grepFile+1)
	for n := 1; in.Scan(); n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !g.expression.Match(in.Bytes()) {
			continue
		}
		if len(g.lines) == g.limit {
			g.full = true
			return rootfs.ErrStop
		}
		g.lines = append(g.lines, fmt.Sprintf("%s:%d:%s", rel, n, cutLine(in.Bytes())))
	}
	return nil
}

func cutLine(line []byte) string {
	cut := len(line) > grepLine
	if cut {
		line = line[:grepLine]
	}
	text := strings.ToValidUTF8(string(line), "")
	if cut {
		text += "…"
	}
	return text
}

func (g *grepping) result(complete bool) string {
	var notes []string
	if g.full {
		notes = append(notes, fmt.Sprintf("more lines match than the %d asked for", g.limit))
	}
	if g.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d files of more than %d MiB were not searched", g.skipped, grepFile>>20))
	}
	if !complete {
		notes = append(notes, fmt.Sprintf("only the first %d entries were looked at; name a smaller folder", rootfs.MaxEntries))
	}
	if len(g.lines) == 0 && len(notes) == 0 {
		return "[no line matches]"
	}
	return withNotes(strings.Join(g.lines, "\n"), notes)
}
