package config

import (
	"strings"

	"github.com/vak-actors/vak-actors/internal/phrase"
)

// Nearest returns the known key that is closest to key by edit distance, or nothing when none is near: more than half of
// the letters would have to change.
func Nearest(key string, known []string) string {
	if len(key) > 64 {
		return ""
	}
	folded := strings.ToLower(strings.ReplaceAll(key, "-", "_"))
	best, least := "", len(folded)/2+1
	for _, k := range known {
		if d := phrase.Distance(folded, strings.ToLower(k), least); d < least || (d == least && best != "" && k < best) {
			best, least = k, d
		}
	}
	return best
}
