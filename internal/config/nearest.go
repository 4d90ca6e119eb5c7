package config

import "strings"

// Nearest returns the known key that is closest to key by edit distance, or nothing when none is near: more than half of
// the letters would have to change.
func Nearest(key string, known []string) string {
	if len(key) > 64 {
		return ""
	}
	folded := strings.ToLower(strings.ReplaceAll(key, "-", "_"))
	best, least := "", len(folded)/2+1
	for _, k := range known {
		if d := editDistance(folded, strings.ToLower(k)); d < least || (d == least && best != "" && k < best) {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours, in bytes.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
