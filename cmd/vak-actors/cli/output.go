package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// printJSON prints a value, indented, with one line break behind it.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table prints rows in columns; the first row is the headline.
func table(w io.Writer, rows [][]string) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = clean(strings.ReplaceAll(cell, "\n", " "))
		}
		fmt.Fprintln(columns, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	columns.Flush()
}

// clean takes from a text what a terminal would obey: names and messages come from servers and files.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return '?'
		}
		return r
	}, text)
}

// moment is a time of the API for people; nothing for none.
func moment(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

// short cuts a text for a column.
func short(text string, most int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most-1]) + "…"
}

// orEmpty is list, and an empty list in place of none, so that JSON has [] and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// count is "1 finding", "2 findings".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if stem, y := strings.CutSuffix(thing, "y"); y {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
