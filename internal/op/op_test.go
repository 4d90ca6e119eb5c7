package op_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

func TestFailureTellsCodeReasonAndRemedyButNoCause(t *testing.T) {
	err := vakerr.New(vakerr.ServerBackingOff, "server <a> & b waits").WithRemedy("wait").
		WithRetryAfter(1500 * time.Millisecond).WithCause(errors.New("password=hunter2"))
	r := op.Failure(err)
	if !r.IsError {
		t.Error("not an error")
	}
	const told = `{"error":{"code":"server_backing_off","reason":"server <a> & b waits","remedy":"wait","retry_after_ms":1500}}`
	quoted, _ := json.Marshal(told)
	want := `{"content":[{"type":"text","text":` + string(quoted) + `}],"structuredContent":` + told + `,"isError":true}`
	var got, wanted any
	if err := json.Unmarshal(r.Content, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(r.Content), "hunter2") || strings.Contains(string(r.Content), `\u003c`) {
		t.Errorf("content: %s", r.Content)
	}
}

func TestPassedKeepsEveryByte(t *testing.T) {
	raw := json.RawMessage(` {"content":[ ],"_meta":{"x":1.0},"isError":true,"own":"\u003c"}`)
	r, err := op.Passed(raw)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Content) != string(raw) || !r.IsError {
		t.Errorf("got %+v", r)
	}
	for _, odd := range []string{`{}`, `{"content":null}`, `{"structuredContent":{}}`} {
		if _, err := op.Passed(json.RawMessage(odd)); err != nil {
			t.Errorf("%s: %v", odd, err)
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `"x"`, `{"isError":"yes"}`, `{"content":`, `{"content":"text"}`, `{"content":{}}`, `{"content":1}`} {
		if _, err := op.Passed(json.RawMessage(bad)); vakerr.CodeOf(err) != vakerr.OutputInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// V170: a post-tool block annotates the result.
func TestAnnotatedAddsOneTextAndKeepsTheRest(t *testing.T) {
	r := op.Result{IsError: true, Content: json.RawMessage(`{"content":[{"type":"image","data":"AA=="}],"_meta":{"n":1.50},"isError":true}`)}
	got, err := r.Annotated("a hook objects")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"_meta":{"n":1.50},"content":[{"type":"image","data":"AA=="},{"type":"text","text":"a hook objects"}],"isError":true}`
	if string(got.Content) != want || !got.IsError {
		t.Errorf("got %s", got.Content)
	}
	if _, err := (op.Result{Content: json.RawMessage(`[]`)}).Annotated("x"); vakerr.CodeOf(err) != vakerr.OutputInvalid {
		t.Errorf("got %v", err)
	}
}

func TestDecodeNamesTheFieldAndNoValue(t *testing.T) {
	type args struct {
		Name  string `json:"name"`
		Limit int    `json:"limit"`
	}
	var a args
	if err := op.Decode(json.RawMessage(`{"name":"x","limit":3}`), &a); err != nil || a != (args{"x", 3}) {
		t.Fatalf("%+v, %v", a, err)
	}
	for in, want := range map[string]string{
		`{"name":"x","other":"secret"}`: `no field "other"`,
		`{"limit":"secret"}`:            `field "limit" has the wrong type`,
		`{"name":"x"}{"name":"secret"}`: "more than one",
		`"secret"`:                      "object",
		``:                              "object",
		`{"name":secret}`:               "valid JSON",
	} {
		err := op.Decode(json.RawMessage(in), &args{})
		if vakerr.CodeOf(err) != vakerr.InvalidArguments || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// V127: run-scoped write paths are decided from names alone, before anything is dispatched. V128: paths are files or
// folders, and the restriction knows no rules and no mode.
func TestCheckWritePath(t *testing.T) {
	tests := []struct {
		name   string
		paths  []string
		target string
		want   vakerr.Code
	}{
		{"unrestricted", nil, "any/where.txt", ""},
		{"unrestricted, outside", nil, "../x", vakerr.PathEscapes},
		{"unrestricted, absolute", nil, "/etc/passwd", vakerr.PathEscapes},
		{"nothing allowed", []string{}, "a", vakerr.PermissionDenied},
		{"in a folder", []string{"out/"}, "out/deep/a.txt", ""},
		{"the file itself", []string{"a.txt"}, "./a.txt", ""},
		{"a second path", []string{"a", "b"}, "b/c", ""},
		{"a like-named neighbour", []string{"out"}, "output/a", vakerr.PermissionDenied},
		{"climbing out of the folder", []string{"out"}, "out/../secret", vakerr.PermissionDenied},
		{"climbing out of the workspace", []string{"."}, "out/../../x", vakerr.PathEscapes},
		{"the whole workspace", []string{"."}, "x", ""},
		{"an allowed path outside is none", []string{"..", "/", ""}, "x", vakerr.PermissionDenied},
		{"no target", []string{"."}, "", vakerr.PathEscapes},
		{"a hidden end", []string{"."}, "a\x00b", vakerr.PathEscapes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := vakerr.CodeOf(op.CheckWritePath(tt.paths, tt.target)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func tool(name, id string) op.Op {
	return op.Op{
		Declaration: capability.Declaration{
			ID:     capability.ID{Kind: capability.KindTool, Name: name},
			Config: &capability.Tool{InputSchema: json.RawMessage(`{}`), Op: id},
		},
		Run: func(context.Context, op.Call) (op.Result, error) { return op.Text(name), nil },
	}
}

func TestTable(t *testing.T) {
	table, err := op.NewTable(tool("b", ""), tool("a", "z.impl"))
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := table.Lookup("z.impl"); !ok || o.Declaration.ID.Name != "a" {
		t.Errorf("z.impl: %v %v", o, ok)
	}
	if _, ok := table.Lookup("a"); ok {
		t.Error("an op was found by the name of its tool")
	}
	var names []string
	for _, d := range table.Declarations() {
		names = append(names, d.ID.Name)
	}
	if diff := cmp.Diff([]string{"b", "a"}, names); diff != "" {
		t.Error(diff)
	}
	if _, err := op.NewTable(tool("a", ""), tool("other", "a")); err == nil {
		t.Error("two ops of one id were taken")
	}
	if _, err := op.NewTable(op.Op{Declaration: tool("a", "").Declaration}); err == nil {
		t.Error("an op without a function was taken")
	}
	skill := op.Op{Declaration: capability.Declaration{ID: capability.ID{Kind: capability.KindSkill, Name: "s"}, Config: &capability.Skill{}}, Run: tool("a", "").Run}
	// V11: a skill name never becomes a tool name.
	if _, err := op.NewTable(skill); err == nil {
		t.Error("a skill was registered as a tool")
	}
}

// A write path that no write could lie below is refused when the run is restricted, not when it writes.
func TestCheckWritePaths(t *testing.T) {
	if err := op.CheckWritePaths([]string{"a", "./b/c", "."}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "..", "../..", "/etc", "a/../../b"} {
		if err := op.CheckWritePaths([]string{"a", bad}); vakerr.CodeOf(err) != vakerr.InvalidRequest {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
