// Package phrase puts names and foreign text into sentences for models and people: cut to a bound, listed up to a number,
// and compared with what was probably meant. It is pure, and knows nothing of what the names stand for.
package phrase

import (
	"fmt"
	"strings"
)

// Cut returns at most most bytes of s, and a mark where it was longer. What the cut broke, or was no UTF-8 in a text that
// was cut, is left out.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// List enumerates names, at most most of them, and says how many there are besides; none for no name.
func List(names []string, most int) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s, … and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Distance counts the insertions, deletions, replacements and swaps of neighbours, in bytes, that lead from a to b; limit+1
// where there are more than limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	bestBefore := 0
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			best = min(best, row[j])
		}
		if best > limit && bestBefore >= limit {
			return limit + 1 // a swap reaches two rows back
		}
		bestBefore = best
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
