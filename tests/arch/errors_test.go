package arch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md")

// TestErrorsDocument: docs/errors.md is what the catalogue says.
func TestErrorsDocument(t *testing.T) {
	const name = "docs/errors.md"
	want := errorsDocument()
	if *update {
		if err := os.WriteFile(filepath.Join(root, name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, read(t, name)); diff != "" {
		t.Errorf("%s is not what internal/vakerr says; run go test ./tests/arch -run TestErrorsDocument -update\n%s", name, diff)
	}
}

func errorsDocument() string {
	var doc strings.Builder
	doc.WriteString(`# Errors

Generated from internal/vakerr; do not edit.

Every refusal and failure that reaches a model, a terminal or a wire has a code, a reason and a remedy. Programs compare
codes; people read reasons. A code belongs to one kind, and the kind decides what is generic about it.

## Kinds

| kind | may be retried | exit code | Connect | JSON-RPC |
| --- | --- | --- | --- | --- |
`)
	codes := vakerr.Codes()
	slices.SortFunc(codes, func(a, b vakerr.Code) int {
		if a.Kind() != b.Kind() {
			return int(a.Kind()) - int(b.Kind())
		}
		return strings.Compare(string(a), string(b))
	})
	kinds := make([]vakerr.Kind, 0, len(codes))
	for _, c := range codes {
		kinds = append(kinds, c.Kind())
	}
	for _, k := range slices.Compact(kinds) {
		retry := "no"
		if k.Retryable() {
			retry = "yes"
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %d | `%s` | %d |\n", k, retry, k.ExitCode(), k.ConnectCode(), k.JSONRPC())
	}
	doc.WriteString("\n## Codes\n\n| code | kind |\n| --- | --- |\n")
	for _, c := range codes {
		fmt.Fprintf(&doc, "| `%s` | `%s` |\n", c, c.Kind())
	}
	return doc.String()
}
