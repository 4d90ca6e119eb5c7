package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of session_search.
const (
	historyDefault = 10
	historyMost    = 50
	historyText    = 500 // characters of an entry that are shown
)

func sessionSearchOp(h History) op.Op {
	run := func(ctx context.Context, c op.Call) (op.Result, error) {
		args := struct {
			Query string `json:"query"`
			Limit int    `json:"limit"`
		}{Limit: historyDefault}
		if err := op.Decode(c.Arguments, &args); err != nil {
			return op.Result{}, err
		}
		if strings.TrimSpace(args.Query) == "" {
			return op.Result{}, vakerr.New(vakerr.InvalidArguments, "query is empty").WithRemedy("give some words to look for")
		}
		hits, err := h.Search(ctx, c, args.Query, min(max(args.Limit, 1), historyMost))
		if err != nil {
			return op.Result{}, err
		}
		return op.Text(recollect(hits)), nil
	}
	return op.Op{Run: run, Declaration: declaration("session_search",
		"Searches the records of past sessions.",
		"Use it to recall what was said or done before.",
		`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
			"query":{"type":"string","minLength":1,"maxLength":500},
			"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many entries to return; 10 if absent."}}}`,
		capability.Domains{capability.Memory},
		capability.Tool{ReadOnly: true, Idempotent: true, AlwaysLoaded: true, HostOnly: true},
	)}
}

func recollect(hits []Recollection) string {
	if len(hits) == 0 {
		return "[nothing matches]"
	}
	lines := make([]string, len(hits))
	for i, h := range hits {
		lines[i] = fmt.Sprintf("%s #%d %s %s: %s", h.Session, h.Seq, h.At.UTC().Format(time.RFC3339), h.Kind, trim(h.Text, historyText))
	}
	return strings.Join(lines, "\n")
}
