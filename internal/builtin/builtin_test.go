package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/op/optest"
	"github.com/vak-actors/vak-actors/internal/schema"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// world is a workspace with all ops.
type world struct {
	t         *testing.T
	dir       string
	bound     *optest.Bound
	servers   *fakeServers
	history   *fakeHistory
	table     *op.Table
	writes    []string // write paths of the calls
	gate      error    // what the gate says right before an effect
	judged    []string // the paths that links led to
	forbidden error    // what the permission engine says of a tool that is only known while the call runs
}

func newWorld(t *testing.T, declared ...capability.Declaration) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), bound: optest.NewBound(declared...), servers: &fakeServers{}, history: &fakeHistory{}}
	var err error
	w.table, err = op.NewTable(Ops(Config{Workspace: w.dir, Servers: w.servers, History: w.history})...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) put(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) get(name string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

// call runs an op as the dispatcher does: the arguments are checked against its schema first.
func (w *world) call(ctx context.Context, name, arguments string) (op.Result, error) {
	w.t.Helper()
	o, ok := w.table.Lookup(name)
	if !ok {
		w.t.Fatalf("there is no %s", name)
	}
	if err := schema.Compile(o.Declaration.Config.(*capability.Tool).InputSchema).CheckArguments(name, json.RawMessage(arguments)); err != nil {
		return op.Result{}, err
	}
	return o.Run(ctx, op.Call{
		Arguments: json.RawMessage(arguments), Bound: w.bound, WritePaths: w.writes, Commit: func() error { return w.gate },
		Permit:     func(string, *capability.ObservedTool) error { return w.forbidden },
		Approved:   func(_ string, tool capability.ObservedTool) capability.ObservedTool { return tool },
		PermitPath: func(path string) error { w.judged = append(w.judged, path); return w.forbidden },
	})
}

// text runs an op that is expected to answer with one text.
func (w *world) text(name, arguments string) string {
	w.t.Helper()
	r, err := w.call(w.t.Context(), name, arguments)
	if err != nil {
		w.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	return textOf(w.t, r)
}

// refused runs an op that is expected to fail with that code.
func (w *world) refused(name, arguments string, want vakerr.Code) *vakerr.Error {
	w.t.Helper()
	_, err := w.call(w.t.Context(), name, arguments)
	if vakerr.CodeOf(err) != want {
		w.t.Fatalf("%s %s: %v, want %s", name, arguments, err, want)
	}
	return vakerr.From(err)
}

func textOf(t *testing.T, r op.Result) string {
	t.Helper()
	var content struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(r.Content, &content); err != nil || len(content.Content) != 1 {
		t.Fatalf("%s: %v", r.Content, err)
	}
	return content.Content[0].Text
}

// V172: what is always loaded says so itself. V11: no skill is a tool; skill is the only loader.
func TestDeclarations(t *testing.T) {
	w := newWorld(t)
	var always, hostOnly, writing, names []string
	for _, d := range w.table.Declarations() {
		tool := d.Config.(*capability.Tool)
		names = append(names, d.ID.Name)
		if tool.AlwaysLoaded {
			always = append(always, d.ID.Name)
		}
		if tool.HostOnly {
			hostOnly = append(hostOnly, d.ID.Name)
		}
		if o, _ := w.table.Lookup(d.ID.Name); o.WriteTarget != nil {
			writing = append(writing, d.ID.Name)
			if tool.ReadOnly {
				t.Errorf("%s writes and says it is read-only", d.ID.Name)
			}
		}
		if s := schema.Compile(tool.InputSchema); s.Note() != "" {
			t.Errorf("%s: %s", d.ID.Name, s.Note())
		} else if err := s.CheckArguments(d.ID.Name, json.RawMessage(`{"strange":1}`)); err == nil || !strings.Contains(err.Error(), "strange") {
			t.Errorf("%s takes any field: %v", d.ID.Name, err)
		}
		if !strings.HasPrefix(tool.Description, d.Summary) || d.Origin.Label() != "builtin" {
			t.Errorf("%s: %q, %s", d.ID.Name, d.Summary, d.Origin.Label())
		}
	}
	for _, tt := range []struct {
		what string
		got  []string
		want string
	}{
		{"all", names, "edit find_tools glob grep mcp read session_search skill write"},
		{"always loaded", always, "find_tools glob grep mcp read session_search skill"},
		{"host only", hostOnly, "edit glob grep read session_search write"},
		{"writing", writing, "edit write"},
	} {
		if diff := cmp.Diff(strings.Fields(tt.want), tt.got); diff != "" {
			t.Errorf("%s: %s", tt.what, diff)
		}
	}
}

func TestWithoutAPoolAndARecordTheirToolsAreNotOffered(t *testing.T) {
	var names []string
	for _, o := range Ops(Config{Workspace: t.TempDir()}) {
		names = append(names, o.ID())
	}
	if slices.Contains(names, "mcp") || slices.Contains(names, "session_search") || len(names) != 7 {
		t.Errorf("got %v", names)
	}
}

// fakeHistory remembers what it was asked.
type fakeHistory struct {
	hits  []Recollection
	limit int
}

func (h *fakeHistory) Search(_ context.Context, _ op.Call, _ string, limit int) ([]Recollection, error) {
	h.limit = limit
	return h.hits, nil
}
